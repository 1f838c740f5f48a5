"""REST endpoints for items, the key-value entries agents share."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta

from carrel.actions import items
from carrel.actions.items import ItemRow as Row
from carrel.actions.items import ItemWriteOptions, StoredItem
from carrel.core import items as core
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
from carrel.core.overlay.write_condition import parse_condition
from carrel.server.http.endpoint import (
    IF_ABSENT,
    IF_MATCH,
    IF_NONE_MATCH,
    Request,
    RequestModel,
    ResponseModel,
    endpoint,
)
from carrel.server.http.not_modified import etag_matches, not_modified
from carrel.server.http.query_fields import PageQuery, Total
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import PositiveInt, Rfc3339, rfc3339
from carrel.server.rest.files.files import REASON_HEADER, RUN_HEADER, parse_reason

_TAG: Final = "Shared items"
_COLLECTION_PATH: Final = "/v1/agents/{id}/items"
_ITEM_PATH: Final = _COLLECTION_PATH + "/{key...}"
ItemKey = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=core.MAX_KEY_LENGTH,
        description="Any characters except control characters; slashes may be percent-encoded.",
    ),
]
_KEY_PARAM: Final = {"key": ItemKey}


class ItemListQuery(PageQuery, frozen=True):
    prefix: Annotated[str, Meta(max_length=core.MAX_KEY_LENGTH)] = ""


class ItemQuery(RequestModel, frozen=True):
    version: PositiveInt | None = None


class PutItemBody(RequestModel, frozen=True):
    value: Annotated[str, Meta(max_length=core.MAX_VALUE_BYTES)]
    """Text of at most 256 KiB; structured values as JSON."""


class ItemSummaryModel(ResponseModel, frozen=True):
    """An item without its full value."""

    key: str
    preview: str
    """The first 100 characters of the value, followed by `...` if it is longer."""
    created_by: str
    """Id of the agent or person that created the item."""
    created_at: Rfc3339
    updated_at: Rfc3339
    version: PositiveInt
    etag: str


class ItemModel(ResponseModel, frozen=True):
    key: str
    value: str
    created_by: str
    created_at: Rfc3339
    updated_at: Rfc3339
    version: PositiveInt
    etag: str


class ItemPageModel(ResponseModel, frozen=True):
    items: list[ItemSummaryModel]
    next: str | None
    total: Total


def _row_to_model(row: Row) -> ItemSummaryModel:
    return ItemSummaryModel(preview=row.preview, **_common_fields(row.item))


def _common_fields(item: core.Item) -> dict[str, Any]:
    return {
        "key": item.key,
        "created_by": item.created_by,
        "created_at": rfc3339(item.created_at),
        "updated_at": rfc3339(item.updated_at),
        "version": item.version,
        "etag": item.etag,
    }


def _item_response(stored: StoredItem) -> Response:
    headers = {"ETag": stored.item.etag, "Cache-Control": "private, no-cache"}
    if stored.warned:
        headers["Carrel-Warning"] = "looks like a secret: " + ", ".join(stored.warned)
    return Response.json(
        ItemModel(value=stored.value, **_common_fields(stored.item)), headers=headers
    )


def _write_options(request: Request[Any, Any]) -> ItemWriteOptions:
    return ItemWriteOptions(
        condition=parse_condition(request.header(b"if-match"), request.header(b"if-none-match")),
        reason=parse_reason(request),
        run=request.header(b"carrel-run"),
        idempotency_key=request.idempotency_key,
    )


@endpoint(
    "GET",
    _COLLECTION_PATH,
    query=ItemListQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: ItemPageModel},
    refusals=(ValidationError, Forbidden, NotFound, Conflict),
    id="items_list",
    tag=_TAG,
)
async def list_items(request: Request[None, ItemListQuery]) -> Response:
    """List an agent's shared items, most recently written first.

    Items of a private agent belong to a person: its `ownerId`, else its paired human, else the
    caller.
    """
    query = request.query
    page = await items.list_items(
        request.ports,
        request.actor,
        request.params["id"],
        prefix=query.prefix,
        cursor=query.cursor,
        limit=query.limit,
    )
    return Response.json(
        ItemPageModel(
            items=[_row_to_model(row) for row in page.items], next=page.next, total=page.total
        )
    )


@endpoint(
    "GET",
    _ITEM_PATH,
    query=ItemQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: ItemModel, 304: None},
    refusals=(ValidationError, Forbidden, NotFound, Conflict),
    headers=(IF_NONE_MATCH,),
    response_headers=("ETag",),
    params=_KEY_PARAM,
    id="items_get",
    tag=_TAG,
)
async def get(request: Request[None, ItemQuery]) -> Response:
    """Get an item, at its current or an earlier version."""
    return await _get_item(request, request.query.version)


async def _get_item(request: Request[Any, Any], version: int | None) -> Response:
    name, key = request.params["id"], request.params["key"]
    stored = await items.get(request.ports, request.actor, name, key, version)
    if etag_matches(request, stored.item.etag):
        return not_modified(stored.item.etag)
    return _item_response(stored)


async def _rebuild_put(request: Request[PutItemBody], versions: tuple[int, ...]) -> Response:
    name, key = request.params["id"], request.params["key"]
    return _item_response(await items.get(request.ports, request.actor, name, key, versions[0]))


@endpoint(
    "PUT",
    _ITEM_PATH,
    body=PutItemBody,
    permission=Permission.WORKSPACE_WRITE,
    responses={200: ItemModel},
    refusals=(
        ValidationError,
        Forbidden,
        NotFound,
        WorkspaceConflict,
        WorkspaceTooLarge,
        Conflict,
        Busy,
    ),
    headers=(IF_MATCH, IF_ABSENT, RUN_HEADER, REASON_HEADER),
    response_headers=("ETag", "Carrel-Warning"),
    params=_KEY_PARAM,
    id="items_put",
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_put,
)
async def put(request: Request[PutItemBody]) -> Response:
    """Create or replace an item. The original creator is kept."""
    name, key = request.params["id"], request.params["key"]
    return _item_response(
        await items.put(
            request.ports, request.actor, name, key, request.body.value, _write_options(request)
        )
    )


async def _rebuild_delete(request: Request, versions: tuple[int, ...]) -> Response:
    return Response.empty(204)


@endpoint(
    "DELETE",
    _ITEM_PATH,
    permission=Permission.WORKSPACE_WRITE,
    responses={204: None},
    refusals=(ValidationError, Forbidden, NotFound, WorkspaceConflict, Conflict, Busy),
    headers=(IF_MATCH, IF_ABSENT, RUN_HEADER, REASON_HEADER),
    params=_KEY_PARAM,
    id="items_delete",
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_delete,
)
async def delete(request: Request) -> Response:
    """Delete an item for everyone who shares it."""
    await items.delete(
        request.ports,
        request.actor,
        request.params["id"],
        request.params["key"],
        _write_options(request),
    )
    return Response.empty(204)


ENDPOINTS: Final = (list_items, get, put, delete)
