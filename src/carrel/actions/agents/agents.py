"""Agents: each has files of its own, over its template's and the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from carrel.actions.accounts.keys import agent_keys_index
from carrel.actions.memory.cleanup import delete_agent_memory
from carrel.actions.overlay.agent_layers import load_placeholder_values
from carrel.actions.overlay.managed_files import AgentWithVariables, identity_file, user_files
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.records import (
    FileDrafts,
    Page,
    collection_revision,
    collection_revisions,
    commit_changes,
    find_by_id_or_slug,
    iter_records,
    page,
    record_after,
    retry_while_busy,
)
from carrel.actions.timezones import zone
from carrel.core.access import Actor
from carrel.core.agents.agent import BLANK, agent_change, agent_fields
from carrel.core.agents.config import checked
from carrel.core.errors import NotFound
from carrel.core.overlay.compose import resolve
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.layers import upstream_of
from carrel.core.overlay.pin_sets import missing, pinset_of
from carrel.core.store.record import CollectionRevision, Record, RecordChange, RecordType
from carrel.core.store.tree import Entry, IdempotencyKey, expect_unchanged
from carrel.core.text_validation import free_slug, single_line
from carrel.ports import Ports


@dataclass(frozen=True, slots=True)
class NewAgent:
    slug: str
    name: str
    template: str | None = None
    """By id or slug."""
    human: str | None = None
    """The id of the person whom it works for."""
    is_shared: bool = False
    owner: str | None = None
    config: Mapping[str, Any] | None = None


async def get(ports: Ports, actor: Actor, name: str) -> Record:
    """By id or slug. Raises Missing."""
    return await find_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, name)


async def listing(
    ports: Ports, actor: Actor, *, cursor: str = "", limit: int = 100
) -> Page[Record]:
    return await page(ports, actor.tenant, RecordType.AGENT, cursor=cursor, limit=limit)


async def create(
    ports: Ports, actor: Actor, new: NewAgent, receipt: IdempotencyKey | None = None
) -> Record:
    """With every pinned file as it is at this moment, and its human's USER.md, all in one.

    Raises Taken where another has the slug, Missing where there is no such template or person.
    """
    slug, name = free_slug(new.slug), single_line(new.name, "name")
    id = ports.clock.new_id("agt")

    async def attempt() -> Record:
        rests = await _rests(ports, actor.tenant)
        rules = await load_rules(ports, actor.tenant)
        body = {
            **BLANK,
            "slug": slug,
            "name": name,
            "templateId": await _template(ports, actor, new.template),
            "humanPairId": await _person(ports, actor, new.human),
            "isShared": new.is_shared,
            "ownerId": await _person(ports, actor, new.owner),
            "config": _config(new.config or {}),
            "userFile": new.human is not None,
        }
        change = agent_change(actor.tenant, id, body, 0)
        body["pins"], drafts = await _pins(ports, rules, record_after(change, 0))
        change = agent_change(actor.tenant, id, body, 0)
        agent = record_after(change, 0)
        if new.human is not None:
            drafts += await _user_file(ports, rules, agent)
        at = await commit_changes(
            ports,
            actor.name,
            "create an agent",
            [change],
            collection_revisions=[*rests, *rules.shelves],
            receipt=receipt,
            drafts=drafts,
        )
        return record_after(change, at)

    return await retry_while_busy(attempt)


async def patch(
    ports: Ports,
    actor: Actor,
    name: str,
    given: Mapping[str, Any],
    receipt: IdempotencyKey | None = None,
) -> Record:
    """Change what is given, and in the same commit the files that follow from it.

    A name is written into IDENTITY.md; a name, a human or a template into USER.md. Pins stay.
    """

    async def attempt() -> Record:
        rests = await _rests(ports, actor.tenant)
        rules = await load_rules(ports, actor.tenant)
        was = await get(ports, actor, name)
        body = await _patched(ports, actor, was, given)
        if body == agent_fields(was):
            return was
        change = agent_change(was.tenant, was.id, body, was.revision)
        drafts = await _following(ports, rules, was, record_after(change, 0, was))
        at = await commit_changes(
            ports,
            actor.name,
            "change an agent",
            [change],
            collection_revisions=[*rests, *rules.shelves],
            receipt=receipt,
            drafts=drafts,
        )
        return record_after(change, at, was)

    return await retry_while_busy(attempt)


async def delete(
    ports: Ports, actor: Actor, name: str, receipt: IdempotencyKey | None = None
) -> None:
    """Remove an agent and the keys that are bound to it, and then what it remembered."""

    async def attempt() -> Record:
        rests = await collection_revision(ports, actor.tenant, RecordType.KEY)
        was = await get(ports, actor, name)
        gone = [was]
        gone += [
            key
            async for key in iter_records(
                ports, was.tenant, RecordType.KEY, agent_keys_index(was.id)
            )
        ]
        changes = [RecordChange(one.tenant, one.type, one.id, None, one.revision) for one in gone]
        await commit_changes(
            ports,
            actor.name,
            "delete an agent",
            changes,
            collection_revisions=[rests],
            receipt=receipt,
        )
        return was

    gone = await retry_while_busy(attempt)
    await delete_agent_memory(ports, actor.name, gone.tenant, gone.id)


async def _rests(ports: Ports, tenant: str) -> list[CollectionRevision]:
    """What names, people and templates a decision is made from."""
    return await collection_revisions(
        ports, tenant, (RecordType.TEMPLATE, RecordType.PERSON, RecordType.TENANT)
    )


async def _template(ports: Ports, actor: Actor, name: str | None) -> str | None:
    if name is None:
        return None
    return (await find_by_id_or_slug(ports, actor.tenant, RecordType.TEMPLATE, name)).id


async def _person(ports: Ports, actor: Actor, id: str | None) -> str | None:
    """A person of the same tenant. Raises Missing."""
    if id is None:
        return None
    [person] = await ports.records.get(actor.tenant, RecordType.PERSON, [id])
    if person is None:
        raise NotFound(f"there is no person {id}")
    return person.id


async def _patched(
    ports: Ports, actor: Actor, was: Record, given: Mapping[str, Any]
) -> dict[str, Any]:
    body = {**agent_fields(was), **given}
    if "slug" in given:
        body["slug"] = free_slug(given["slug"])
    if "name" in given:
        body["name"] = single_line(given["name"], "name")
    if "config" in given:
        body["config"] = _config(given["config"])
    if given.get("templateId") is not None:
        body["templateId"] = await _template(ports, actor, given["templateId"])
    for field in ("humanPairId", "ownerId"):
        if given.get(field) is not None:
            body[field] = await _person(ports, actor, given[field])
    body["userFile"] = body["userFile"] or body["humanPairId"] is not None
    return body


def _config(given: Mapping[str, Any]) -> dict[str, Any]:
    """Raises Malformed."""
    config = checked(given)
    if config.timezone is not None:
        zone(config.timezone)
    return dict(given)


async def _pins(ports: Ports, rules: TenantRules, agent: Record) -> tuple[str | None, FileDrafts]:
    """Every pinned file beneath as it is now: the name of the set, and what is new of it."""
    layers = await ports.trees.read(upstream_of(agent))
    paths = sorted({path for tree in layers for path in tree.heads})
    pins = {
        path: Entry(found.blob, found.blob, found.entry.type)
        for path in paths
        if rules.policy.classes.class_of(path) is FileClass.PINNED
        and (found := resolve(path, layers))
    }
    if not pins:
        return None, FileDrafts()
    scope = pinset_of(agent.tenant, pins)
    [known] = await ports.trees.read([scope], pins)
    seen = tuple(expect_unchanged(tree, path) for tree in layers for path in pins)
    writes, unwritten = missing(known, pins)
    return scope.name, FileDrafts(writes, seen + unwritten)


async def _following(ports: Ports, rules: TenantRules, was: Record, agent: Record) -> FileDrafts:
    """The files that change with an agent's facts."""
    drafts = FileDrafts()
    before, now = agent_fields(was), agent_fields(agent)
    if before["name"] != now["name"]:
        drafts += await identity_file(ports, rules, agent, now["name"])
    told = ("name", "humanPairId", "templateId")
    if now["userFile"] and any(before[fact] != now[fact] for fact in told):
        drafts += await _user_file(ports, rules, agent)
    return drafts


async def _user_file(ports: Ports, rules: TenantRules, agent: Record) -> FileDrafts:
    return await user_files(
        ports, rules, [AgentWithVariables(agent, await load_placeholder_values(ports, agent))]
    )
