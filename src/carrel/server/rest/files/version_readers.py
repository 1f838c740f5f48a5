"""REST endpoints for the runs that read a version of a file."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.runs.version_readers import list_version_readers
from carrel.core.access import Permission
from carrel.core.errors import NotFound, ValidationError
from carrel.core.runs import Run, RunStatus
from carrel.server.http.endpoint import Endpoint, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_collections import FILE_COLLECTIONS, AnyRequest, FileCollection
from carrel.server.rest.files.file_models import PositiveInt, Rfc3339, rfc3339


class VersionReadersQuery(RequestModel, frozen=True, kw_only=True):
    version: PositiveInt
    cursor: Annotated[str, Meta(max_length=200)] = ""
    limit: Annotated[int, Meta(ge=1, le=100)] = 50


class VersionReaderModel(ResponseModel, frozen=True):
    """A run that read the version."""

    run_id: str
    workflow_id: str
    agent_id: str | None
    session_id: str | None
    status: RunStatus
    started_at: Rfc3339


class VersionReadersModel(ResponseModel, frozen=True):
    items: list[VersionReaderModel]
    next: str | None


def _readers_endpoint(collection: FileCollection) -> Endpoint:
    @endpoint(
        "GET",
        collection.root + "/{path...}/readers",
        query=VersionReadersQuery,
        permission=Permission.WORKSPACE_READ,
        responses={200: VersionReadersModel},
        refusals=(ValidationError, NotFound),
        **collection.endpoint_options("readers"),
    )
    async def readers(request: AnyRequest) -> Response:
        """List the runs that read a version of a file, newest first.

        Those of the layer that has the version; runs that read an override or a pin of it read
        another version. A page may be short and have a next one. Also requires `runs:read`.
        """
        stack, path, query = (
            await collection.load_stack(request),
            collection.path(request),
            request.query,
        )
        page = await list_version_readers(
            *(request.ports, request.actor, stack, path, query.version),
            cursor=query.cursor,
            limit=query.limit,
        )
        return Response.json(
            VersionReadersModel(items=[_run_to_model(run) for run in page.items], next=page.next)
        )

    return readers


def _run_to_model(run: Run) -> VersionReaderModel:
    return VersionReaderModel(
        run_id=run.id,
        workflow_id=run.workflow_id,
        agent_id=run.agent,
        session_id=run.session,
        status=run.status,
        started_at=rfc3339(run.started_at),
    )


ENDPOINTS: Final = tuple(
    _readers_endpoint(collection) for collection in FILE_COLLECTIONS if not collection.wire
)
