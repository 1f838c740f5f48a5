"""Removes one text from sessions: ids, channels and transcript files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from carrel.actions.maintenance.purged_contents import REASON
from carrel.actions.records import commit_changes, iter_records
from carrel.actions.sessions.transcript_mirror import mirror_session, transcript_folder
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_from_record
from carrel.core.approvals import approval_change, approval_from_record, approval_index_key
from carrel.core.maintenance.text_columns import RowBatch, purge_row
from carrel.core.redaction.text_purge import TextPurge
from carrel.core.sessions.session_ids import new_session_id
from carrel.core.store.record import RecordType
from carrel.ports import Ports

SessionKey = tuple[str, str]
"""Ids of an agent and of its session."""


async def purge_sessions(
    ports: Ports,
    actor: Actor,
    purge: TextPurge,
    after: tuple[Any, ...] | None,
    *,
    dry_run: bool,
) -> RowBatch:
    """Remove the text from a batch of sessions; a session whose id has the text gets a new one.

    Two ids could become equal if only the text was replaced.
    """
    new_ids: dict[str, str] = {}

    def rewrite(values: Sequence[Any]) -> Sequence[Any]:
        id = values[0]
        new_id, *others = purge_row(purge, "session", values)
        if new_id == id:
            return (id, *others)
        return (new_ids.setdefault(id, new_session_id(ports.clock.new_token("ses"))), *others)

    rows = await ports.erasure.rewrite_rows(
        actor.tenant, "session", rewrite, after=after, dry_run=dry_run
    )
    if not dry_run:
        keys = {(agent, id) for _, agent, id in rows.changed}
        for agent in sorted({agent for agent, id in keys if id in new_ids}):
            await _rename_in_approvals(ports, actor, agent, new_ids)
        await rewrite_transcripts(ports, actor.tenant, keys, new_ids)
    return rows


async def _rename_in_approvals(
    ports: Ports, actor: Actor, agent: str, new_ids: Mapping[str, str]
) -> None:
    """Give the approvals of renamed sessions the new ids. Raises Busy if one was changed."""
    records = iter_records(
        ports, actor.tenant, RecordType.APPROVAL, approval_index_key(agent=agent)
    )
    changes = []
    async for record in records:
        approval = approval_from_record(record)
        if new_id := new_ids.get(approval.session or ""):
            changes.append(approval_change(replace(approval, session=new_id), record.revision))
    if changes:
        await commit_changes(ports, actor, REASON, changes)


async def rewrite_transcripts(
    ports: Ports,
    tenant: str,
    keys: Collection[SessionKey],
    new_ids: Mapping[str, str] | None = None,
) -> None:
    """Write the transcript files of changed sessions again, of renamed ones under the new name."""
    if ports.transcript_files is None:
        return
    names = new_ids or {}
    owners = sorted({owner for owner, _ in keys})
    for agent in await ports.records.get(tenant, RecordType.AGENT, owners):
        folder = agent and transcript_folder(agent)
        if agent is None or not folder:
            continue
        old_ids = sorted(id for owner, id in keys if owner == agent.id)
        current = await ports.sessions.get(tenant, agent.id, [names.get(id, id) for id in old_ids])
        sessions = [(id, session) for id, session in zip(old_ids, current, strict=True) if session]
        old = [id for id, _ in sessions]
        await ports.transcript_files.delete(folder, f"{tenant}/{agent.id}", old)
        for _, session in sessions:
            slug = agent_from_record(agent).slug
            await mirror_session(ports, ports.transcript_files, session, folder, slug)
