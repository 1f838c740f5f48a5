"""Templates: files shared by many agents."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import (
    Page,
    commit_changes,
    get_by_id_or_slug,
    list_page,
    load_collection_revision,
    record_after,
)
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor
from carrel.core.agents.agent import by_template_index
from carrel.core.agents.template import (
    TemplateRecord,
    template_change,
    template_from_record,
)
from carrel.core.errors import Conflict
from carrel.core.search.name_words import filter_by_name
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record, RecordType, deletion
from carrel.core.text_validation import parse_unreserved_slug, single_line
from carrel.ports import Ports


async def get(ports: Ports, actor: Actor, name: str) -> Record:
    """Get a template by id or slug. Raises NotFound."""
    return await get_by_id_or_slug(ports, actor.tenant, RecordType.TEMPLATE, name)


async def list_templates(
    ports: Ports, actor: Actor, *, q: str = "", cursor: str = "", limit: int = 100
) -> Page[Record]:
    """List templates by id; `q` finds words of name and slug by their beginnings."""
    matching = filter_by_name(q)
    return await list_page(
        ports, actor.tenant, RecordType.TEMPLATE, matching=matching, cursor=cursor, limit=limit
    )


async def create(
    ports: Ports, actor: Actor, slug: str, name: str, idempotency_key: IdempotencyKey | None = None
) -> Record:
    """Create a template. Raises Conflict if the slug is in use."""
    rules = await load_rules(ports, actor.tenant)
    slug, name = rules.redact_fields((slug, name))
    template = TemplateRecord(parse_unreserved_slug(slug), single_line(name, "name"))
    change = template_change(actor.tenant, ports.clock.new_id("tpl"), template)
    committed_at = await commit_changes(
        ports, actor, "create a template", [change], idempotency_key=idempotency_key
    )
    return record_after(change, committed_at)


@retry_on_conflict()
async def patch(
    ports: Ports,
    actor: Actor,
    name: str,
    fields: Mapping[str, str],
    idempotency_key: IdempotencyKey | None = None,
) -> Record:
    """Change a template's slug or name; its agents keep following it.

    Raises Conflict if the slug is in use.
    """
    existing = await get(ports, actor, name)
    current = template_from_record(existing)
    rules = await load_rules(ports, actor.tenant)
    template = replace(current, **rules.redact_fields(fields))
    slug, title = parse_unreserved_slug(template.slug), single_line(template.name, "name")
    template = TemplateRecord(slug, title)
    if template == current:
        return existing
    change = template_change(existing.tenant, existing.id, template, existing)
    committed_at = await commit_changes(
        ports, actor, "change a template", [change], idempotency_key=idempotency_key
    )
    return record_after(change, committed_at, existing)


@retry_on_conflict()
async def delete(
    ports: Ports, actor: Actor, name: str, idempotency_key: IdempotencyKey | None = None
) -> None:
    """Delete a template. Raises Conflict if agents follow it."""
    expected_revision = await load_collection_revision(ports, actor.tenant, RecordType.AGENT)
    existing = await get(ports, actor, name)
    index_key = by_template_index(existing.id)
    if await ports.records.list(actor.tenant, RecordType.AGENT, index_key=index_key, limit=1):
        raise Conflict("agents follow this template")
    await commit_changes(
        ports,
        actor,
        "delete a template",
        [deletion(existing)],
        collection_revisions=[expected_revision],
        idempotency_key=idempotency_key,
    )
