"""Changing records: every change is a commit, refused where it would clash."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Generic, TypeVar

from msgspec import Struct

from carrel.core.errors import Busy, Malformed, Missing, Taken
from carrel.core.identifiers import Moment, identifier
from carrel.core.store.record import Change, Noun, Record, Shelf, handle
from carrel.core.store.tree import Applied, Commit, Conflict, Expect, ReceiptKey, Write
from carrel.ports import World

_ATTEMPTS: Final = 10
_TOGETHER: Final = 100
_ID: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
PREFIXES: Final[Mapping[Noun, str]] = {
    Noun.PERSON: "per",
    Noun.KEY: "key",
    Noun.WEBHOOK: "whk",
    Noun.TEMPLATE: "tpl",
    Noun.AGENT: "agt",
    Noun.SANDBOX: "sb",
    Noun.WORKSPACE: "ws",
    Noun.APPROVAL: "apr",
}
"""What ids begin with, as World.clock makes them."""

Item = TypeVar("Item")


class Drafts(Struct, frozen=True):
    """Files to be written with a change, and what they were written from."""

    writes: tuple[Write, ...] = ()
    expects: tuple[Expect, ...] = ()

    def __add__(self, other: Drafts) -> Drafts:
        return Drafts(self.writes + other.writes, self.expects + other.expects)


NO_DRAFTS: Final = Drafts()


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    items: tuple[Item, ...]
    next: str | None
    """Where the following page begins, None on the last."""


async def find(world: World, tenant: str, noun: Noun, id: str) -> Record:
    """Raises Missing, also for what could be no id."""
    [record] = await world.records.get(tenant, noun, [_possible(noun, id)])
    if record is None:
        raise Missing(f"there is no {noun} {id}")
    return record


async def find_named(world: World, tenant: str, noun: Noun, name: str) -> Record:
    """A record by its id or by its slug: ids have a ``_``, and no slug has one."""
    _possible(noun, name)
    if "_" in name:
        [record] = await world.records.get(tenant, noun, [name])
    else:
        [record] = await world.records.named([handle(tenant, noun, "slug", name)])
    if record is None:
        raise Missing(f"there is no {noun} {name}")
    return record


def _possible(noun: Noun, id: str) -> str:
    try:
        return identifier(id)
    except Malformed:
        raise Missing(f"there is no {noun} of that id") from None


def issued(cursor: str, prefix: str | None) -> str:
    """A cursor that a page may have given out: the id of its last, which may be gone since.

    Raises Malformed. Without a prefix people choose the ids, and any that can be one will do.
    """
    possible = _ID if prefix is None else rf"{prefix}_[0-9a-f]{{24}}"
    if cursor and not re.fullmatch(possible, cursor):
        raise Malformed("the cursor is not the next of a page of this list")
    return cursor


async def page(
    world: World, tenant: str, noun: Noun, *, link: str = "", cursor: str = "", limit: int = 100
) -> Page[Record]:
    after = issued(cursor, PREFIXES.get(noun))
    found = await world.records.list(tenant, noun, link=link, after=after, limit=limit + 1)
    more = len(found) > limit
    return Page(found[:limit], found[limit - 1].id if more else None)


async def each(world: World, tenant: str, noun: Noun, link: str = "") -> AsyncIterator[Record]:
    """Every record of a noun, however many."""
    after = ""
    while found := await world.records.list(tenant, noun, link=link, after=after, limit=500):
        for record in found:
            yield record
        after = found[-1].id


async def shelf(world: World, tenant: str, noun: Noun) -> Shelf:
    """All records of a noun as they are now, for a commit that rests on them: ask before reading.

    Every decision made from what is read afterwards is refused if any of them changes meanwhile.
    """
    [found] = await shelves(world, tenant, (noun,))
    return found


async def shelves(world: World, tenant: str, nouns: Iterable[Noun]) -> list[Shelf]:
    """The same for several nouns."""
    asked = tuple(nouns)
    seen = await world.records.shelves([(tenant, noun) for noun in asked])
    return [Shelf(tenant, noun, at) for noun, at in zip(asked, seen, strict=True)]


async def insist(attempt: Callable[[], Awaitable[Item]]) -> Item:
    """Read and decide again for as long as others change what it rests on; Busy in the end."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return await attempt()
        except Busy:
            continue
    return await attempt()


async def commit_changes(  # noqa: PLR0913 - a change and all that goes with it, by name
    world: World,
    by: str,
    why: str,
    changes: Sequence[Change],
    *,
    shelves: Sequence[Shelf] = (),
    receipt: ReceiptKey | None = None,
    drafts: Drafts = NO_DRAFTS,
    keep: int = 100,
) -> Moment:
    """Apply all changes or none, with the files that follow from them, and say when.

    Raises Taken for a name another has, else Busy.
    """
    at = world.clock.now()
    commit = Commit(
        drafts.writes,
        by,
        why,
        at,
        expects=drafts.expects,
        changes=tuple(changes),
        shelves=tuple(shelves),
        receipt=receipt,
        keep=keep,
    )
    [outcome] = await world.trees.commit([commit])
    if isinstance(outcome, Applied):
        return at
    if isinstance(outcome, Conflict) and outcome.handle:
        what, _, value = outcome.handle.split("/", 2)[2].partition(":")
        raise Taken(f"another has the {what} {value}", **{what: value})
    if isinstance(outcome, Conflict) and isinstance(outcome.expected, Change):
        change = outcome.expected
        if change.expected == 0:
            raise Taken(f"there is a {change.noun} {change.id} already")
        raise Busy(f"the {change.noun} {change.id} was changed by another at the same time")
    raise Busy("others were changing the same things at the same time")


def became(change: Change, at: Moment, was: Record | None = None) -> Record:
    """The record that a change made at that moment."""
    assert change.body is not None
    return Record(
        change.tenant,
        change.noun,
        change.id,
        revision=was.revision + 1 if was else 1,
        body=change.body,
        created=was.created if was else at,
        changed=at,
    )


async def drop(world: World, by: str, why: str, records: Iterable[Record]) -> int:
    """Remove records as they were seen, some at a time; how many. What has changed since stays."""
    gone = 0
    ordered = sorted(records, key=lambda record: record.tenant)
    for _, theirs in groupby(ordered, lambda record: record.tenant):
        changes = [Change(one.tenant, one.noun, one.id, None, one.revision) for one in theirs]
        for start in range(0, len(changes), _TOGETHER):
            some = changes[start : start + _TOGETHER]
            with suppress(Busy):
                await commit_changes(world, by, why, some)
                gone += len(some)
    return gone
