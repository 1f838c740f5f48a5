"""REST endpoints for a run's snapshot: files and diff."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from carrel.actions.runs import diff as runs_diff
from carrel.actions.runs import runs, snapshots
from carrel.actions.runs.diff import Difference
from carrel.core.access import Permission
from carrel.core.errors import Conflict, NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.server.http.endpoint import (
    IF_NONE_MATCH,
    Request,
    RequestModel,
    ResponseModel,
    endpoint,
)
from carrel.server.http.not_modified import etag_matches
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import (
    OverlayFileListModel,
    OverlayFileModel,
    PositiveInt,
    overlay_file_to_model,
)

_TAG: Final = "Runs"
_IMMUTABLE_CACHE: Final = "private, max-age=31536000, immutable"


class RunDiffQuery(RequestModel, frozen=True):
    path: Annotated[str, Meta(max_length=1024)] | None = None


class ChangedFileModel(ResponseModel, frozen=True):
    path: str
    change: str
    before_version: PositiveInt | None
    after_version: PositiveInt | None
    diff: str | msgspec.UnsetType = msgspec.UNSET


class RunDiffModel(ResponseModel, frozen=True):
    run_id: str
    changes: list[ChangedFileModel]


@endpoint(
    "GET",
    "/v1/runs/{id}/files",
    permission=Permission.WORKSPACE_READ,
    responses={200: OverlayFileListModel},
    refusals=(NotFound,),
    id="runs_files",
    tag=_TAG,
)
async def list_run_files(request: Request) -> Response:
    """List the files of a run's snapshot."""
    run = await runs.get(request.ports, request.actor, request.params["id"])
    snapshot = await snapshots.load_manifest(request.ports, run)
    return Response.json(
        OverlayFileListModel(
            files=[overlay_file_to_model(file) for file in snapshot.files.values()]
        )
    )


@endpoint(
    "GET",
    "/v1/runs/{id}/files/{path...}",
    permission=Permission.WORKSPACE_READ,
    responses={200: OverlayFileModel, 304: None},
    refusals=(ValidationError, NotFound, Conflict),
    headers=(IF_NONE_MATCH,),
    response_headers=("ETag", "Cache-Control"),
    id="runs_file",
    tag=_TAG,
)
async def get_run_file(request: Request) -> Response:
    """Get a file of a run's snapshot. Its content never changes."""
    run = await runs.get(request.ports, request.actor, request.params["id"])
    file, content = await snapshots.read_file(request.ports, run, Path(request.params["path"]))
    headers = {"ETag": file.etag, "Cache-Control": _IMMUTABLE_CACHE}
    if etag_matches(request, file.etag):
        return Response.empty(304, headers)
    return Response.json(overlay_file_to_model(file, content), headers=headers)


@endpoint(
    "GET",
    "/v1/runs/{id}/diff",
    query=RunDiffQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: RunDiffModel},
    refusals=(ValidationError, NotFound),
    id="runs_diff",
    tag=_TAG,
)
async def get_run_diff(request: Request[None, RunDiffQuery]) -> Response:
    """Compare the snapshot with the current workspace; with a path, as text diff."""
    run = await runs.get(request.ports, request.actor, request.params["id"])
    if request.query.path is None:
        differences = await runs_diff.diff(request.ports, run)
        return Response.json(
            RunDiffModel(
                run_id=run.id, changes=[_difference_to_model(item) for item in differences]
            )
        )
    difference, text = await runs_diff.diff_file(request.ports, run, Path(request.query.path))
    return Response.json(
        RunDiffModel(
            run_id=run.id, changes=[_difference_to_model(difference, text)] if difference else []
        )
    )


def _difference_to_model(difference: Difference, text: str | None = None) -> ChangedFileModel:
    before, after = difference.before, difference.after
    return ChangedFileModel(
        path=difference.path.text,
        change=difference.kind,
        before_version=before.version if before else None,
        after_version=after.version if after else None,
        diff=msgspec.UNSET if text is None else text,
    )


ENDPOINTS: Final = (list_run_files, get_run_file, get_run_diff)
