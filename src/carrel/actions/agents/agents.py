"""Agents: each has its own files over those of its template and the defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from carrel.actions.accounts.keys import by_agent_index
from carrel.actions.agents.agent_plans import (
    CHANGE_REASON,
    AgentUpdate,
    plan_changes,
    updated_agent,
)
from carrel.actions.agents.erasure import erase_agent
from carrel.actions.overlay.agent_layers import load_placeholder_values
from carrel.actions.overlay.managed_files import AgentWithVariables, draft_user_files
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.records import (
    FileDrafts,
    commit_changes,
    get_by_id_or_slug,
    iter_records,
    load_collection_revision,
    load_collection_revisions,
    record_after,
)
from carrel.actions.retry import retry_on_conflict
from carrel.actions.sessions.erasure import forget_erasure
from carrel.actions.timezones import parse_timezone
from carrel.core.access import Actor
from carrel.core.agents.agent import (
    AgentRecord,
    agent_change,
    agent_from_record,
    by_folder_index,
)
from carrel.core.agents.config import parse_config
from carrel.core.agents.identity_name import parse_agent_name
from carrel.core.agents.layers import upstream_stack
from carrel.core.agents.tags import parse_tags
from carrel.core.errors import Conflict, NotFound
from carrel.core.identifiers import Stack
from carrel.core.overlay.compose import resolve
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.pin_sets import pin_set_scope, plan_missing_pins
from carrel.core.pending_erasure import erasure_change, pending_erasure
from carrel.core.store.commit import expect_unchanged
from carrel.core.store.entry import Entry
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import CollectionRevision, Record, RecordType, deletion
from carrel.core.text_validation import parse_unreserved_slug
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
    tags: Sequence[str] = ()


async def get(ports: Ports, actor: Actor, name: str) -> Record:
    """Get an agent by id or slug. Raises NotFound."""
    return await get_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, name)


@retry_on_conflict()
async def create(
    ports: Ports, actor: Actor, new: NewAgent, idempotency_key: IdempotencyKey | None = None
) -> Record:
    """Create an agent with its pins and its human's USER.md in one commit.

    Every pinned file is pinned at its current version. Raises Conflict if the slug is in use, and
    NotFound for an unknown template or person.
    """
    expected_revisions = await load_expected_revisions(ports, actor.tenant)
    rules = await load_rules(ports, actor.tenant)
    new = rules.redact_fields(new)
    slug, name = parse_unreserved_slug(new.slug), parse_agent_name(new.name)
    id = ports.clock.new_id("agt")
    agent = AgentRecord(
        slug=slug,
        name=name,
        template_id=await _resolve_template_id(ports, actor, new.template),
        human_pair_id=await _check_person_id(ports, actor, new.human),
        is_shared=new.is_shared,
        owner_id=await _check_person_id(ports, actor, new.owner),
        config=await _validate_config(ports, id, new.config or {}),
        user_file=new.human is not None,
        tags=parse_tags(new.tags),
    )
    upstream = upstream_stack(record_after(agent_change(actor.tenant, id, agent), 0))
    pins, drafts = await _build_pin_set(ports, rules, actor.tenant, upstream)
    change = agent_change(actor.tenant, id, replace(agent, pins=pins))
    if new.human is not None:
        drafts += await _user_file(ports, rules, record_after(change, 0))
    committed_at = await commit_changes(
        ports,
        actor,
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
    expected_revisions = await load_expected_revisions(ports, actor.tenant)
    rules = await load_rules(ports, actor.tenant)
    existing = await get(ports, actor, name)
    current = agent_from_record(existing)
    agent = await _apply_patch(ports, actor, existing, rules.redact_fields(fields))
    if agent == current:
        return existing
    [plan] = await plan_changes(ports, rules, [AgentUpdate(existing, agent)])
    committed_at = await commit_changes(
        ports,
        actor,
        CHANGE_REASON,
        [plan.change],
        collection_revisions=[*expected_revisions, *rules.collection_revisions],
        idempotency_key=idempotency_key,
        drafts=plan.drafts,
    )
    return record_after(plan.change, committed_at, existing)


async def delete(
    ports: Ports, actor: Actor, name: str, idempotency_key: IdempotencyKey | None = None
) -> None:
    """Delete an agent and the keys bound to it, then erase all that belongs to it."""
    erasure_id = ports.clock.new_id("ers")
    deleted = await _delete_with_keys(ports, actor, name, idempotency_key, erasure_id)
    await erase_agent(ports, actor, deleted.tenant, pending_erasure(deleted))
    await forget_erasure(ports, deleted.tenant, erasure_id)


@retry_on_conflict()
async def _delete_with_keys(
    ports: Ports,
    actor: Actor,
    name: str,
    idempotency_key: IdempotencyKey | None,
    erasure_id: str,
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
    changes = [deletion(record) for record in deleted]
    changes.append(erasure_change(existing.tenant, erasure_id, pending_erasure(existing)))
    await commit_changes(
        ports,
        actor,
        "delete an agent",
        changes,
        collection_revisions=[expected_revision],
        idempotency_key=idempotency_key,
    )
    return existing


async def load_expected_revisions(ports: Ports, tenant: str) -> list[CollectionRevision]:
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
) -> AgentRecord:
    current = agent_from_record(existing)
    fields = await resolve_references(ports, actor, fields)
    agent = updated_agent(current, fields)
    if "config" in fields:
        agent = replace(agent, config=await _validate_config(ports, existing.id, agent.config))
        reviewed = parse_config(current.config).dreaming.review
        if reviewed and not parse_config(agent.config).dreaming.review:
            actor.require_person_admin("end the review of dreams")
    return agent


async def resolve_references(
    ports: Ports, actor: Actor, fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields with the template's id. Raises NotFound for a template or person."""
    resolved = dict(fields)
    if "template_id" in fields:
        resolved["template_id"] = await _resolve_template_id(ports, actor, fields["template_id"])
    for name in {"human_pair_id", "owner_id"} & fields.keys():
        await _check_person_id(ports, actor, fields[name])
    return resolved


async def _validate_config(ports: Ports, id: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Validate an agent's config.

    Raises ValidationError, also for an unusable transcriptsDir, and Conflict for another agent's.
    """
    config = parse_config(raw)
    if config.transcripts_dir and ports.transcript_files is not None:
        await ports.transcript_files.check(config.transcripts_dir)
        index_key = by_folder_index(config.transcripts_dir)
        users = await ports.records.list("", RecordType.AGENT, index_key=index_key, limit=2)
        if any(agent.id != id for agent in users):
            raise Conflict("config: transcriptsDir is used by another agent")
    if config.timezone is not None:
        parse_timezone(config.timezone)
    return dict(raw)


async def _build_pin_set(
    ports: Ports, rules: TenantRules, tenant: str, upstream: Stack
) -> tuple[str | None, FileDrafts]:
    """Return the name of the current pin set and drafts of its missing entries."""
    layers = await ports.trees.read(upstream)
    paths = sorted({path for tree in layers for path in tree.heads})
    pins = {
        path: Entry(file.blob, file.blob, file.entry.type)
        for path in paths
        if rules.policy.classes.class_of(path) is FileClass.PINNED
        and (file := resolve(path, layers))
    }
    if not pins:
        return None, FileDrafts()
    scope = pin_set_scope(tenant, pins)
    [pin_tree] = await ports.trees.read([scope], pins)
    unchanged = tuple(expect_unchanged(tree, path) for tree in layers for path in pins)
    writes, unwritten = plan_missing_pins(pin_tree, pins)
    return scope.name, FileDrafts(writes, unchanged + unwritten)


async def _user_file(ports: Ports, rules: TenantRules, agent: Record) -> FileDrafts:
    return await draft_user_files(
        ports, rules, [AgentWithVariables(agent, await load_placeholder_values(ports, agent))]
    )
