"""Sandboxes: where the commands of agents run, as their account describes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from carrel.actions.records import commit_changes, retry_while_busy
from carrel.actions.sandbox import account_records, release
from carrel.actions.sandbox.account_records import AccountRecordType
from carrel.core.access import Actor
from carrel.core.errors import ValidationError
from carrel.core.field_validation import merged
from carrel.core.sandbox import tool_access
from carrel.core.sandbox.sandbox_config import (
    DEFAULT_OUTPUT,
    DEFAULT_TIMEOUT,
    Place,
    checked,
    rewritten,
    unmasked,
    wants_network,
)
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.core.store.tree import IdempotencyKey
from carrel.ports import Ports
from carrel.ports.sandbox import ResourceLimits

_MADE_BY: Final = ("provider", "persistent", "memoryLimit", "envVars", "options")


async def get(ports: Ports, actor: Actor, id: str) -> Record:
    return await account_records.get(ports, actor, BOOK, id)


async def listing(ports: Ports, actor: Actor) -> list[Record]:
    return await account_records.listing(ports, actor, BOOK)


async def create(
    ports: Ports, actor: Actor, given: Mapping[str, Any], receipt: IdempotencyKey | None = None
) -> Record:
    """Raises Malformed."""
    return await account_records.create(ports, actor, BOOK, given, receipt)


async def patch(
    ports: Ports,
    actor: Actor,
    id: str,
    given: Mapping[str, Any],
    receipt: IdempotencyKey | None = None,
) -> Record:
    """Merge what is given into what is there. Raises Missing and Malformed.

    Instances that were made by other settings are let go: nothing runs on under what was revoked.
    """
    was = await get(ports, actor, id)
    became = await account_records.patch(ports, actor, BOOK, id, given, receipt)
    if "config" in given and _terms(ports, was) != _terms(ports, became):
        await release.release_sandbox_instances(ports, was)
    return became


def _terms(ports: Ports, record: Record) -> Mapping[str, Any]:
    """What an instance is made by."""
    config = _opened(ports, record.tenant, record.id, record.body["config"])
    terms = {name: config.get(name) for name in _MADE_BY}
    old = config.get("lifecycle", {}).get("maxLifetimeSeconds")
    return {**terms, "lifetime": old, "network": wants_network(config)}


async def delete(
    ports: Ports, actor: Actor, id: str, receipt: IdempotencyKey | None = None
) -> None:
    """Remove a sandbox, and let go of instances that it keeps. Raises Missing.

    Agents that refer to it fail when they use it, and say so.
    """

    async def attempt() -> Record:
        was = await get(ports, actor, id)
        change = RecordChange(was.tenant, was.type, was.id, None, was.revision)
        await commit_changes(ports, actor.name, "delete a sandbox", [change], receipt=receipt)
        return was

    await release.release_sandbox_instances(ports, await retry_while_busy(attempt))


def opened(ports: Ports, sandbox: tool_access.SandboxSpec) -> Mapping[str, Any]:
    """Its config with the secrets in it as they are: for whoever runs something, and no other."""
    return _opened(ports, sandbox.tenant, sandbox.id, sandbox.config)


def bounds_of(config: Mapping[str, Any]) -> ResourceLimits:
    """What a command may use there.

    Raises Malformed where what is stored is more than is allowed now: nothing is silently less.
    """
    known = checked(config)
    usual = ResourceLimits()
    return ResourceLimits(
        seconds=known.get("timeout", DEFAULT_TIMEOUT),
        output_bytes=known.get("outputLimitBytes", DEFAULT_OUTPUT),
        memory_mb=known.get("memoryLimit", usual.memory_mb),
        memory_limit_required="memoryLimit" in known,
        network=wants_network(known),
    )


async def _settle(
    ports: Ports,
    tenant: str,
    id: str,
    patch: Mapping[str, Any],
    stored: Mapping[str, Any],
) -> Mapping[str, Any]:
    before = _opened(ports, tenant, id, stored)
    config = checked(unmasked(merged(before, patch), before))
    _enforceable(ports, config)
    await _reachable(ports, config)
    return stored if config == before else _sealed(ports, tenant, id, config)


def _enforceable(ports: Ports, config: Mapping[str, Any]) -> None:
    """That its provider keeps to what is asked, where it is here and runs anything at all."""
    provider = ports.sandboxes.get(config["provider"])
    if provider is None:
        return
    if all(provider.unsupported_reason(ResourceLimits(network=open)) for open in (False, True)):
        return
    persistent = config.get("persistent") is True
    if reason := provider.unsupported_reason(bounds_of(config), persistent=persistent):
        raise ValidationError(
            f"config cannot be enforced by provider {config['provider']}: {reason}"
        )


async def _reachable(ports: Ports, config: Mapping[str, Any]) -> None:
    """That no address in it leads to where only we should get."""
    for place, url in _addresses(config.get("options", {}), ("options",)):
        plain = "" if url.lower().startswith("https://") else "it is not https"
        if reason := plain or await ports.webhook_sender.refusal_reason(url):
            raise ValidationError(f"config.{'.'.join(map(str, place))} is refused: {reason}")


def _addresses(value: object, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str) and "://" in value:
        yield place, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _addresses(inner, (*place, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _addresses(inner, (*place, at))


def _sealed(ports: Ports, tenant: str, id: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    def seal(place: Place, value: str) -> str:
        return ports.vault.seal(value.encode(), _context(tenant, id, place))

    return rewritten(config, seal)


def _opened(ports: Ports, tenant: str, id: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    def unseal(place: Place, value: str) -> str:
        return ports.vault.open(value, _context(tenant, id, place)).decode()

    return rewritten(config, unseal)


def _context(tenant: str, id: str, place: Place) -> str:
    """What a sealed value is bound to: it opens in no other place."""
    return f"sandbox/{tenant}/{id}/{msgspec.json.encode(place).decode()}"


BOOK: Final = AccountRecordType(RecordType.SANDBOX, "sb", _settle)
