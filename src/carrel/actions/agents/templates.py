"""Templates: what many agents have in common."""

from __future__ import annotations

from collections.abc import Mapping

from carrel.actions.records import (
    Page,
    collection_revision,
    commit_changes,
    find_by_id_or_slug,
    page,
    record_after,
    retry_while_busy,
)
from carrel.core.access import Actor
from carrel.core.agents.agent import by_template_index
from carrel.core.errors import Conflict
from carrel.core.store.record import Record, RecordChange, RecordType, unique_key
from carrel.core.store.tree import IdempotencyKey
from carrel.core.text_validation import free_slug, single_line
from carrel.ports import Ports


async def get(ports: Ports, actor: Actor, name: str) -> Record:
    """By id or slug. Raises Missing."""
    return await find_by_id_or_slug(ports, actor.tenant, RecordType.TEMPLATE, name)


async def listing(
    ports: Ports, actor: Actor, *, cursor: str = "", limit: int = 100
) -> Page[Record]:
    return await page(ports, actor.tenant, RecordType.TEMPLATE, cursor=cursor, limit=limit)


async def create(
    ports: Ports, actor: Actor, slug: str, name: str, receipt: IdempotencyKey | None = None
) -> Record:
    """Raises Taken where another has the slug."""
    change = RecordChange(
        actor.tenant,
        RecordType.TEMPLATE,
        ports.clock.new_id("tpl"),
        {"slug": free_slug(slug), "name": single_line(name, "name")},
        expected=0,
        unique_keys=(unique_key(actor.tenant, RecordType.TEMPLATE, "slug", slug),),
    )
    at = await commit_changes(ports, actor.name, "create a template", [change], receipt=receipt)
    return record_after(change, at)


async def patch(
    ports: Ports,
    actor: Actor,
    name: str,
    given: Mapping[str, str],
    receipt: IdempotencyKey | None = None,
) -> Record:
    """Give a template another slug or name; agents go on following it.

    Raises Taken where another has the slug.
    """

    async def attempt() -> Record:
        was = await get(ports, actor, name)
        body = {**was.body, **given}
        slug, body["name"] = free_slug(body["slug"]), single_line(body["name"], "name")
        if body == was.body:
            return was
        unique_keys = (unique_key(was.tenant, RecordType.TEMPLATE, "slug", slug),)
        change = RecordChange(
            was.tenant, RecordType.TEMPLATE, was.id, body, was.revision, unique_keys=unique_keys
        )
        at = await commit_changes(ports, actor.name, "change a template", [change], receipt=receipt)
        return record_after(change, at, was)

    return await retry_while_busy(attempt)


async def delete(
    ports: Ports, actor: Actor, name: str, receipt: IdempotencyKey | None = None
) -> None:
    """Raises Taken where agents follow it."""

    async def attempt() -> None:
        rests = await collection_revision(ports, actor.tenant, RecordType.AGENT)
        was = await get(ports, actor, name)
        link = by_template_index(was.id)
        if await ports.records.list(actor.tenant, RecordType.AGENT, link=link, limit=1):
            raise Conflict("agents follow this template")
        change = RecordChange(was.tenant, RecordType.TEMPLATE, was.id, None, was.revision)
        await commit_changes(
            ports,
            actor.name,
            "delete a template",
            [change],
            collection_revisions=[rests],
            receipt=receipt,
        )

    await retry_while_busy(attempt)
