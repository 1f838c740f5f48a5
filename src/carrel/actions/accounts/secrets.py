"""A tenant's secrets: kept sealed, so that they are recognised and redacted, and never shown."""

from __future__ import annotations

from carrel.actions.policy.tenant_rules import secret_context
from carrel.actions.records import Page, became, commit_changes, find, insist, page
from carrel.core.access import Actor
from carrel.core.errors import Malformed
from carrel.core.redaction.redactor import secret_problem
from carrel.core.store.record import Change, Noun, Record
from carrel.core.store.tree import ReceiptKey
from carrel.ports import World


async def get(world: World, actor: Actor, id: str) -> Record:
    return await find(world, actor.tenant, Noun.SECRET, id)


async def listing(
    world: World, actor: Actor, *, cursor: str = "", limit: int = 100
) -> Page[Record]:
    return await page(world, actor.tenant, Noun.SECRET, cursor=cursor, limit=limit)


async def put(
    world: World, actor: Actor, id: str, value: str, receipt: ReceiptKey | None = None
) -> Record:
    """Keep a value, or another in its place. Raises Malformed, without repeating it."""
    if problem := secret_problem(id, value):
        raise Malformed(problem)

    async def attempt() -> Record:
        [was] = await world.records.get(actor.tenant, Noun.SECRET, [id])
        sealed = world.vault.seal(value.encode(), secret_context(actor.tenant, id))
        expected = was.revision if was else None
        change = Change(actor.tenant, Noun.SECRET, id, {"sealed": sealed}, expected)
        why = "replace a secret" if was else "add a secret"
        at = await commit_changes(world, actor.name, why, [change], receipt=receipt)
        return became(change, at, was)

    return await insist(attempt)


async def delete(world: World, actor: Actor, id: str, receipt: ReceiptKey | None = None) -> None:
    async def attempt() -> None:
        was = await get(world, actor, id)
        change = Change(was.tenant, Noun.SECRET, was.id, None, was.revision)
        await commit_changes(world, actor.name, "remove a secret", [change], receipt=receipt)

    await insist(attempt)
