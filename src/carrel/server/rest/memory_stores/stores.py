"""REST endpoints for memory stores."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field

from carrel.actions.memory_stores import stores
from carrel.actions.memory_stores.stores import StoreFilter, StorePatch
from carrel.actions.records import validate_cursor
from carrel.actions.sandbox import account_records
from carrel.actions.sandbox.workspaces import WORKSPACE_TYPE
from carrel.core.access import Permission
from carrel.core.errors import Busy, NotFound, ValidationError
from carrel.core.memory_stores.object_ids import store_id
from carrel.core.memory_stores.store_fields import (
    MAX_DESCRIPTION_LENGTH,
    MAX_KEY_LENGTH,
    MAX_NAME_LENGTH,
    MAX_PAIRS,
    MAX_VALUE_LENGTH,
)
from carrel.core.sandbox.account_record import account_from_record
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import rfc3339
from carrel.server.rest.memory_stores.memory_store_dialect import (
    ENDPOINT_OPTIONS,
    MemoryPageQuery,
    MemoryStoreRequest,
    MemoryStoreResponse,
    StoreId,
    Timestamp,
    decode_page,
    encode_page,
    parse_time,
)

_PATH: Final = "/v1/memory_stores"
_Name = Annotated[
    str, Meta(min_length=1, max_length=MAX_NAME_LENGTH, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")
]
_Description = Annotated[str, Meta(max_length=MAX_DESCRIPTION_LENGTH)]
_Key = Annotated[str, Meta(min_length=1, max_length=MAX_KEY_LENGTH)]
_Value = Annotated[str, Meta(max_length=MAX_VALUE_LENGTH)]


class CreateMemoryStoreBody(MemoryStoreRequest, frozen=True):
    name: _Name
    description: _Description | None = None
    metadata: Annotated[dict[_Key, _Value], Meta(max_length=MAX_PAIRS)] | None = None


class UpdateMemoryStoreBody(MemoryStoreRequest, frozen=True):
    """What is absent or null stays; null for a key of the metadata removes it."""

    name: _Name | None = None
    description: _Description | None = None
    metadata: dict[_Key, _Value | None] | None = None


class MemoryStoreListQuery(MemoryPageQuery, frozen=True):
    include_archived: bool = False
    created_since: Timestamp | None = field(name="created_at[gte]", default=None)
    created_until: Timestamp | None = field(name="created_at[lte]", default=None)


class MemoryStoreModel(MemoryStoreResponse, frozen=True):
    """A shared workspace as a memory store."""

    id: StoreId
    name: str
    description: str
    metadata: dict[str, str]
    created_at: Timestamp
    updated_at: Timestamp
    archived_at: Timestamp | None
    type: Literal["memory_store"] = "memory_store"


class MemoryStorePageModel(MemoryStoreResponse, frozen=True):
    data: list[MemoryStoreModel]
    next_page: str | None


class DeletedMemoryStoreModel(MemoryStoreResponse, frozen=True):
    id: StoreId
    type: Literal["memory_store_deleted"] = "memory_store_deleted"


def _to_model(record: Record) -> MemoryStoreModel:
    workspace = account_from_record(record)
    return MemoryStoreModel(
        id=store_id(record.id),
        name=workspace.name,
        description=workspace.description or "",
        metadata=dict(workspace.metadata or {}),
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
        archived_at=rfc3339(workspace.archived_at) if workspace.archived_at else None,
    )


def _patch(body: CreateMemoryStoreBody | UpdateMemoryStoreBody) -> StorePatch:
    return StorePatch(body.name, body.description, body.metadata)


async def _rebuild_created(request: Request[Any], versions: tuple[int, ...]) -> Response:
    assert request.idempotency_key is not None
    record = await account_records.get_created(
        request.ports, request.actor, WORKSPACE_TYPE, request.idempotency_key
    )
    return Response.json(_to_model(record))


async def _rebuild_changed(request: Request[Any], versions: tuple[int, ...]) -> Response:
    record = await stores.get(request.ports, request.actor, request.params["store"])
    return Response.json(_to_model(record))


async def _rebuild_deleted(request: Request[Any], versions: tuple[int, ...] = ()) -> Response:
    return Response.json(DeletedMemoryStoreModel(id=request.params["store"]))


@endpoint(
    "POST",
    _PATH,
    id="memory_stores_create",
    body=CreateMemoryStoreBody,
    permission=Permission.TENANT_ADMIN,
    responses={200: MemoryStoreModel},
    refusals=(ValidationError, Busy),
    idempotent=True,
    rebuild=_rebuild_created,
    **ENDPOINT_OPTIONS,
)
async def create(request: Request[CreateMemoryStoreBody]) -> Response:
    """Create a memory store, with a shared workspace of the same id after the prefix."""
    record = await stores.create(
        request.ports, request.actor, _patch(request.body), request.idempotency_key
    )
    return Response.json(_to_model(record))


@endpoint(
    "GET",
    _PATH,
    id="memory_stores_list",
    query=MemoryStoreListQuery,
    permission=Permission.TENANT_READ,
    responses={200: MemoryStorePageModel},
    refusals=(ValidationError,),
    **ENDPOINT_OPTIONS,
)
async def list_stores(request: Request[None, MemoryStoreListQuery]) -> Response:
    """List memory stores in the order of their creation. Every shared workspace is one."""
    query = request.query
    store_filter = StoreFilter(
        query.include_archived,
        parse_time("created_at[gte]", query.created_since),
        parse_time("created_at[lte]", query.created_until),
    )
    after = validate_cursor(decode_page(query.page), WORKSPACE_TYPE.prefix)
    page = await stores.list_stores(request.ports, request.actor, store_filter, after, query.limit)
    models = [_to_model(record) for record in page.items]
    return Response.json(MemoryStorePageModel(data=models, next_page=encode_page(page.next)))


@endpoint(
    "GET",
    f"{_PATH}/{{store}}",
    id="memory_stores_get",
    permission=Permission.TENANT_READ,
    responses={200: MemoryStoreModel},
    refusals=(NotFound,),
    **ENDPOINT_OPTIONS,
)
async def get(request: Request) -> Response:
    """Get a memory store."""
    record = await stores.get(request.ports, request.actor, request.params["store"])
    return Response.json(_to_model(record))


@endpoint(
    "POST",
    f"{_PATH}/{{store}}",
    id="memory_stores_update",
    body=UpdateMemoryStoreBody,
    permission=Permission.TENANT_ADMIN,
    responses={200: MemoryStoreModel},
    refusals=(ValidationError, NotFound, Busy),
    idempotent=True,
    rebuild=_rebuild_changed,
    **ENDPOINT_OPTIONS,
)
async def update(request: Request[UpdateMemoryStoreBody]) -> Response:
    """Change a memory store. An archived one cannot be changed."""
    record = await stores.update(
        request.ports,
        request.actor,
        request.params["store"],
        _patch(request.body),
        request.idempotency_key,
    )
    return Response.json(_to_model(record))


@endpoint(
    "POST",
    f"{_PATH}/{{store}}/archive",
    id="memory_stores_archive",
    permission=Permission.TENANT_ADMIN,
    responses={200: MemoryStoreModel},
    refusals=(NotFound, Busy),
    idempotent=True,
    rebuild=_rebuild_changed,
    **ENDPOINT_OPTIONS,
)
async def archive(request: Request) -> Response:
    """Archive a memory store for ever: its files can be read, deleted and redacted only."""
    record = await stores.archive(
        request.ports, request.actor, request.params["store"], request.idempotency_key
    )
    return Response.json(_to_model(record))


@endpoint(
    "DELETE",
    f"{_PATH}/{{store}}",
    id="memory_stores_delete",
    permission=Permission.TENANT_ADMIN,
    responses={200: DeletedMemoryStoreModel},
    refusals=(NotFound, Busy),
    idempotent=True,
    rebuild=_rebuild_deleted,
    **ENDPOINT_OPTIONS,
)
async def delete(request: Request) -> Response:
    """Delete a memory store and its shared workspace with all files."""
    await stores.delete(
        request.ports, request.actor, request.params["store"], request.idempotency_key
    )
    return await _rebuild_deleted(request)


ENDPOINTS: Final = (create, list_stores, get, update, archive, delete)
