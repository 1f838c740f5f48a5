"""Agents: each has its own files over those of its template and the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from carrel.actions.accounts.keys import by_agent_index
from carrel.actions.memory.cleanup import delete_agent_memory
from carrel.actions.overlay.agent_layers import load_placeholder_values
from carrel.actions.overlay.managed_files import (
    AgentWithVariables,
    draft_identity_file,
    draft_user_files,
)
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.records import (
    FileDrafts,
    Page,
    commit_changes,
    get_by_id_or_slug,
    iter_records,
    list_page,
    load_collection_revision,
    load_collection_revisions,
    record_after,
)
from carrel.actions.retry import retry_on_conflict
from carrel.actions.timezones import parse_timezone
from carrel.core.access import Actor
from carrel.core.agents.agent import DEFAULT_FIELDS, agent_change, agent_fields
from carrel.core.agents.config import parse_config
from carrel.core.errors import NotFound
from carrel.core.overlay.compose import resolve
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.layers import upstream_stack
from carrel.core.overlay.pin_sets import pin_set_scope, plan_missing_pins
from carrel.core.store.commit import expect_unchanged
from carrel.core.store.entry import Entry
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import CollectionRevision, Record, RecordChange, RecordType
from carrel.core.text_validation import parse_unreserved_slug, single_line
from carrel.ports import Ports


@dataclass(frozen=True, slots=True)
class NewAgent:
    slug: str
    name: str
    template: str | None = None
    """Id or slug."""
    human: str | None = None
    """Id of the person the agent is paired with."""
    is_shared: bool = False
    owner: str | None = None
    config: Mapping[str, Any] | None = None


async def get(ports: Ports, actor: Actor, name: str) -> Record:
    """Get an agent by id or slug. Raises NotFound."""
    return await get_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, name)


async def list_agents(
    ports: Ports, actor: Actor, *, cursor: str = "", limit: int = 100
) -> Page[Record]:
    return await list_page(ports, actor.tenant, RecordType.AGENT, cursor=cursor, limit=limit)


@retry_on_conflict()
async def create(
    ports: Ports, actor: Actor, new: NewAgent, idempotency_key: IdempotencyKey | None = None
) -> Record:
    """Create an agent with its pins and its human's USER.md in one commit.

    Every pinned file is pinned at its current version. Raises Conflict if the slug is in use, and
    NotFound for an unknown template or person.
    """
    slug, name = parse_unreserved_slug(new.slug), single_line(new.name, "name")
    id = ports.clock.new_id("agt")
    expected_revisions = await _load_expected_revisions(ports, actor.tenant)
    rules = await load_rules(ports, actor.tenant)
    body = {
        **DEFAULT_FIELDS,
        "slug": slug,
        "name": name,
        "templateId": await _resolve_template_id(ports, actor, new.template),
        "humanPairId": await _check_person_id(ports, actor, new.human),
        "isShared": new.is_shared,
        "ownerId": await _check_person_id(ports, actor, new.owner),
        "config": _validate_config(new.config or {}),
        "userFile": new.human is not None,
    }
    change = agent_change(actor.tenant, id, body, 0)
    body["pins"], drafts = await _build_pin_set(ports, rules, record_after(change, 0))
    change = agent_change(actor.tenant, id, body, 0)
    agent = record_after(change, 0)
    if new.human is not None:
        drafts += await _user_file(ports, rules, agent)
    committed_at = await commit_changes(
        ports,
        actor.name,
        "create an agent",
        [change],
        collection_revisions=[*expected_revisions, *rules.collection_revisions],
        idempotency_key=idempotency_key,
        drafts=drafts,
    )
    return record_after(change, committed_at)


@retry_on_conflict()
async def patch(
    ports: Ports,
    actor: Actor,
    name: str,
    fields: Mapping[str, Any],
    idempotency_key: IdempotencyKey | None = None,
) -> Record:
    """Change the given fields and, in the same commit, the files generated from them.

    A new name is written to IDENTITY.md; a new name, human or template to USER.md. Pins stay.
    """
    expected_revisions = await _load_expected_revisions(ports, actor.tenant)
    rules = await load_rules(ports, actor.tenant)
    existing = await get(ports, actor, name)
    body = await _apply_patch(ports, actor, existing, fields)
    if body == agent_fields(existing):
        return existing
    change = agent_change(existing.tenant, existing.id, body, existing.revision)
    drafts = await _dependent_files(ports, rules, existing, record_after(change, 0, existing))
    committed_at = await commit_changes(
        ports,
        actor.name,
        "change an agent",
        [change],
        collection_revisions=[*expected_revisions, *rules.collection_revisions],
        idempotency_key=idempotency_key,
        drafts=drafts,
    )
    return record_after(change, committed_at, existing)


async def delete(
    ports: Ports, actor: Actor, name: str, idempotency_key: IdempotencyKey | None = None
) -> None:
    """Delete an agent and the keys bound to it, then its memory."""
    deleted = await _delete_with_keys(ports, actor, name, idempotency_key)
    await delete_agent_memory(ports, actor.name, deleted.tenant, deleted.id)


@retry_on_conflict()
async def _delete_with_keys(
    ports: Ports, actor: Actor, name: str, idempotency_key: IdempotencyKey | None
) -> Record:
    expected_revision = await load_collection_revision(ports, actor.tenant, RecordType.KEY)
    existing = await get(ports, actor, name)
    deleted = [existing]
    deleted += [
        key
        async for key in iter_records(
            ports, existing.tenant, RecordType.KEY, by_agent_index(existing.id)
        )
    ]
    changes = [
        RecordChange(record.tenant, record.type, record.id, None, record.revision)
        for record in deleted
    ]
    await commit_changes(
        ports,
        actor.name,
        "delete an agent",
        changes,
        collection_revisions=[expected_revision],
        idempotency_key=idempotency_key,
    )
    return existing


async def _load_expected_revisions(ports: Ports, tenant: str) -> list[CollectionRevision]:
    """Revisions of the templates, people and tenant that the decision reads."""
    return await load_collection_revisions(
        ports, tenant, (RecordType.TEMPLATE, RecordType.PERSON, RecordType.TENANT)
    )


async def _resolve_template_id(ports: Ports, actor: Actor, name: str | None) -> str | None:
    if name is None:
        return None
    return (await get_by_id_or_slug(ports, actor.tenant, RecordType.TEMPLATE, name)).id


async def _check_person_id(ports: Ports, actor: Actor, id: str | None) -> str | None:
    """Return the id if the tenant has this person. Raises NotFound."""
    if id is None:
        return None
    [person] = await ports.records.get(actor.tenant, RecordType.PERSON, [id])
    if person is None:
        raise NotFound(f"no such person: {id}")
    return person.id


async def _apply_patch(
    ports: Ports, actor: Actor, existing: Record, fields: Mapping[str, Any]
) -> dict[str, Any]:
    body = {**agent_fields(existing), **fields}
    if "slug" in fields:
        body["slug"] = parse_unreserved_slug(fields["slug"])
    if "name" in fields:
        body["name"] = single_line(fields["name"], "name")
    if "config" in fields:
        body["config"] = _validate_config(fields["config"])
    if fields.get("templateId") is not None:
        body["templateId"] = await _resolve_template_id(ports, actor, fields["templateId"])
    for field in ("humanPairId", "ownerId"):
        if fields.get(field) is not None:
            body[field] = await _check_person_id(ports, actor, fields[field])
    body["userFile"] = body["userFile"] or body["humanPairId"] is not None
    return body


def _validate_config(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Validate an agent's config. Raises ValidationError."""
    config = parse_config(raw)
    if config.timezone is not None:
        parse_timezone(config.timezone)
    return dict(raw)


async def _build_pin_set(
    ports: Ports, rules: TenantRules, agent: Record
) -> tuple[str | None, FileDrafts]:
    """Return the name of the current pin set and drafts of its missing entries."""
    layers = await ports.trees.read(upstream_stack(agent))
    paths = sorted({path for tree in layers for path in tree.heads})
    pins = {
        path: Entry(file.blob, file.blob, file.entry.type)
        for path in paths
        if rules.policy.classes.class_of(path) is FileClass.PINNED
        and (file := resolve(path, layers))
    }
    if not pins:
        return None, FileDrafts()
    scope = pin_set_scope(agent.tenant, pins)
    [pin_tree] = await ports.trees.read([scope], pins)
    unchanged = tuple(expect_unchanged(tree, path) for tree in layers for path in pins)
    writes, unwritten = plan_missing_pins(pin_tree, pins)
    return scope.name, FileDrafts(writes, unchanged + unwritten)


async def _dependent_files(
    ports: Ports, rules: TenantRules, existing: Record, agent: Record
) -> FileDrafts:
    """Draft the files generated from the agent's fields."""
    drafts = FileDrafts()
    old_fields, new_fields = agent_fields(existing), agent_fields(agent)
    if old_fields["name"] != new_fields["name"]:
        drafts += await draft_identity_file(ports, rules, agent, new_fields["name"])
    file_fields = ("name", "humanPairId", "templateId")
    if new_fields["userFile"] and any(
        old_fields[field] != new_fields[field] for field in file_fields
    ):
        drafts += await _user_file(ports, rules, agent)
    return drafts


async def _user_file(ports: Ports, rules: TenantRules, agent: Record) -> FileDrafts:
    return await draft_user_files(
        ports, rules, [AgentWithVariables(agent, await load_placeholder_values(ports, agent))]
    )
