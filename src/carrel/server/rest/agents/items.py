"""Shared items over HTTP: what the tools of agents do, for people."""

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
from carrel.core.overlay.edit import parse_condition
from carrel.server.http.conditional import matches, unchanged
from carrel.server.http.endpoint import (
    IF_ABSENT,
    IF_MATCH,
    IF_NONE_MATCH,
    Request,
    RequestModel,
    ResponseModel,
    endpoint,
)
from carrel.server.http.query_fields import PageQuery
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Number, When, rfc3339
from carrel.server.rest.files.files import REASON, RUN, reason_of

_TAG: Final = "Shared items"
_ALL: Final = "/v1/agents/{id}/items"
_ONE: Final = _ALL + "/{key...}"
Key = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=core.LONGEST_KEY,
        description="Any characters but control characters, slashes too, encoded or not.",
    ),
]
_KEY: Final = {"key": Key}


class ItemsQuery(PageQuery, frozen=True):
    prefix: Annotated[str, Meta(max_length=core.LONGEST_KEY)] = ""


class ItemQuery(RequestModel, frozen=True):
    version: Number | None = None


class NewItem(RequestModel, frozen=True):
    value: Annotated[str, Meta(max_length=core.LARGEST_VALUE)]
    """Any text of at most 256 KiB; JSON where it has structure."""


class ItemRow(ResponseModel, frozen=True):
    key: str
    preview: str
    """The first 100 characters of the value, and `...` where there are more."""
    created_by: str
    """Who wrote it first: the id of an agent, or of a person."""
    created_at: When
    updated_at: When
    version: Number
    etag: str


class Item(ResponseModel, frozen=True):
    key: str
    value: str
    created_by: str
    created_at: When
    updated_at: When
    version: Number
    etag: str


class Items(ResponseModel, frozen=True):
    items: list[ItemRow]
    next: str | None


def _row(row: Row) -> ItemRow:
    return ItemRow(preview=row.preview, **_facts(row.item))


def _facts(item: core.Item) -> dict[str, Any]:
    return {
        "key": item.key,
        "created_by": item.created_by,
        "created_at": rfc3339(item.created_at),
        "updated_at": rfc3339(item.updated_at),
        "version": item.version,
        "etag": item.etag,
    }


def _answer(kept: StoredItem) -> Response:
    headers = {"ETag": kept.item.etag, "Cache-Control": "private, no-cache"}
    if kept.warned:
        headers["Carrel-Warning"] = "looks like a secret: " + ", ".join(kept.warned)
    return Response.json(Item(value=kept.value, **_facts(kept.item)), headers=headers)


def _writing(call: Request[Any, Any]) -> ItemWriteOptions:
    return ItemWriteOptions(
        condition=parse_condition(call.header(b"if-match"), call.header(b"if-none-match")),
        why=reason_of(call),
        run=call.header(b"carrel-run"),
        receipt=call.receipt,
    )


@endpoint(
    "GET",
    _ALL,
    query=ItemsQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: Items},
    refusals=(ValidationError, Forbidden, NotFound, Conflict),
    id="items_list",
    tag=_TAG,
)
async def listing(call: Request[None, ItemsQuery]) -> Response:
    """List the items that an agent shares, the last written first.

    Those of a private agent are its person's: of its `ownerId`, else of the human whom it is
    paired with, else of the caller.
    """
    query = call.query
    page = await items.listing(
        call.ports,
        call.actor,
        call.params["id"],
        prefix=query.prefix,
        cursor=query.cursor,
        limit=query.limit,
    )
    return Response.json(Items(items=[_row(row) for row in page.items], next=page.next))


@endpoint(
    "GET",
    _ONE,
    query=ItemQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: Item, 304: None},
    refusals=(ValidationError, Forbidden, NotFound, Conflict),
    headers=(IF_NONE_MATCH,),
    response_headers=("ETag",),
    params=_KEY,
    id="items_get",
    tag=_TAG,
)
async def get(call: Request[None, ItemQuery]) -> Response:
    """Read one item, as it is now or as it was at a version."""
    return await _shown(call, call.query.version)


async def _shown(call: Request[Any, Any], version: int | None) -> Response:
    name, key = call.params["id"], call.params["key"]
    kept = await items.get(call.ports, call.actor, name, key, version)
    if matches(call, kept.item.etag):
        return unchanged(kept.item.etag)
    return _answer(kept)


async def _as_written(call: Request[NewItem], versions: tuple[int, ...]) -> Response:
    name, key = call.params["id"], call.params["key"]
    return _answer(await items.get(call.ports, call.actor, name, key, versions[0]))


@endpoint(
    "PUT",
    _ONE,
    body=NewItem,
    permission=Permission.WORKSPACE_WRITE,
    responses={200: Item},
    refusals=(
        ValidationError,
        Forbidden,
        NotFound,
        WorkspaceConflict,
        WorkspaceTooLarge,
        Conflict,
        Busy,
    ),
    headers=(IF_MATCH, IF_ABSENT, RUN, REASON),
    response_headers=("ETag", "Carrel-Warning"),
    params=_KEY,
    id="items_put",
    tag=_TAG,
    idempotent=True,
    rebuild=_as_written,
)
async def put(call: Request[NewItem]) -> Response:
    """Create or replace one item; who wrote it first stays its creator."""
    name, key = call.params["id"], call.params["key"]
    return _answer(
        await items.put(call.ports, call.actor, name, key, call.body.value, _writing(call))
    )


async def _gone(call: Request, versions: tuple[int, ...]) -> Response:
    return Response.empty(204)


@endpoint(
    "DELETE",
    _ONE,
    permission=Permission.WORKSPACE_WRITE,
    responses={204: None},
    refusals=(ValidationError, Forbidden, NotFound, WorkspaceConflict, Conflict, Busy),
    headers=(IF_MATCH, IF_ABSENT, RUN, REASON),
    params=_KEY,
    id="items_delete",
    tag=_TAG,
    idempotent=True,
    rebuild=_gone,
)
async def delete(call: Request) -> Response:
    """Remove one item, for all who share it."""
    await items.delete(
        call.ports, call.actor, call.params["id"], call.params["key"], _writing(call)
    )
    return Response.empty(204)


ENDPOINTS: Final = (listing, get, put, delete)
