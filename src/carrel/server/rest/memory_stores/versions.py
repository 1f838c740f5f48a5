"""REST endpoints for the versions of memories."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from msgspec import Meta, field

from carrel.actions.memory_stores import memory_versions
from carrel.actions.memory_stores.memory_versions import VersionView
from carrel.core.access import Permission
from carrel.core.errors import Busy, Conflict, NotFound, ValidationError
from carrel.core.memory_stores.actors import ActorKind, MemoryActor, memory_actor
from carrel.core.memory_stores.memory_paths import memory_path
from carrel.core.memory_stores.memory_versions import MemoryOperation, VersionFilter
from carrel.core.memory_stores.object_ids import memory_id, parse_memory_id, store_id, version_id
from carrel.server.http.endpoint import Request, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Sha256, rfc3339
from carrel.server.rest.memory_stores.memories import MemoryViewQuery
from carrel.server.rest.memory_stores.memory_store_dialect import (
    ENDPOINT_OPTIONS,
    MAX_FULL_PAGE,
    MemoryId,
    MemoryPageQuery,
    MemoryStoreResponse,
    StoreId,
    Timestamp,
    VersionId,
    View,
    decode_page,
    encode_page,
    parse_time,
)

_PATH: Final = "/v1/memory_stores/{store}/memory_versions"
_VERSION_KEY: Final = re.compile("[0-9a-f]{24}")
_SERVICE_ACCOUNTS: Final = "service accounts"
"""Author that no version has: keys are those of Carrel."""


class MemoryVersionListQuery(MemoryPageQuery, frozen=True):
    memory_id: str | None = None
    operation: MemoryOperation | None = None
    session_id: Annotated[str, Meta(description="Run that wrote.")] | None = None
    api_key_id: Annotated[str, Meta(description="Key that wrote.")] | None = None
    service_account_id: Annotated[str, Meta(description="Matches no version.")] | None = None
    created_since: Timestamp | None = field(name="created_at[gte]", default=None)
    created_until: Timestamp | None = field(name="created_at[lte]", default=None)
    view: View = "basic"


_ActorModel = Annotated[
    dict[str, str],
    Meta(description="`type`, and `user_id`, `api_key_id`, or `session_id`: the run that wrote."),
]


class MemoryVersionModel(MemoryStoreResponse, frozen=True):
    """One change of a memory. A redacted one has no path and no content."""

    id: VersionId
    memory_id: MemoryId
    memory_store_id: StoreId
    operation: MemoryOperation
    path: str | None
    content: str | None
    content_sha256: Sha256 | None
    content_size_bytes: Annotated[int, Meta(ge=0)] | None
    created_at: Timestamp
    created_by: _ActorModel | None
    redacted_at: Timestamp | None
    redacted_by: _ActorModel | None
    type: Literal["memory_version"] = "memory_version"


class MemoryVersionPageModel(MemoryStoreResponse, frozen=True):
    data: list[MemoryVersionModel]
    next_page: str | None


_ID_FIELDS: Final = {
    ActorKind.SESSION: "session_id",
    ActorKind.API: "api_key_id",
    ActorKind.USER: "user_id",
}


def _actor_to_model(actor: MemoryActor | None) -> dict[str, str] | None:
    return None if actor is None else {"type": actor.kind.value, _ID_FIELDS[actor.kind]: actor.id}


def _to_model(view: VersionView) -> MemoryVersionModel:
    version, redaction = view.version, view.redaction
    row, scope = version.row, version.scope
    blob = row.head.entry.blob if row.head.entry and redaction is None else None
    return MemoryVersionModel(
        id=version_id(scope, row.head),
        memory_id=memory_id(version.file_id),
        memory_store_id=store_id(scope.name),
        operation=version.operation,
        path=memory_path(row.head.path) if redaction is None else None,
        content=view.content,
        content_sha256=blob.digest.removeprefix("sha256:") if blob else None,
        content_size_bytes=blob.size if blob else None,
        created_at=rfc3339(row.head.at),
        created_by=_actor_to_model(memory_actor(row.author, row.run)),
        redacted_at=rfc3339(redaction.at) if redaction else None,
        redacted_by=_actor_to_model(memory_actor(redaction.by)) if redaction else None,
    )


def _filter(query: MemoryVersionListQuery) -> VersionFilter:
    author = query.api_key_id if query.service_account_id is None else _SERVICE_ACCOUNTS
    return VersionFilter(
        None if query.memory_id is None else parse_memory_id(query.memory_id),
        query.operation,
        query.session_id,
        author,
        parse_time("created_at[gte]", query.created_since),
        parse_time("created_at[lte]", query.created_until),
    )


def _version_key(page: str) -> str | None:
    """Key of the last version of the previous page. Raises ValidationError."""
    key = decode_page(page)
    if key and not _VERSION_KEY.fullmatch(key):
        raise ValidationError("page is not the next_page of this list")
    return key or None


@endpoint(
    "GET",
    _PATH,
    id="memory_stores_list_versions",
    query=MemoryVersionListQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: MemoryVersionPageModel},
    refusals=(ValidationError, NotFound),
    **ENDPOINT_OPTIONS,
)
async def list_versions(request: Request[None, MemoryVersionListQuery]) -> Response:
    """List the versions of a store's memories, newest first, deleted ones included.

    A page has at most 20 rows with `view=full`.
    """
    query, is_full = request.query, request.query.view == "full"
    page = await memory_versions.list_versions(
        request.ports,
        request.actor,
        request.params["store"],
        _filter(query),
        before=_version_key(query.page),
        limit=min(query.limit, MAX_FULL_PAGE) if is_full else query.limit,
        with_content=is_full,
    )
    models = [_to_model(view) for view in page.items]
    return Response.json(MemoryVersionPageModel(data=models, next_page=encode_page(page.next)))


@endpoint(
    "GET",
    f"{_PATH}/{{version}}",
    id="memory_stores_get_version",
    query=MemoryViewQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: MemoryVersionModel},
    refusals=(NotFound,),
    **ENDPOINT_OPTIONS,
)
async def get(request: Request[None, MemoryViewQuery]) -> Response:
    """Get a version, with its content unless `view` is `basic`."""
    view = await memory_versions.get(
        request.ports,
        request.actor,
        request.params["store"],
        request.params["version"],
        with_content=request.query.view != "basic",
    )
    return Response.json(_to_model(view))


@endpoint(
    "POST",
    f"{_PATH}/{{version}}/redact",
    id="memory_stores_redact_version",
    permission=Permission.TENANT_ADMIN,
    responses={200: MemoryVersionModel},
    refusals=(NotFound, Busy, Conflict),
    idempotent=True,
    **ENDPOINT_OPTIONS,
)
async def redact(request: Request) -> Response:
    """Remove the content of a version for ever; its id, author and time stay.

    A current version is replaced by a new one first, whose text is `[REDACTED]`.
    """
    view = await memory_versions.redact(
        request.ports, request.actor, request.params["store"], request.params["version"]
    )
    return Response.json(_to_model(view))


ENDPOINTS: Final = (list_versions, get, redact)
