"""REST endpoints for the memories of a memory store."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from carrel.actions.memory_stores import memories, memory_versions
from carrel.actions.memory_stores.memories import MemoryPatch, MemoryQuery
from carrel.actions.memory_stores.stored_memories import StoredMemory, load_texts
from carrel.core.access import Permission
from carrel.core.errors import (
    Busy,
    Conflict,
    Forbidden,
    NotFound,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.core.memory_stores.memory_listing import MemoryPrefix
from carrel.core.memory_stores.memory_paths import MAX_CONTENT_BYTES, memory_path
from carrel.core.memory_stores.object_ids import store_id, version_id
from carrel.server.http.endpoint import Request, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Sha256, rfc3339
from carrel.server.rest.memory_stores.memory_store_dialect import (
    ENDPOINT_OPTIONS,
    MAX_FULL_PAGE,
    MemoryId,
    MemoryPageQuery,
    MemoryStoreRequest,
    MemoryStoreResponse,
    StoreId,
    Timestamp,
    VersionId,
    View,
    decode_page,
    encode_page,
)

_PATH: Final = "/v1/memory_stores/{store}/memories"
_MAX_BODY_BYTES: Final = 6 * MAX_CONTENT_BYTES + 2**16
_WRITE_REFUSALS: Final = (
    *(ValidationError, Forbidden, NotFound, WorkspaceConflict, Conflict, Busy, WorkspaceTooLarge),
)
_Content = Annotated[str, Meta(description=f"At most {MAX_CONTENT_BYTES} bytes of UTF-8.")]
_Path = Annotated[
    str,
    Meta(
        min_length=2,
        max_length=1024,
        pattern="^/",
        description="At most 20 segments and 1024 bytes, in NFC.",
    ),
]


class CreateStoredMemoryBody(MemoryStoreRequest, frozen=True):
    path: _Path
    content: _Content | None
    """Null is an empty text."""


class MemoryPreconditionBody(MemoryStoreRequest, frozen=True):
    type: Literal["content_sha256"]
    content_sha256: Sha256 | None = None


class UpdateStoredMemoryBody(MemoryStoreRequest, frozen=True):
    """What is absent or null stays."""

    content: _Content | None = None
    path: _Path | None = None
    precondition: MemoryPreconditionBody | None = None


class MemoryViewQuery(MemoryStoreRequest, frozen=True):
    view: View | None = None


class StoredMemoryListQuery(MemoryPageQuery, frozen=True):
    path_prefix: Annotated[str, Meta(description="Starts and ends with `/`.")] | None = None
    depth: Annotated[int, Meta(ge=0, le=1, description="1 lists children only.")] = 0
    view: View = "basic"


class DeleteMemoryQuery(MemoryStoreRequest, frozen=True):
    expected_content_sha256: Sha256 | None = None


class StoredMemoryModel(MemoryStoreResponse, frozen=True, tag_field="type", tag="memory"):
    """A file of text as a memory."""

    id: MemoryId
    memory_store_id: StoreId
    memory_version_id: VersionId
    path: str
    content: str | None
    """Null with `view=basic`."""
    content_sha256: Sha256
    content_size_bytes: Annotated[int, Meta(ge=0)]
    created_at: Timestamp
    """Time of the oldest version that is kept."""
    updated_at: Timestamp


class MemoryPrefixModel(MemoryStoreResponse, frozen=True, tag_field="type", tag="memory_prefix"):
    """Directory that stands for the memories below it."""

    path: str


class StoredMemoryPageModel(MemoryStoreResponse, frozen=True):
    data: list[StoredMemoryModel | MemoryPrefixModel]
    next_page: str | None


class DeletedMemoryModel(MemoryStoreResponse, frozen=True):
    id: MemoryId
    type: Literal["memory_deleted"] = "memory_deleted"


def _to_model(memory: StoredMemory, content: str | None) -> StoredMemoryModel:
    head, blob = memory.head, memory.blob
    return StoredMemoryModel(
        id=memory.id,
        memory_store_id=store_id(memory.scope.name),
        memory_version_id=version_id(memory.scope, head),
        path=memory_path(head.path),
        content=content,
        content_sha256=blob.digest.removeprefix("sha256:"),
        content_size_bytes=blob.size,
        created_at=rfc3339(memory.created_at),
        updated_at=rfc3339(head.at),
    )


async def _respond(request: Request[Any, MemoryViewQuery], memory: StoredMemory) -> Response:
    """Response to a write, with the content only if the query asks for it."""
    content = None
    if request.query.view == "full":
        content = (await load_texts(request.ports, [memory.blob])).get(memory.blob)
    return Response.json(_to_model(memory, content))


async def _rebuild_written(
    request: Request[Any, MemoryViewQuery], versions: tuple[int, ...]
) -> Response:
    """Respond with what the committed revision has."""
    memory = await memory_versions.load_written(
        request.ports, request.actor, request.params["store"], request.committed_revision
    )
    return await _respond(request, memory)


async def _rebuild_deleted(request: Request[Any, Any], versions: tuple[int, ...] = ()) -> Response:
    return Response.json(DeletedMemoryModel(id=request.params["memory"]))


@endpoint(
    "POST",
    _PATH,
    id="memory_stores_create_memory",
    body=CreateStoredMemoryBody,
    query=MemoryViewQuery,
    permission=Permission.WORKSPACE_WRITE,
    responses={200: StoredMemoryModel},
    refusals=_WRITE_REFUSALS,
    max_body=_MAX_BODY_BYTES,
    idempotent=True,
    rebuild=_rebuild_written,
    **ENDPOINT_OPTIONS,
)
async def create(request: Request[CreateStoredMemoryBody, MemoryViewQuery]) -> Response:
    """Create a memory. 409 if there is one at the path, above or below it."""
    memory = await memories.create(
        request.ports,
        request.actor,
        request.params["store"],
        request.body.path,
        request.body.content,
        idempotency_key=request.idempotency_key,
    )
    return await _respond(request, memory)


@endpoint(
    "GET",
    _PATH,
    id="memory_stores_list_memories",
    query=StoredMemoryListQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: StoredMemoryPageModel},
    refusals=(ValidationError, NotFound),
    **ENDPOINT_OPTIONS,
)
async def list_memories(request: Request[None, StoredMemoryListQuery]) -> Response:
    """List memories by path; with `depth=1` children only, and the directories beside them.

    A page has at most 20 rows with `view=full`. Files of the workspace that are not text, or larger
    than a memory may be, are not listed.
    """
    query, is_full = request.query, request.query.view == "full"
    page = await memories.list_memories(
        request.ports,
        request.actor,
        request.params["store"],
        MemoryQuery(
            query.path_prefix,
            query.depth == 1,
            decode_page(query.page),
            min(query.limit, MAX_FULL_PAGE) if is_full else query.limit,
            is_full,
        ),
    )
    rows: list[StoredMemoryModel | MemoryPrefixModel] = [
        MemoryPrefixModel(path=f"/{item.path}")
        if isinstance(item, MemoryPrefix)
        else _to_model(item, item.content)
        for item in page.items
    ]
    return Response.json(StoredMemoryPageModel(data=rows, next_page=encode_page(page.next)))


@endpoint(
    "GET",
    f"{_PATH}/{{memory}}",
    id="memory_stores_get_memory",
    query=MemoryViewQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: StoredMemoryModel},
    refusals=(NotFound,),
    **ENDPOINT_OPTIONS,
)
async def get(request: Request[None, MemoryViewQuery]) -> Response:
    """Get a memory, with its content unless `view` is `basic`."""
    memory = await memories.get(
        request.ports,
        request.actor,
        request.params["store"],
        request.params["memory"],
        with_content=request.query.view != "basic",
    )
    return Response.json(_to_model(memory, memory.content))


@endpoint(
    "POST",
    f"{_PATH}/{{memory}}",
    id="memory_stores_update_memory",
    body=UpdateStoredMemoryBody,
    query=MemoryViewQuery,
    permission=Permission.WORKSPACE_WRITE,
    responses={200: StoredMemoryModel},
    refusals=_WRITE_REFUSALS,
    max_body=_MAX_BODY_BYTES,
    idempotent=True,
    rebuild=_rebuild_written,
    **ENDPOINT_OPTIONS,
)
async def update(request: Request[UpdateStoredMemoryBody, MemoryViewQuery]) -> Response:
    """Replace the content of a memory, rename it, or both. Also requires `workspace:read`.

    409 if its content is not the expected one, or the new path is not free. What is so already
    stays as it is, without a new version.
    """
    body = request.body
    expected = None if body.precondition is None else body.precondition.content_sha256
    memory = await memories.update(
        request.ports,
        request.actor,
        request.params["store"],
        request.params["memory"],
        MemoryPatch(body.content, body.path, expected),
        idempotency_key=request.idempotency_key,
    )
    return await _respond(request, memory)


@endpoint(
    "DELETE",
    f"{_PATH}/{{memory}}",
    id="memory_stores_delete_memory",
    query=DeleteMemoryQuery,
    permission=Permission.WORKSPACE_WRITE,
    responses={200: DeletedMemoryModel},
    refusals=(ValidationError, NotFound, WorkspaceConflict, Busy),
    idempotent=True,
    rebuild=_rebuild_deleted,
    **ENDPOINT_OPTIONS,
)
async def delete(request: Request[None, DeleteMemoryQuery]) -> Response:
    """Delete a memory; its versions stay. 409 if its content is not the expected one."""
    await memories.delete(
        request.ports,
        request.actor,
        request.params["store"],
        request.params["memory"],
        expected_sha256=request.query.expected_content_sha256,
        idempotency_key=request.idempotency_key,
    )
    return await _rebuild_deleted(request)


ENDPOINTS: Final = (create, list_memories, get, update, delete)
