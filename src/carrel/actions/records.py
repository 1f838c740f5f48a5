"""Changing records: every change is a commit, refused where it would clash."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from carrel.core.access import Actor
from carrel.core.errors import Busy, Missing, Taken
from carrel.core.record import Change, Noun, Record
from carrel.core.tree import Applied, Commit, Conflict
from carrel.ports import World

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    items: tuple[Item, ...]
    next: str | None
    """Where the following page begins, None on the last."""


async def find(world: World, tenant: str, noun: Noun, id: str) -> Record:
    [record] = await world.records.get(tenant, noun, [id])
    if record is None:
        raise Missing(f"there is no {noun} {id}")
    return record


async def page(
    world: World, tenant: str, noun: Noun, *, link: str = "", cursor: str = "", limit: int = 100
) -> Page[Record]:
    found = await world.records.list(tenant, noun, link=link, after=cursor, limit=limit + 1)
    more = len(found) > limit
    return Page(found[:limit], found[limit - 1].id if more else None)


async def each(world: World, tenant: str, noun: Noun, link: str = "") -> AsyncIterator[Record]:
    """Every record of a noun, however many."""
    after = ""
    while found := await world.records.list(tenant, noun, link=link, after=after, limit=500):
        for record in found:
            yield record
        after = found[-1].id


async def commit_changes(world: World, by: str, why: str, changes: Sequence[Change]) -> None:
    """Apply all changes or none. Raises Taken for a name another has, Busy for a lost race."""
    commit = Commit((), by, why, world.clock.now(), changes=tuple(changes))
    [outcome] = await world.trees.commit([commit])
    if isinstance(outcome, Applied):
        return
    if isinstance(outcome, Conflict) and outcome.handle:
        what, _, value = outcome.handle.rpartition("/")[2].partition(":")
        raise Taken(f"another has the {what} {value}", **{what: value})
    if isinstance(outcome, Conflict) and isinstance(outcome.expected, Change):
        change = outcome.expected
        if change.expected == 0:
            raise Taken(f"there is a {change.noun} {change.id} already")
        raise Busy(f"the {change.noun} {change.id} was changed by another at the same time")
    raise Busy("others were changing the same things at the same time")


async def put_record(
    world: World, actor: Actor, noun: Noun, id: str, body: dict[str, Any], *, why: str
) -> None:
    """Create or replace one record that has no other names."""
    change = Change(actor.tenant, noun, id, body)
    await commit_changes(world, actor.name, why, [change])
