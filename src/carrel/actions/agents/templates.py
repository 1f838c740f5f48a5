"""Templates: what many agents have in common."""

from __future__ import annotations

from collections.abc import Mapping

from carrel.actions.records import Page, became, commit_changes, find_named, insist, page, shelf
from carrel.core.access import Actor
from carrel.core.agents.agent import of_template
from carrel.core.errors import Taken
from carrel.core.store.record import Change, Noun, Record, handle
from carrel.core.store.tree import ReceiptKey
from carrel.core.text_validation import free_slug, line
from carrel.ports import World


async def get(world: World, actor: Actor, name: str) -> Record:
    """By id or slug. Raises Missing."""
    return await find_named(world, actor.tenant, Noun.TEMPLATE, name)


async def listing(
    world: World, actor: Actor, *, cursor: str = "", limit: int = 100
) -> Page[Record]:
    return await page(world, actor.tenant, Noun.TEMPLATE, cursor=cursor, limit=limit)


async def create(
    world: World, actor: Actor, slug: str, name: str, receipt: ReceiptKey | None = None
) -> Record:
    """Raises Taken where another has the slug."""
    change = Change(
        actor.tenant,
        Noun.TEMPLATE,
        world.clock.fresh("tpl"),
        {"slug": free_slug(slug), "name": line(name, "name")},
        expected=0,
        handles=(handle(actor.tenant, Noun.TEMPLATE, "slug", slug),),
    )
    at = await commit_changes(world, actor.name, "create a template", [change], receipt=receipt)
    return became(change, at)


async def patch(
    world: World,
    actor: Actor,
    name: str,
    given: Mapping[str, str],
    receipt: ReceiptKey | None = None,
) -> Record:
    """Give a template another slug or name; agents go on following it.

    Raises Taken where another has the slug.
    """

    async def attempt() -> Record:
        was = await get(world, actor, name)
        body = {**was.body, **given}
        slug, body["name"] = free_slug(body["slug"]), line(body["name"], "name")
        if body == was.body:
            return was
        handles = (handle(was.tenant, Noun.TEMPLATE, "slug", slug),)
        change = Change(was.tenant, Noun.TEMPLATE, was.id, body, was.revision, handles=handles)
        at = await commit_changes(world, actor.name, "change a template", [change], receipt=receipt)
        return became(change, at, was)

    return await insist(attempt)


async def delete(world: World, actor: Actor, name: str, receipt: ReceiptKey | None = None) -> None:
    """Raises Taken where agents follow it."""

    async def attempt() -> None:
        rests = await shelf(world, actor.tenant, Noun.AGENT)
        was = await get(world, actor, name)
        link = of_template(was.id)
        if await world.records.list(actor.tenant, Noun.AGENT, link=link, limit=1):
            raise Taken("agents follow this template")
        change = Change(was.tenant, Noun.TEMPLATE, was.id, None, was.revision)
        await commit_changes(
            world, actor.name, "delete a template", [change], shelves=[rests], receipt=receipt
        )

    await insist(attempt)
