"""Resolvers for pinned files and their updates."""

from __future__ import annotations

from typing import Any, Final

from ariadne import ObjectType, QueryType

from carrel.actions.agents import agents
from carrel.core.access import Permission
from carrel.core.agents.private_access import require_full_access
from carrel.core.identifiers import Path
from carrel.core.overlay.file_classes import BUILT_IN_RULES, FileClass
from carrel.core.overlay.pins import PinStatus as Pin
from carrel.core.store.blob import Blob
from carrel.core.store.entry import Version
from carrel.core.store.record import Record
from carrel.server.graphql.context import Info, ResolverContext
from carrel.server.graphql.types import AgentType, NamedRecordType, PinOfferType, PinStatusType

query: Final = QueryType()
agent: Final = ObjectType("Agent")
template: Final = ObjectType("Template")
pin_status: Final = ObjectType("PinStatusFile")
offered_pin: Final = ObjectType("OfferedPin")
TYPES: Final = (query, agent, template, pin_status, offered_pin)

ALWAYS_PINNED: Final = tuple(
    Path(rule.pattern) for rule in BUILT_IN_RULES if rule.file_class is FileClass.PINNED
)
"""Files pinned in every tenant, in display order."""


async def _statuses(context: ResolverContext, record: Record) -> list[PinStatusType]:
    """Statuses of the always pinned files, present or not, then of all others."""
    by_path = {pin.path: pin for pin in await context.pins.load(record.id)}
    floor = [
        by_path.pop(path, Pin(path, None, None, overridden=False, version=0))
        for path in ALWAYS_PINNED
    ]
    return [PinStatusType.from_pin(pin) for pin in (*floor, *by_path.values())]


@query.field("agentPinStatus")
async def agent_pin_status(
    _: Any, info: Info, agent_id: str, include_nested: bool
) -> list[PinStatusType]:
    context = info.context
    context.require(Permission.WORKSPACE_READ)
    record = await agents.get(context.ports, context.actor, agent_id)
    require_full_access(context.actor, record, agent_id)
    statuses = await _statuses(context, context.agent_from_record(record).record)
    return [status for status in statuses if include_nested or status.folder_path is None]


@agent.field("pins")
async def pins_of(source: AgentType, info: Info) -> list[PinStatusType] | None:
    context = info.context
    context.require(Permission.WORKSPACE_READ)
    return await _statuses(context, source.record) if context.opens(source.record) else None


@agent.field("updatesAvailable")
async def updates_available(source: AgentType, info: Info) -> int | None:
    context = info.context
    context.require(Permission.WORKSPACE_READ)
    if not context.opens(source.record):
        return None
    pins = await context.pins.load(source.id)
    return sum(pin.pinned is not None and pin.update_available for pin in pins)


@agent.field("overrideCount")
async def override_count(source: AgentType, info: Info) -> int | None:
    context = info.context
    context.require(Permission.WORKSPACE_READ)
    return await context.overrides.load(source.id) if context.opens(source.record) else None


async def _text(context: ResolverContext, path: str, blob: Blob | None) -> str | None:
    """Content as text, with undecodable bytes replaced."""
    if blob is None:
        return None
    return (await context.read_bytes(path, blob)).decode("utf-8", "replace")


@pin_status.field("pinnedContent")
async def pinned_content(source: PinStatusType, info: Info) -> str | None:
    return await _text(info.context, source.path, source.pin.pinned)


@pin_status.field("latestContent")
async def latest_content(source: PinStatusType, info: Info) -> str | None:
    return await _text(info.context, source.path, source.pin.latest)


@pin_status.field("servedContent")
async def served_content(source: PinStatusType, info: Info) -> str | None:
    return await _text(info.context, source.path, source.pin.served)


@pin_status.field("servedTokens")
async def served_tokens(source: PinStatusType, info: Info) -> int | None:
    served = source.pin.served
    return await info.context.count_tokens(source.path, served) if served else None


@pin_status.field("pinnedTokens")
async def pinned_tokens(source: PinStatusType, info: Info) -> int | None:
    pinned = source.pin.pinned
    return await info.context.count_tokens(source.path, pinned) if pinned else None


@pin_status.field("latestTokens")
async def latest_tokens(source: PinStatusType, info: Info) -> int | None:
    latest = source.pin.latest
    return await info.context.count_tokens(source.path, latest) if latest else None


async def _load_latest_version(context: ResolverContext, pin: Pin) -> Version | None:
    scope, head = pin.latest_from, pin.latest_head
    return await context.versions.load((scope, pin.path, head.version)) if scope and head else None


@pin_status.field("latestAuthor")
async def latest_author(source: PinStatusType, info: Info) -> str | None:
    version = await _load_latest_version(info.context, source.pin)
    return version.author if version else None


@pin_status.field("latestReason")
async def latest_reason(source: PinStatusType, info: Info) -> str | None:
    version = await _load_latest_version(info.context, source.pin)
    return version.reason if version else None


@template.field("pins")
async def pin_offers(source: NamedRecordType, info: Info) -> list[PinOfferType]:
    context = info.context
    context.require(Permission.WORKSPACE_READ)
    offers = await context.offers.load(source.id)
    return [
        PinOfferType(offer.blob, offer.path.text, offer.source, offer.blob.digest)
        for offer in offers
    ]


@offered_pin.field("latestContent")
async def offered_content(source: PinOfferType, info: Info) -> str | None:
    return await _text(info.context, source.path, source.blob)
