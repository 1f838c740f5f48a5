"""Sandboxes: where agents' commands run, configured per account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import commit_changes
from carrel.actions.retry import retry_on_conflict
from carrel.actions.sandbox import account_records, release
from carrel.actions.sandbox.account_records import AccountRecordType
from carrel.core.access import Actor
from carrel.core.errors import ValidationError
from carrel.core.field_validation import merge_patch
from carrel.core.sandbox import tool_access
from carrel.core.sandbox.account_record import account_from_record
from carrel.core.sandbox.sandbox_config import (
    DEFAULT_OUTPUT_BYTES,
    DEFAULT_TIMEOUT_SECONDS,
    ConfigPath,
    has_network_access,
    map_secrets,
    parse_sandbox_config,
    restore_secrets,
)
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record, RecordType, deletion
from carrel.ports import Ports
from carrel.ports.sandbox import ResourceLimits

_INSTANCE_FIELDS: Final = ("provider", "persistent", "memoryLimit", "envVars", "options")


async def get(ports: Ports, actor: Actor, id: str) -> Record:
    return await account_records.get(ports, actor, SANDBOX_TYPE, id)


async def list_sandboxes(ports: Ports, actor: Actor) -> list[Record]:
    return await account_records.list_records(ports, actor, SANDBOX_TYPE)


async def create(
    ports: Ports,
    actor: Actor,
    fields: Mapping[str, Any],
    idempotency_key: IdempotencyKey | None = None,
) -> Record:
    """Create a sandbox. Raises ValidationError."""
    return await account_records.create(ports, actor, SANDBOX_TYPE, fields, idempotency_key)


async def patch(
    ports: Ports,
    actor: Actor,
    id: str,
    fields: Mapping[str, Any],
    idempotency_key: IdempotencyKey | None = None,
) -> Record:
    """Apply a merge patch. Raises NotFound and ValidationError.

    Releases instances created with other settings, so nothing keeps running under revoked ones.
    """
    existing = await get(ports, actor, id)
    updated = await account_records.patch(ports, actor, SANDBOX_TYPE, id, fields, idempotency_key)
    if "config" in fields and _instance_settings(ports, existing) != _instance_settings(
        ports, updated
    ):
        await release.release_sandbox_instances(ports, existing)
    return updated


def _instance_settings(ports: Ports, record: Record) -> Mapping[str, Any]:
    """Return the settings an instance is created with."""
    config = _decrypt(ports, record.tenant, record.id, account_from_record(record).config)
    settings = {name: config.get(name) for name in _INSTANCE_FIELDS}
    max_lifetime = config.get("lifecycle", {}).get("maxLifetimeSeconds")
    return {**settings, "lifetime": max_lifetime, "network": has_network_access(config)}


async def delete(
    ports: Ports, actor: Actor, id: str, idempotency_key: IdempotencyKey | None = None
) -> None:
    """Delete a sandbox and release its instances. Raises NotFound.

    Agents that refer to it get an error when they use it.
    """
    await release.release_sandbox_instances(
        ports, await _delete_record(ports, actor, id, idempotency_key)
    )


@retry_on_conflict()
async def _delete_record(
    ports: Ports, actor: Actor, id: str, idempotency_key: IdempotencyKey | None
) -> Record:
    existing = await get(ports, actor, id)
    await commit_changes(
        ports, actor, "delete a sandbox", [deletion(existing)], idempotency_key=idempotency_key
    )
    return existing


def decrypt_config(ports: Ports, sandbox: tool_access.SandboxSpec) -> Mapping[str, Any]:
    """Return the config with decrypted secrets; for running commands only."""
    return _decrypt(ports, sandbox.tenant, sandbox.id, sandbox.config)


def resource_limits(config: Mapping[str, Any]) -> ResourceLimits:
    """Return the resource limits of commands.

    Raises ValidationError if the stored config exceeds what is allowed now; it is never reduced
    silently.
    """
    valid = parse_sandbox_config(config)
    defaults = ResourceLimits()
    return ResourceLimits(
        seconds=valid.get("timeout", DEFAULT_TIMEOUT_SECONDS),
        output_bytes=valid.get("outputLimitBytes", DEFAULT_OUTPUT_BYTES),
        memory_mb=valid.get("memoryLimit", defaults.memory_mb),
        memory_limit_required="memoryLimit" in valid,
        network=has_network_access(valid),
    )


async def _merge_config(
    ports: Ports,
    tenant: str,
    id: str,
    patch: Mapping[str, Any],
    stored: Mapping[str, Any],
) -> Mapping[str, Any]:
    before = _decrypt(ports, tenant, id, stored)
    config = parse_sandbox_config(restore_secrets(merge_patch(before, patch), before))
    config = await _redact_config(ports, tenant, config)
    _require_enforceable(ports, config)
    await _require_public_urls(ports, config)
    return stored if config == before else _encrypt(ports, tenant, id, config)


async def _redact_config(ports: Ports, tenant: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Redact all texts of a config but its own secrets, which are stored sealed."""
    sealed: dict[ConfigPath, str] = {}
    map_secrets(config, sealed.setdefault)
    redacted = (await load_rules(ports, tenant)).redact_fields(config)
    return parse_sandbox_config(map_secrets(redacted, sealed.get))


def _require_enforceable(ports: Ports, config: Mapping[str, Any]) -> None:
    """Raise ValidationError if the available provider cannot enforce the config."""
    provider = ports.sandboxes.get(config["provider"])
    if provider is None:
        return
    if all(provider.unsupported_reason(ResourceLimits(network=open)) for open in (False, True)):
        return
    persistent = config.get("persistent") is True
    if reason := provider.unsupported_reason(resource_limits(config), persistent=persistent):
        raise ValidationError(
            f"config cannot be enforced by provider {config['provider']}: {reason}"
        )


async def _require_public_urls(ports: Ports, config: Mapping[str, Any]) -> None:
    """Raise ValidationError if a URL in the options is not https or not public."""
    for place, url in _iter_urls(config.get("options", {}), ("options",)):
        not_https = "" if url.lower().startswith("https://") else "it is not https"
        if reason := not_https or await ports.webhook_sender.refusal_reason(url):
            raise ValidationError(f"config.{'.'.join(map(str, place))} is refused: {reason}")


def _iter_urls(value: object, place: ConfigPath) -> Iterator[tuple[ConfigPath, str]]:
    if isinstance(value, str) and "://" in value:
        yield place, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _iter_urls(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _iter_urls(inner, (*place, index))


def _encrypt(ports: Ports, tenant: str, id: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    def seal(place: ConfigPath, value: str) -> str:
        return ports.vault.seal(value.encode(), _seal_context(tenant, id, place))

    return map_secrets(config, seal)


def _decrypt(ports: Ports, tenant: str, id: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    def unseal(place: ConfigPath, value: str) -> str:
        return ports.vault.open(value, _seal_context(tenant, id, place)).decode()

    return map_secrets(config, unseal)


def _seal_context(tenant: str, id: str, place: ConfigPath) -> str:
    """Encryption context of a sealed value: bound to its place in the config."""
    return f"sandbox/{tenant}/{id}/{msgspec.json.encode(place).decode()}"


SANDBOX_TYPE: Final = AccountRecordType(RecordType.SANDBOX, "sb", _merge_config)
