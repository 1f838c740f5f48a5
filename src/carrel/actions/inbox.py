"""Inbox: pinned updates, approvals and proposed dreams that wait for a person."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from carrel.actions.fleet.fleet_counts import Fleet, load_fleet, load_template_names
from carrel.actions.fleet.waiting_pins import WaitingPin, WaitingPinFilter, list_waiting_pins
from carrel.actions.fleet.waiting_work import (
    InboxCounts,
    WaitingRecord,
    count_waiting,
    list_waiting,
)
from carrel.actions.records import Page, get_by_id_or_slug
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_from_record
from carrel.core.errors import Forbidden
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

DEFAULTS_NAME = "defaults"
"""In place of a template: the update comes from the defaults. No slug can be this."""


class InboxGroup(Struct, frozen=True):
    """One update of a pinned file and the agents for which it waits."""

    path: Path
    offered_by: Scope
    latest: str | None
    """Digest of the offered content; None if the file was removed."""
    count: int
    overridden: int
    """Agents whose own override an accept would drop."""
    newly_offered: int
    """Agents for which no version of the file was reviewed yet."""


class Inbox(Struct, frozen=True):
    groups: Sequence[InboxGroup]
    """All updates, those that concern most agents first."""
    waiting_by_template: Mapping[str | None, int]
    """Waiting updates by the template of their agents."""
    pins: Page[WaitingPin]
    approvals: Page[WaitingRecord]
    dreams: Page[WaitingRecord]
    counts: InboxCounts
    templates: Mapping[str, str]
    """Names of templates by id."""


def is_callers_agent(actor: Actor, agent: Record) -> bool:
    """Return whether the agent is paired with the caller or owned by them."""
    return agent_from_record(agent).is_of_person(actor.person)


async def load_inbox(ports: Ports, actor: Actor, *, mine: bool = False, limit: int = 100) -> Inbox:
    """Load the groups, counts and first items of all that waits. Raises Forbidden.

    Omits those of agents that the caller may not open.
    """
    _refuse_confined(actor)
    fleet = await load_fleet(ports, actor, mine=mine)
    groups = group_waiting(fleet)
    pins = await list_waiting_pins(
        ports, actor, fleet.pins, WaitingPinFilter(), mine=mine, limit=limit
    )
    by_template = Counter[str | None]()
    for group, count in fleet.pins.items():
        by_template[group.template] += count if group.is_waiting else 0
    counts = InboxCounts(
        by_template.total(),
        await count_waiting(ports, actor, RecordType.APPROVAL, mine=mine),
        await count_waiting(ports, actor, RecordType.DREAM, mine=mine),
    )
    names = await load_template_names(ports, actor.tenant, by_template)
    return Inbox(
        groups,
        +by_template,
        pins,
        await list_waiting(ports, actor, RecordType.APPROVAL, mine=mine, limit=limit),
        await list_waiting(ports, actor, RecordType.DREAM, mine=mine, limit=limit),
        counts,
        names,
    )


async def load_waiting_pins(  # noqa: PLR0913 - filters of a listing
    ports: Ports,
    actor: Actor,
    *,
    path: Path | None = None,
    offered_by: str | None = None,
    only_overridden: bool = False,
    mine: bool = False,
    cursor: str = "",
    limit: int = 100,
) -> Page[WaitingPin]:
    """List agents with a waiting update. Raises Forbidden, NotFound, ValidationError.

    `offered_by` is a template, or `defaults`.
    """
    _refuse_confined(actor)
    scope = None
    if offered_by == DEFAULTS_NAME:
        scope = Scope(actor.tenant, ScopeKind.DEFAULTS, "")
    elif offered_by is not None:
        template = await get_by_id_or_slug(ports, actor.tenant, RecordType.TEMPLATE, offered_by)
        scope = Scope(actor.tenant, ScopeKind.TEMPLATE, template.id)
    fleet = await load_fleet(ports, actor, mine=mine)
    pin_filter = WaitingPinFilter(path, scope, only_overridden)
    return await list_waiting_pins(
        ports, actor, fleet.pins, pin_filter, mine=mine, cursor=cursor, limit=limit
    )


async def load_waiting_dreams(
    ports: Ports, actor: Actor, *, mine: bool = False, cursor: str = "", limit: int = 100
) -> Page[WaitingRecord]:
    """List dreams that wait for review. Raises Forbidden."""
    _refuse_confined(actor)
    return await list_waiting(ports, actor, RecordType.DREAM, mine=mine, cursor=cursor, limit=limit)


def group_waiting(fleet: Fleet) -> Sequence[InboxGroup]:
    """Group what waits by file and the layer that offers it."""
    parts = defaultdict[tuple[Path, Scope, str | None], Counter[str]](Counter)
    defaults = next(scope for scope in fleet.trees if scope.kind is ScopeKind.DEFAULTS)
    for group, count in fleet.pins.items():
        if group.is_waiting:
            part = parts[group.path, group.offered_by or defaults, group.latest]
            part["all"] += count
            part["overridden"] += count * group.is_overridden
            part["new"] += count * (group.pinned is None)
    groups = [
        InboxGroup(*key, part["all"], part["overridden"], part["new"])
        for key, part in parts.items()
    ]
    return sorted(groups, key=lambda group: (-group.count, group.path, group.offered_by))


def _refuse_confined(actor: Actor) -> None:
    if actor.is_confined:
        raise Forbidden("this credential is confined to one workspace")
