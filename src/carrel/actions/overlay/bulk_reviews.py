"""Reviews of a pinned file for many agents: those of a template, or that inherit a default."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace as replace_session
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.overlay import bulk_roll_back
from carrel.actions.overlay.followers import iter_followers
from carrel.actions.overlay.pin_declines import decline_reason, parse_reason
from carrel.actions.overlay.pin_review_session import (
    FOR_ALL_SUFFIX,
    BulkOutcome,
    PinReviewSession,
    Plan,
    accept_reason,
    inherits_from,
    start_review,
)
from carrel.actions.records import commit_changes, get_by_id_or_slug
from carrel.actions.retry import MAX_ATTEMPTS
from carrel.core.access import Actor
from carrel.core.agents.agent import AgentRecord, agent_from_record, by_template_index
from carrel.core.errors import Busy, NotFound, ValidationError
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.overlay import pins
from carrel.core.overlay.compose import Layers, upstream_blob
from carrel.core.overlay.planned_writes import PlannedWrite
from carrel.core.overlay.review_records import (
    REVIEW_PREFIX,
    FollowerPart,
    ReviewDecision,
    ReviewRecord,
    choose_part,
    new_review_id,
    review_change,
)
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.ports import Ports

_AGENT_PAGE_SIZE: Final = 5_000
"""Agents read per query in a bulk change."""
ChangeEach: TypeAlias = Callable[
    [PinReviewSession, Sequence[Record]], Awaitable[Mapping[str, BulkOutcome]]
]
"""Changes many agents and returns their outcomes by id."""


class BulkReview(Struct, frozen=True):
    """Result of a review for many agents."""

    id: str | None
    """Id of the recorded review; None if no agent was changed."""
    outcomes: tuple[BulkOutcome, ...]
    waiting: tuple[str, ...] = ()
    """Ids of the agents that were not selection and are still offered the content."""


async def accept_for_all(
    ports: Ports, actor: Actor, template: str | None, path: Path, reviewed: Digest | None
) -> tuple[BulkOutcome, ...]:
    """Accept for every agent of a template; return one outcome each, by id: see accept_part."""
    return (await accept_part(ports, actor, template, path, reviewed)).outcomes


async def accept_part(
    ports: Ports,
    actor: Actor,
    template: str | None,
    path: Path,
    reviewed: Digest | None,
    part: FollowerPart | None = None,
) -> BulkReview:
    """Accept for the agents of a template, or for a part of them; `reviewed` None is a removal.

    Without a template: for every agent of the tenant that inherits the file from the defaults. A
    refusal for one agent does not stop the others. Reads 5,000 agents per query and commits 1,000
    per transaction. Raises NotFound if there is nothing to accept.
    """
    session = await start_review(ports, actor, path)
    template_id = await _load_offer(ports, actor, template, path, reviewed)
    selection = await _choose(ports, actor, template_id, path, reviewed, part) if part else None
    waiting: list[str] = []

    async def accept_each(
        session: PinReviewSession, agents: Sequence[Record]
    ) -> Mapping[str, BulkOutcome]:
        layers_by_agent = await _load_inheriting(session, agents, template_id, reviewed)
        if selection is not None:
            rest = {id: layers for id, layers in layers_by_agent.items() if id not in selection}
            layers_by_agent = {id: layers_by_agent[id] for id in layers_by_agent if id in selection}
            waiting.extend(
                id for id, layers in rest.items() if pins.pin_status(path, layers).update_available
            )
        records = {agent.id: agent for agent in agents}
        return await session.change_each(records, layers_by_agent, _accept_plan(path, reviewed))

    record = session.record(ReviewDecision.ACCEPTED, reviewed)
    record = replace(record, template_id=template_id, part=part.text if part else "")
    review = await change_all(session, record, accept_each)
    return replace(review, waiting=tuple(sorted(set(waiting))))


async def decline_for_all(
    ports: Ports,
    actor: Actor,
    template: str | None,
    path: Path,
    reviewed: Digest | None,
    reason: str,
) -> BulkReview:
    """Decline for every agent that is offered the content; agents that have it are left out."""
    session = await start_review(ports, actor, path)
    reason = parse_reason(session.rules, reason)
    template_id = await _load_offer(ports, actor, template, path, reviewed)

    def plan(_: str, layers: Layers) -> tuple[PlannedWrite, str] | None:
        planned = pins.plan_decline(layers, path, reviewed)
        return None if planned is None else (planned, decline_reason(path, reviewed, reason))

    async def decline_each(
        session: PinReviewSession, agents: Sequence[Record]
    ) -> Mapping[str, BulkOutcome]:
        inheriting = await _load_inheriting(session, agents, template_id, reviewed)
        offered = {
            id: layers
            for id, layers in inheriting.items()
            if pins.pin_status(path, layers).update_available
        }
        return await session.change_each({agent.id: agent for agent in agents}, offered, plan)

    record = session.record(ReviewDecision.DECLINED, reviewed, reason)
    return await change_all(session, replace(record, template_id=template_id), decline_each)


async def roll_back_for_all(
    ports: Ports, actor: Actor, template: str | None, path: Path, accepted: Digest
) -> tuple[BulkOutcome, ...]:
    """Roll back what was accepted together; return one outcome each: see roll_back_all."""
    return (await roll_back_all(ports, actor, template, path, accepted)).outcomes


async def roll_back_all(
    ports: Ports, actor: Actor, template: str | None, path: Path, accepted: Digest
) -> BulkReview:
    """Roll back what was accepted together, with one outcome each, by id.

    For every agent of a template, or else for all that do not have the file from their template.
    An agent whose pin has moved since gets a Conflict that names it; agents that never accepted
    have no outcome. Queries and transactions as in `accept_part`.
    """
    session = await start_review(ports, actor, path)
    template_id = None
    if template is not None:
        template_record = await get_by_id_or_slug(
            ports, actor.tenant, RecordType.TEMPLATE, template
        )
        template_id = template_record.id

    async def roll_back_each(
        session: PinReviewSession, agents: Sequence[Record]
    ) -> Mapping[str, BulkOutcome]:
        return await bulk_roll_back.roll_back_each(session, agents, template_id, accepted)

    record = session.record(ReviewDecision.ROLLED_BACK, accepted)
    record = replace(record, template_id=template_id)
    return await change_all(session, record, roll_back_each)


def _accept_plan(path: Path, reviewed: Digest | None) -> Plan:
    def plan(_: str, layers: Layers) -> tuple[PlannedWrite, str] | None:
        planned = pins.plan_accept(layers, path, reviewed)
        return (
            None
            if planned is None
            else (planned, f"{accept_reason(layers, planned)}{FOR_ALL_SUFFIX}")
        )

    return plan


async def _load_inheriting(
    session: PinReviewSession,
    agents: Sequence[Record],
    template: str | None,
    reviewed: Digest | None,
) -> dict[str, Layers]:
    """Layers of the agents that inherit the file from the template, or from the defaults."""
    source = ScopeKind.TEMPLATE if template else ScopeKind.DEFAULTS
    layers_by_agent = await session.load_layers(agents)
    return {
        id: layers
        for id, layers in layers_by_agent.items()
        if inherits_from(source, layers, session.path, is_removal=reviewed is None)
    }


async def change_all(
    session: PinReviewSession,
    record: ReviewRecord,
    change_each: ChangeEach,
    pages: AsyncIterator[Sequence[Record]] | None = None,
) -> BulkReview:
    """Change every agent of the record's template, or of the tenant; or those of `pages`.

    The review is recorded before the first page, so that what an interrupted one changed can be
    rolled back.
    """
    ports, actor = session.ports, session.actor
    id = new_review_id(session.at, ports.clock.new_id(REVIEW_PREFIX))
    await store_review(ports, actor, id, record)
    template, results = None if pages else record.template_id, list[BulkOutcome]()
    async for page in pages or iter_agents(ports, actor, template):
        results += await _change_batch(session, template, page, change_each)
        session = await _restart(session)
    results.sort(key=lambda result: result.agent)
    changed = sum(result.changed for result in results)
    failed = sum(result.problem is not None for result in results)
    if changed:
        await store_review(ports, actor, id, replace(record, changed=changed, failed=failed))
        return BulkReview(id, tuple(results))
    await _delete(ports, actor, id)
    return BulkReview(None, tuple(results))


async def iter_agents(
    ports: Ports, actor: Actor, template: str | None
) -> AsyncIterator[Sequence[Record]]:
    """Iterate over the agents of a template, or of the tenant, in pages."""
    index_key, after = by_template_index(template) if template else "", ""
    while page := await ports.records.list(
        actor.tenant,
        RecordType.AGENT,
        index_key=index_key,
        after=after,
        limit=_AGENT_PAGE_SIZE,
    ):
        yield page
        if len(page) < _AGENT_PAGE_SIZE:
            return
        after = page[-1].id


async def _restart(session: PinReviewSession) -> PinReviewSession:
    """Session under the current rules, at the time of the same review."""
    current = await start_review(session.ports, session.actor, session.path)
    return replace_session(current, at=session.at)


async def store_review(ports: Ports, actor: Actor, id: str, record: ReviewRecord) -> None:
    change = review_change(actor.tenant, id, record)
    await commit_changes(ports, actor, f"review {record.path}", [change])


async def _delete(ports: Ports, actor: Actor, id: str) -> None:
    change = RecordChange(actor.tenant, RecordType.REVIEW, id, None)
    await commit_changes(ports, actor, "delete an empty review", [change])


async def _choose(
    ports: Ports,
    actor: Actor,
    template: str | None,
    path: Path,
    reviewed: Digest | None,
    part: FollowerPart,
) -> frozenset[str]:
    """Choose agents by id. Raises NotFound for a listed agent that does not inherit the file."""
    agents = await _load_followers(ports, actor, template, path)
    if part.tag is not None:
        return frozenset(id for id, agent in agents.items() if part.tag in agent.tags)
    if part.agents is not None:
        ids = {agent.slug: id for id, agent in agents.items()} | {id: id for id in agents}
        unknown = [name for name in part.agents if name not in ids]
        if unknown:
            raise NotFound(f"no such agent inherits {path} here: {', '.join(unknown[:5])}")
        return frozenset(ids[name] for name in part.agents)
    return choose_part(part, tuple(agents), reviewed or "")


async def _load_followers(
    ports: Ports, actor: Actor, template: str | None, path: Path
) -> Mapping[str, AgentRecord]:
    """Agents that inherit the file from the template, or from the defaults, by id."""
    kind = ScopeKind.TEMPLATE if template else ScopeKind.DEFAULTS
    agents: dict[str, AgentRecord] = {}
    async for batch in iter_followers(ports, Scope(actor.tenant, kind, template or "")):
        agents |= {agent.id: agent_from_record(agent) for agent in batch}
    if template is None:
        ids = sorted({agent.template_id for agent in agents.values() if agent.template_id})
        scopes = [Scope(actor.tenant, ScopeKind.TEMPLATE, id) for id in ids]
        trees = await ports.trees.read(scopes, (path,)) if scopes else ()
        shadowing = {tree.scope.name for tree in trees if tree.entry(path)}
        agents = {id: agent for id, agent in agents.items() if agent.template_id not in shadowing}
    return agents


async def _load_offer(
    ports: Ports, actor: Actor, template: str | None, path: Path, reviewed: Digest | None
) -> str | None:
    """Return the template's id, None for the defaults.

    Raises NotFound if it lacks the file, ValidationError if it has the one that would be removed.
    """
    scopes = [Scope(actor.tenant, ScopeKind.DEFAULTS, "")]
    id = None
    if template is not None:
        id = (await get_by_id_or_slug(ports, actor.tenant, RecordType.TEMPLATE, template)).id
        scopes.insert(0, Scope(actor.tenant, ScopeKind.TEMPLATE, id))
    offered = upstream_blob(path, await ports.trees.read(scopes, (path,)))
    if reviewed is not None and offered is None:
        raise NotFound(f"no such file to review: {path}")
    if reviewed is None and offered is not None:
        raise ValidationError(f"{path} was not removed: sha256 of the offered content is missing")
    return id


async def _change_batch(
    session: PinReviewSession,
    template: str | None,
    agents: Sequence[Record],
    change_each: ChangeEach,
) -> Sequence[BulkOutcome]:
    """Change a batch of agents; retries those that conflicted."""
    results: dict[str, BulkOutcome] = {}
    pending = agents
    for _ in range(MAX_ATTEMPTS):
        results |= await change_each(session, pending)
        conflicted = [id for id, result in results.items() if isinstance(result.problem, Busy)]
        if not conflicted:
            break
        session = await _restart(session)
        reloaded = await session.ports.records.get(
            session.actor.tenant, RecordType.AGENT, conflicted
        )
        pending = [
            agent
            for agent in reloaded
            if agent and (not template or agent_from_record(agent).template_id == template)
        ]
        for id in set(conflicted) - {agent.id for agent in pending}:
            results[id] = BulkOutcome(
                id, problem=NotFound("the agent no longer follows the template")
            )
    return [results[agent.id] for agent in agents if agent.id in results]
