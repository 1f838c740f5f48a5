"""Agents: each has files of its own, over its template's and the defaults."""

from __future__ import annotations

from dataclasses import dataclass

from carrel.actions.keys import of_agent
from carrel.actions.records import (
    Page,
    became,
    commit_changes,
    each,
    find_named,
    insist,
    page,
    shelf,
)
from carrel.actions.templates import of_template
from carrel.core.access import Actor
from carrel.core.record import Change, Noun, Record, handle
from carrel.core.tree import ReceiptKey
from carrel.core.words import free_slug, line
from carrel.ports import World


@dataclass(frozen=True, slots=True)
class NewAgent:
    slug: str
    name: str
    template: str | None = None
    """By id or slug."""


async def get(world: World, actor: Actor, name: str) -> Record:
    """By id or slug. Raises Missing."""
    return await find_named(world, actor.tenant, Noun.AGENT, name)


async def listing(
    world: World, actor: Actor, *, cursor: str = "", limit: int = 100
) -> Page[Record]:
    return await page(world, actor.tenant, Noun.AGENT, cursor=cursor, limit=limit)


async def create(
    world: World, actor: Actor, new: NewAgent, receipt: ReceiptKey | None = None
) -> Record:
    """Raises Taken where another has the slug, Missing where there is no such template."""
    slug, name = free_slug(new.slug), line(new.name, "name")
    id = world.clock.fresh("agt")

    async def attempt() -> Record:
        rests, template = [], None
        if new.template is not None:
            rests = [await shelf(world, actor.tenant, Noun.TEMPLATE)]
            template = (await find_named(world, actor.tenant, Noun.TEMPLATE, new.template)).id
        change = Change(
            actor.tenant,
            Noun.AGENT,
            id,
            {"slug": slug, "name": name, "templateId": template},
            expected=0,
            handles=(handle(actor.tenant, Noun.AGENT, "slug", slug),),
            links=(of_template(template),) if template else (),
        )
        at = await commit_changes(
            world, actor.name, "create an agent", [change], shelves=rests, receipt=receipt
        )
        return became(change, at)

    return await insist(attempt)


async def delete(world: World, actor: Actor, name: str, receipt: ReceiptKey | None = None) -> None:
    """Remove an agent and the keys that are bound to it."""

    async def attempt() -> None:
        rests = await shelf(world, actor.tenant, Noun.KEY)
        was = await get(world, actor, name)
        gone = [was]
        gone += [key async for key in each(world, was.tenant, Noun.KEY, of_agent(was.id))]
        changes = [Change(one.tenant, one.noun, one.id, None, one.revision) for one in gone]
        await commit_changes(
            world, actor.name, "delete an agent", changes, shelves=[rests], receipt=receipt
        )

    await insist(attempt)
