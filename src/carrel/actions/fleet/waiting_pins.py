"""Agents for which an update of a pinned file waits, in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.agent_access import has_full_access, list_agents_of_person
from carrel.actions.overlay.pending_updates import PendingPin, list_pending_pins
from carrel.actions.records import Page
from carrel.core.access import Actor
from carrel.core.agents.agent import (
    WITHOUT_TEMPLATE_INDEX,
    agent_from_record,
    by_template_index,
)
from carrel.core.errors import ValidationError
from carrel.core.fleet.pin_groups import PinGroup
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

_BATCH_SIZE: Final = 500
_MAX_BATCHES: Final = 20
"""Batches of agents that one page reads at most."""
_NO_TEMPLATE: Final = "none"


class WaitingPin(Struct, frozen=True):
    agent: Record
    pin: PendingPin

    @property
    def id(self) -> str:
        return self.agent.id


class WaitingPinFilter(Struct, frozen=True):
    path: Path | None = None
    offered_by: Scope | None = None
    """Template or defaults that the update comes from; a removal comes from the defaults."""
    only_overridden: bool = False
    """Only agents whose own override an accept would drop."""

    def matches_group(self, group: PinGroup) -> bool:
        return group.is_waiting and self._matches(group.path, group.offered_by, group.is_overridden)

    def matches(self, pin: PendingPin) -> bool:
        return self._matches(pin.path, pin.latest_from, pin.overridden)

    def _matches(self, path: Path, offered_by: Scope | None, is_overridden: bool) -> bool:
        layer = self.offered_by
        is_removal = offered_by is None and layer is not None and layer.kind is ScopeKind.DEFAULTS
        return (
            self.path in {None, path}
            and (layer in {None, offered_by} or is_removal)
            and (is_overridden or not self.only_overridden)
        )


class _Position(Struct, frozen=True):
    """Place after some pins of an agent; agents are ordered by template and id."""

    template: str = ""
    agent: str = ""
    listed: int = 0
    """Pins of this agent that were listed; 0 if all were."""

    def to_cursor(self) -> str:
        return f"{self.template or _NO_TEMPLATE}.{self.agent}.{self.listed}"


def _parse_cursor(cursor: str) -> _Position | None:
    if not cursor:
        return None
    template, _, rest = cursor.partition(".")
    agent, _, listed = rest.partition(".")
    if not template or not agent or not listed.isascii() or not listed.isdecimal():
        raise ValidationError("cursor: must be the `next` of a page")
    return _Position("" if template == _NO_TEMPLATE else template, agent, int(listed[:9]))


def _template_order(template: str) -> tuple[bool, str]:
    """Agents without a template come last."""
    return (not template, template)


async def list_waiting_pins(  # noqa: PLR0913 - filters of a listing
    ports: Ports,
    actor: Actor,
    groups: Iterable[PinGroup],
    pin_filter: WaitingPinFilter,
    *,
    mine: bool = False,
    cursor: str = "",
    limit: int = 100,
) -> Page[WaitingPin]:
    """List agents with a waiting update, by template and id.

    `groups` are those of the caller's fleet. A page may be shorter than its limit and have a
    successor, since the work of one page is bounded. Raises ValidationError for a bad cursor.
    """
    start = _parse_cursor(cursor)
    templates = {group.template or "" for group in groups if pin_filter.matches_group(group)}
    listed: list[WaitingPin] = []
    read_count = 0
    async for template, agents in _iter_batches(ports, actor, templates, start, mine=mine):
        open_agents = [agent for agent in agents if has_full_access(actor, agent)]
        pending = await list_pending_pins(ports, actor.tenant, open_agents)
        for agent, pins in zip(open_agents, pending, strict=True):
            matching = [pin for pin in pins if pin_filter.matches(pin)]
            skipped = start.listed if start and agent.id == start.agent else 0
            room = limit - len(listed)
            listed += [WaitingPin(agent, pin) for pin in matching[skipped:][:room]]
            if len(matching) - skipped >= room:
                listed_count = skipped + room if len(matching) - skipped > room else 0
                return Page(tuple(listed), _Position(template, agent.id, listed_count).to_cursor())
        read_count += bool(agents)
        if agents and read_count == _MAX_BATCHES:
            return Page(tuple(listed), _Position(template, agents[-1].id).to_cursor())
    return Page(tuple(listed), None)


async def _iter_batches(
    ports: Ports, actor: Actor, templates: Iterable[str], start: _Position | None, *, mine: bool
) -> AsyncIterator[tuple[str, Sequence[Record]]]:
    """Iterate over batches of agents of these templates, from a position on."""
    own = await list_agents_of_person(ports, actor) if mine else []
    for template in sorted(templates, key=_template_order):
        if start and _template_order(template) < _template_order(start.template):
            continue
        after = ""
        if start and template == start.template:
            after = start.agent
            if start.listed:
                records = await ports.records.get(actor.tenant, RecordType.AGENT, [after])
                yield template, [agent for agent in records if agent]
        if mine:
            agents = [
                agent for agent in own if (agent_from_record(agent).template_id or "") == template
            ]
            yield template, [agent for agent in agents if agent.id > after]
            continue
        while batch := await ports.records.list(
            actor.tenant,
            RecordType.AGENT,
            index_key=by_template_index(template) if template else WITHOUT_TEMPLATE_INDEX,
            after=after,
            limit=_BATCH_SIZE,
        ):
            yield template, batch
            after = batch[-1].id
