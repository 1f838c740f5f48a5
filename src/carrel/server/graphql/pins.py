"""Where agents stand with their pinned files, and what templates offer for review."""

from __future__ import annotations

from typing import Any, Final

from ariadne import ObjectType, QueryType

from carrel.actions.agents import agents
from carrel.actions.overlay.pins import can_see_agent
from carrel.core.access import Permission
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path
from carrel.core.overlay.file_classes import FLOOR, FileClass
from carrel.core.overlay.pins import PinStatus as Pin
from carrel.core.store.record import Record
from carrel.core.store.tree import Blob, Version
from carrel.server.graphql.context import Info, ResolverContext
from carrel.server.graphql.types import Agent, NamedRecord, PinOffer, PinStatus

query: Final = QueryType()
agent: Final = ObjectType("Agent")
template: Final = ObjectType("Template")
pin_status: Final = ObjectType("PinStatusFile")
offered_pin: Final = ObjectType("OfferedPin")
TYPES: Final = (query, agent, template, pin_status, offered_pin)

ALWAYS: Final = tuple(Path(rule.pattern) for rule in FLOOR if rule.file_class is FileClass.PINNED)
"""The files that are pinned in every tenant, in the order in which they are shown."""


async def _pins(context: ResolverContext, record: Record) -> tuple[Pin, ...]:
    context.must(Permission.WORKSPACE_READ)
    if not can_see_agent(context.actor, record):
        raise NotFound(f"there is no agent {record.id}")
    return await context.pins.load(record.id)


async def _statuses(context: ResolverContext, record: Record) -> list[PinStatus]:
    """The three that always are, whether there is such a file or not; then all others."""
    known = {pin.path: pin for pin in await _pins(context, record)}
    floor = [known.pop(path, Pin(path, None, None, overridden=False, version=0)) for path in ALWAYS]
    return [PinStatus.of(pin) for pin in (*floor, *known.values())]


@query.field("agentPinStatus")
async def agent_pin_status(
    _: Any, info: Info, agent_id: str, include_nested: bool
) -> list[PinStatus]:
    context = info.context
    context.must(Permission.WORKSPACE_READ)
    found = await agents.get(context.ports, context.actor, agent_id)
    if not can_see_agent(context.actor, found):
        raise NotFound(f"there is no agent {agent_id}")
    statuses = await _statuses(context, context.agent(found).record)
    return [one for one in statuses if include_nested or one.folder_path is None]


@agent.field("pins")
async def pins_of(source: Agent, info: Info) -> list[PinStatus]:
    return await _statuses(info.context, source.record)


@agent.field("updatesAvailable")
async def updates_available(source: Agent, info: Info) -> int:
    known = await _pins(info.context, source.record)
    return sum(pin.pinned is not None and pin.update_available for pin in known)


@agent.field("overrideCount")
async def override_count(source: Agent, info: Info) -> int:
    context = info.context
    context.must(Permission.WORKSPACE_READ)
    if not can_see_agent(context.actor, source.record):
        raise NotFound(f"there is no agent {source.id}")
    return await context.overrides.load(source.id)


async def _text(context: ResolverContext, path: str, blob: Blob | None) -> str | None:
    """A review is of text; what is none is shown as well as it can be, and told by its digest."""
    if blob is None:
        return None
    return (await context.bytes_of(path, blob)).decode("utf-8", "replace")


@pin_status.field("pinnedContent")
async def pinned_content(source: PinStatus, info: Info) -> str | None:
    return await _text(info.context, source.path, source.pin.pinned)


@pin_status.field("latestContent")
async def latest_content(source: PinStatus, info: Info) -> str | None:
    return await _text(info.context, source.path, source.pin.latest)


@pin_status.field("pinnedTokens")
async def pinned_tokens(source: PinStatus, info: Info) -> int | None:
    pinned = source.pin.pinned
    return await info.context.tokens_of(source.path, pinned) if pinned else None


@pin_status.field("latestTokens")
async def latest_tokens(source: PinStatus, info: Info) -> int | None:
    latest = source.pin.latest
    return await info.context.tokens_of(source.path, latest) if latest else None


async def _told(context: ResolverContext, pin: Pin) -> Version | None:
    where, head = pin.latest_from, pin.latest_head
    return await context.versions.load((where, pin.path, head.version)) if where and head else None


@pin_status.field("latestAuthor")
async def latest_author(source: PinStatus, info: Info) -> str | None:
    told = await _told(info.context, source.pin)
    return told.by if told else None


@pin_status.field("latestReason")
async def latest_reason(source: PinStatus, info: Info) -> str | None:
    told = await _told(info.context, source.pin)
    return told.why if told else None


@template.field("pins")
async def offered_by(source: NamedRecord, info: Info) -> list[PinOffer]:
    context = info.context
    context.must(Permission.WORKSPACE_READ)
    offers = await context.offers.load(source.id)
    return [PinOffer(one.blob, one.path.text, one.source, one.blob.digest) for one in offers]


@offered_pin.field("latestContent")
async def offered_content(source: PinOffer, info: Info) -> str | None:
    return await _text(info.context, source.path, source.blob)
