"""What agents share: values under keys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel.actions import items
from carrel.actions.items import ItemWriteOptions, StoredItem
from carrel.core import items as core
from carrel.core.overlay.edit import WriteCondition
from carrel.core.text_validation import single_line
from carrel.server.python.caller import CallerContext, Resource, when


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    key: str
    preview: str
    """The first 100 characters of the value, and ``...`` where there are more."""
    created_by: str
    """Who wrote it first: the id of an agent, or of a person."""
    created_at: datetime
    updated_at: datetime
    version: int
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Item(ItemRow):
    value: str


def _facts(item: core.Item) -> dict[str, Any]:
    return {
        "key": item.key,
        "created_by": item.created_by,
        "created_at": when(item.created_at),
        "updated_at": when(item.updated_at),
        "version": item.version,
        "etag": item.etag,
    }


def _item(kept: StoredItem) -> Item:
    return Item(value=kept.value, preview=core.preview(kept.value), **_facts(kept.item))


class Items(Resource):
    """The items of one agent: its person's, or its own where it is shared."""

    def __init__(self, seat: CallerContext, agent: str) -> None:
        super().__init__(seat)
        self._agent = agent

    async def get(self, key: str, *, version: int | None = None) -> Item:
        """An item as it is now, or as it was at a version."""
        return _item(await items.get(self._ports, self._actor, self._agent, key, version))

    async def list(self, prefix: str = "") -> tuple[ItemRow, ...]:
        """All whose key starts so, the last written first."""
        page = await items.listing(self._ports, self._actor, self._agent, prefix=prefix)
        return tuple(ItemRow(preview=row.preview, **_facts(row.item)) for row in page.items)

    async def put(
        self,
        key: str,
        value: str,
        *,
        if_match: str | None = None,
        if_absent: bool = False,
        reason: str = "",
    ) -> Item:
        """Create or replace an item. Raises Stale where it is not as ``if_match`` says."""
        writing = _writing(if_match, if_absent, reason)
        kept = await items.put(self._ports, self._actor, self._agent, key, value, writing)
        return _item(kept)

    async def delete(self, key: str, *, if_match: str | None = None, reason: str = "") -> None:
        """Remove an item, for all who share it."""
        writing = _writing(if_match, False, reason)
        await items.delete(self._ports, self._actor, self._agent, key, writing)


def _writing(if_match: str | None, if_absent: bool, reason: str) -> ItemWriteOptions:
    etags = None if if_match is None else frozenset({if_match})
    return ItemWriteOptions(
        WriteCondition(etags, absent=if_absent), why=single_line(reason, "why") if reason else ""
    )
