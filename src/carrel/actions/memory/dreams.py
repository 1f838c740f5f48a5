"""Dreams: sweeping over an agent's memories, and letting people look before anything lands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from carrel.actions.memory import memory_files
from carrel.actions.memory.dream_commit import (
    close_proposal,
    dream_record,
    next_schedule,
    oldest,
    plan_promotion,
)
from carrel.actions.memory.dream_inputs import DreamInputs, decide, load_dream_inputs
from carrel.actions.memory.memory_files import may_remember
from carrel.actions.overlay import stacks
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.records import FileDrafts, find, retry_while_busy
from carrel.core.access import Actor
from carrel.core.errors import Conflict, NotFound, WorkspaceConflict
from carrel.core.files.diff import unified
from carrel.core.identifiers import Scope
from carrel.core.memory.dream_records import Dream, DreamStatus, dream_of, rest_change, schedule_of
from carrel.core.memory.memory import by_id, of_agent
from carrel.core.memory.promoted_lines import MEMORY
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import IdempotencyKey
from carrel.ports import Ports

PROMOTED_KEPT: Final = 30 * 86_400_000
"""How long the recalls of a memory are kept once it is promoted: they decide nothing more."""
RECALLS_KEPT: Final = 365 * 86_400_000
"""And those of all others."""


@dataclass(frozen=True, slots=True)
class DreamReport:
    dream: Dream
    contents: Mapping[str, str]
    """What the memories say of which it tells, as far as they are there."""
    diff: str = ""
    """What it changes in MEMORY.md, or would."""
    dry_run: bool = False


async def sweep(
    ports: Ports,
    actor: Actor,
    agent: str,
    *,
    dry_run: bool = False,
    receipt: IdempotencyKey | None = None,
) -> DreamReport:
    """Promote what has come up often enough, in one commit; or only say what that would be.

    Where the agent's config asks for a review, what would be promoted is kept as a proposal.
    Raises Missing, Forbidden, TooLarge, Taken for a MEMORY.md that is no text, Busy.
    """
    [own, *_] = await stacks.agent_stack(ports, actor, agent)
    may_remember(actor, own)
    id = "" if dry_run else ports.clock.new_id("drm")

    async def attempt() -> tuple[DreamReport, DreamInputs]:
        rules = await load_rules(ports, own.tenant)
        inputs = await load_dream_inputs(ports, own, rules)
        dream, after = _dreamed(id, actor.name, inputs, rules)
        before = inputs.files.memory
        report = DreamReport(dream, inputs.contents, _diff(before, after), dry_run)
        if not dry_run:
            land = _propose if dream.status is DreamStatus.PROPOSED else _land
            await land(ports, rules, inputs, dream, receipt)
        return report, inputs

    report, inputs = await retry_while_busy(attempt)
    if not dry_run:
        await _prune(ports, own, inputs, report.dream)
    return report


def _dreamed(
    id: str, author: str, inputs: DreamInputs, rules: TenantRules
) -> tuple[Dream, str | None]:
    """The dream, with all that it would write, and MEMORY.md as it would become."""
    found = decide(inputs, rules)
    after = found.written.text if found.written.promoted else inputs.files.memory
    if after is not None:
        after = rules.redact_text(after)
    dream = Dream(
        id,
        inputs.own.name,
        author,
        inputs.at,
        DreamStatus.PROPOSED
        if inputs.settings.review and found.written.promoted
        else DreamStatus.DONE,
        candidates=found.candidates,
        skipped=len(inputs.promoted),
        promoted=found.written.promoted,
        rejected=tuple(found.rejected),
        reasons=found.reasons,
        evicted=tuple(one.memory for one in found.written.evicted),
        seen=inputs.files.seen,
        after=after if found.written.promoted else None,
    )
    return dream, after


def _diff(before: str | None, after: str | None) -> str:
    old, new = (None if text is None else text.encode() for text in (before, after))
    return unified(old, new, MEMORY.text)


async def _land(
    ports: Ports,
    rules: TenantRules,
    inputs: DreamInputs,
    dream: Dream,
    receipt: IdempotencyKey | None,
) -> None:
    wanted, changes = plan_promotion(inputs.files, rules, inputs.standing, dream, inputs.memories)
    changes += [dream_record(inputs.own.tenant, dream), next_schedule(inputs, dream)]
    changes += await oldest(ports, inputs.own)
    drafts = await memory_files.changed_files(ports, rules, inputs.files, wanted)
    author, reason = dream.by, f"dream: {len(dream.promoted)} promoted"
    await memory_files.commit_memory_files(
        ports, rules, author, reason, drafts, changes, at=inputs.at, receipt=receipt
    )


async def _propose(
    ports: Ports,
    rules: TenantRules,
    inputs: DreamInputs,
    dream: Dream,
    receipt: IdempotencyKey | None,
) -> None:
    """Keep it for somebody to look at, in place of what was proposed before."""
    changes = [dream_record(inputs.own.tenant, dream), next_schedule(inputs, dream)]
    changes += [close_proposal(record, DreamStatus.SUPERSEDED) for record in inputs.waiting]
    changes += await oldest(ports, inputs.own)
    author, reason = dream.by, "dream: propose what to promote"
    await memory_files.commit_memory_files(
        ports, rules, author, reason, FileDrafts(), changes, at=inputs.at, receipt=receipt
    )


async def _prune(ports: Ports, own: Scope, inputs: DreamInputs, dream: Dream) -> None:
    """Forget recalls that decide nothing more. Done after the commit, and again by the next."""
    ask = (own.tenant, own.name)
    await ports.recalls.drop(*ask, inputs.gone)
    promoted = [*inputs.promoted, *(one.memory for one in dream.promoted)]
    await ports.recalls.drop(*ask, promoted, before=inputs.at - PROMOTED_KEPT)
    await ports.recalls.prune(*ask, inputs.at - RECALLS_KEPT)


async def listing(ports: Ports, actor: Actor, agent: str) -> tuple[Dream, ...]:
    """The last dreams of an agent, newest first."""
    [own, *_] = await stacks.agent_stack(ports, actor, agent)
    found = await ports.records.list(
        own.tenant, RecordType.DREAM, link=of_agent(own.name), limit=500
    )
    return tuple(dream_of(record) for record in reversed(found))


async def get(ports: Ports, actor: Actor, agent: str, id: str) -> DreamReport:
    """One dream, with what the memories say that it tells of. Raises Missing."""
    [own, *_] = await stacks.agent_stack(ports, actor, agent)
    return await _report(ports, own, await _find(ports, own, id))


async def _report(ports: Ports, own: Scope, record: Record) -> DreamReport:
    dream = dream_of(record)
    ids = [one.memory for one in dream.promoted] + [one.memory for one in dream.rejected]
    memories = by_id(await ports.records.get(own.tenant, RecordType.MEMORY, ids)) if ids else {}
    contents = {id: memory.content for id, memory in memories.items()}
    if dream.status is not DreamStatus.PROPOSED:
        return DreamReport(dream, contents)
    files = await memory_files.read(
        ports, own.tenant, own.name, await load_rules(ports, own.tenant)
    )
    return DreamReport(dream, contents, _diff(files.memory, dream.after))


async def _find(ports: Ports, own: Scope, id: str) -> Record:
    record = await find(ports, own.tenant, RecordType.DREAM, id)
    if record.body.get("agent") != own.name:
        raise NotFound(f"there is no dream {id}")
    return record


async def approve(
    ports: Ports, actor: Actor, agent: str, id: str, receipt: IdempotencyKey | None = None
) -> DreamReport:
    """Let what was proposed land, to the byte.

    Raises Taken for what waits no more, Stale where MEMORY.md or a memory has changed since: then
    the next sweep proposes anew.
    """
    [own, *_] = await stacks.agent_stack(ports, actor, agent)
    may_remember(actor, own)

    async def attempt() -> None:
        rules, at = await load_rules(ports, own.tenant), ports.clock.now()
        record = await _find(ports, own, id)
        dream = _admitted(_waits(record), rules)
        inputs = await load_dream_inputs(ports, own, rules)
        ids = [one.memory for one in dream.promoted]
        memories = {
            one.id: one
            for one in await ports.records.get(own.tenant, RecordType.MEMORY, ids)
            if one
        }
        again = set(ids) & set(inputs.promoted)
        if inputs.files.seen != dream.seen or set(ids) - memories.keys() or again:
            change = close_proposal(record, DreamStatus.SUPERSEDED)
            await memory_files.commit_memory_files(
                ports, rules, actor.name, "supersede a dream", FileDrafts(), [change], at=at
            )
            version = inputs.files.layers[0].version(MEMORY)
            raise WorkspaceConflict("MEMORY.md or a memory has changed since: dream again", version)
        wanted, changes = plan_promotion(inputs.files, rules, inputs.standing, dream, memories)
        changes.append(close_proposal(record, DreamStatus.DONE, actor.name, at))
        drafts = await memory_files.changed_files(ports, rules, inputs.files, wanted)
        reason = f"dream: {len(ids)} promoted, as reviewed"
        await memory_files.commit_memory_files(
            ports, rules, actor.name, reason, drafts, changes, at=at, receipt=receipt
        )

    await retry_while_busy(attempt)
    return await _report(ports, own, await _find(ports, own, id))


async def reject(
    ports: Ports,
    actor: Actor,
    agent: str,
    id: str,
    reason: str = "",
    receipt: IdempotencyKey | None = None,
) -> DreamReport:
    """Let nothing of it land. What it proposed may be proposed again. Raises Taken."""
    [own, *_] = await stacks.agent_stack(ports, actor, agent)
    may_remember(actor, own)

    async def attempt() -> None:
        rules, at = await load_rules(ports, own.tenant), ports.clock.now()
        record = await _find(ports, own, id)
        _waits(record)
        said = rules.redact_text(reason)
        change = close_proposal(record, DreamStatus.REJECTED, actor.name, at, said)
        await memory_files.commit_memory_files(
            ports,
            rules,
            actor.name,
            "reject a dream",
            FileDrafts(),
            [change],
            at=at,
            receipt=receipt,
        )

    await retry_while_busy(attempt)
    return await _report(ports, own, await _find(ports, own, id))


def _admitted(dream: Dream, rules: TenantRules) -> Dream:
    """What was proposed, without what became a secret meanwhile."""
    lines = tuple(replace(one, line=rules.redact_text(one.line)) for one in dream.promoted)
    return replace(dream, promoted=lines)


def _waits(record: Record) -> Dream:
    dream = dream_of(record)
    if dream.status is not DreamStatus.PROPOSED:
        raise Conflict(f"the dream is {dream.status}", status=dream.status)
    return dream


async def failed(ports: Ports, tenant: str, agent: str) -> None:
    """Note that a dream went wrong, so that the next waits longer."""
    [was] = await ports.records.get(tenant, RecordType.DREAM, [agent])
    rest, at = schedule_of(was), ports.clock.now()
    tried = replace(rest, tried=at, failures=rest.failures + 1)
    rules = await load_rules(ports, tenant)
    change = rest_change(tenant, agent, tried, was)
    await memory_files.commit_memory_files(
        ports, rules, "carrel", "a dream failed", FileDrafts(), [change], at=at
    )
