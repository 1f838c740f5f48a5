"""Erases what the histories of agents and runs hold of a deleted person."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from typing import Any, Final

from carrel.actions.blob_contents import load_contents
from carrel.actions.deleted_bytes import remove_deleted_bytes
from carrel.actions.files.version_redaction import redact_stored_versions
from carrel.actions.idempotency import delete_responses
from carrel.actions.overlay.managed_files import USER
from carrel.actions.records import iter_records
from carrel.core.accounts import PersonRecord, person_from_record
from carrel.core.agents.agent import USER_FILE_INDEX, by_human_index
from carrel.core.identifiers import Scope, ScopeKind
from carrel.core.items import person_items_scope
from carrel.core.overlay.placeholders import sanitize_value
from carrel.core.store.entry import Version
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

_PAGE_SIZE: Final = 100
_HUMAN_PREFIX: Final = "human_"


async def list_paired_agents(ports: Ports, person: Record) -> Set[str]:
    """Return the ids of the agents that are paired with a person."""
    agents = iter_records(ports, person.tenant, RecordType.AGENT, by_human_index(person.id))
    return {agent.id async for agent in agents}


async def erase_person(ports: Ports, person: Record, paired: Set[str]) -> None:
    """Erase a deleted person's items, and what others hold of their profile.

    Earlier versions of USER.md are redacted: all of agents that were paired at last, and of others
    those with a name or e-mail that the person has or had. Runs forget the person's profile.
    """
    body = person_from_record(person)
    await ports.erasure.erase_scopes(
        [person_items_scope(person.tenant, person.id)], ports.clock.now()
    )
    async for agent in iter_records(ports, person.tenant, RecordType.AGENT, USER_FILE_INDEX):
        scope = Scope(agent.tenant, ScopeKind.AGENT, agent.id)
        versions = await _load_old_versions(ports, scope)
        if agent.id not in paired:
            versions = await _filter_mentions(ports, versions, body)
        if versions:
            await redact_stored_versions(ports, scope, versions)
    await _erase_from_runs(ports, person.tenant, body)
    await delete_responses(ports, person.tenant, (person.id,))
    await remove_deleted_bytes(ports)


async def _load_old_versions(ports: Ports, scope: Scope) -> Sequence[Version]:
    """Return all versions of USER.md but the newest, without deletions."""
    versions: list[Version] = []
    before: int | None = None
    while page := await ports.trees.history(scope, USER, before=before, limit=_PAGE_SIZE):
        versions += page
        before = page[-1].head.version
    return [version for version in versions[1:] if version.head.entry and not version.redacted]


async def _filter_mentions(
    ports: Ports, versions: Sequence[Version], person: PersonRecord
) -> Sequence[Version]:
    """Return the versions that contain a name or e-mail that the person has or had."""
    texts = {text for profile in person.profiles for text in (profile.name, profile.email)}
    needles = [form.encode() for text in texts for form in {text, sanitize_value(text)}]
    blobs = [version.head.entry.blob for version in versions if version.head.entry]
    contents = await load_contents(ports, blobs)
    return [
        version
        for version, blob in zip(versions, blobs, strict=True)
        if isinstance(content := contents[blob.digest], bytes)
        and any(needle in content for needle in needles)
    ]


async def _erase_from_runs(ports: Ports, tenant: str, person: PersonRecord) -> None:
    """Remove the profile from the variables of runs; their prompts show a dash."""
    former = {(profile.name, profile.email) for profile in person.profiles}

    def rewrite(values: Sequence[Any]) -> Sequence[Any]:
        workflow, variables, reason = values
        parsed = json.loads(variables)
        profile = parsed.get("human_name"), parsed.get("human_email")
        if profile[1] != person.email and profile not in former:
            return values
        others = {n: value for n, value in parsed.items() if not n.startswith(_HUMAN_PREFIX)}
        return workflow, json.dumps(others, ensure_ascii=False), reason

    position: tuple[Any, ...] | None = None
    while True:
        rows = await ports.erasure.rewrite_rows(tenant, "run", rewrite, after=position)
        position = rows.position
        if position is None:
            return
