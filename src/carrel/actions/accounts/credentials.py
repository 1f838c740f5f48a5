"""Authentication: resolves a token to the caller (Actor)."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace

from carrel.core.access import Actor, CredentialKind, Role, effective_permissions
from carrel.core.accounts import (
    KeyRecord,
    key_from_record,
    person_from_record,
    tenant_from_record,
)
from carrel.core.errors import Unauthenticated
from carrel.core.identifiers import TimestampMs
from carrel.core.store.record import Record, RecordType, global_unique_key
from carrel.ports import Ports

INVALID_CREDENTIAL = "the credential is missing, unknown, revoked or expired"


def hash_token(token: str) -> str:
    """Hash a token for storage: 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def key_unique_key(hash: str) -> str:
    return global_unique_key(RecordType.KEY, "hash", hash)


async def authenticate(ports: Ports, token: str) -> Actor:
    """Return the caller of a token. Raises Unauthenticated without a reason."""
    revision = await ports.records.revision()
    cached: tuple[Actor, str, TimestampMs] | None = ports.record_cache.get(revision, token)
    if cached is None:
        cached = await _load_actor_by_hash(ports, hash_token(token))
        ports.record_cache.put(revision, token, cached)
    actor, key, expires = cached
    now = ports.clock.now()
    subject = f"{RecordType.KEY}/{key}"
    if expires and now >= expires:
        ports.credential_uses.add(actor.tenant, subject, actor.key_name, "", now)
        raise Unauthenticated(INVALID_CREDENTIAL)
    ports.key_last_used[key] = now
    ports.credential_uses.add(actor.tenant, subject, actor.key_name, actor.name, now)
    return actor


async def require_machine(ports: Ports, actor: Actor, tenant: str | None) -> None:
    """Raise Unauthenticated for a person, or if a tenant is named, by id or slug, that differs."""
    if actor.kind is CredentialKind.PERSON:
        raise Unauthenticated(INVALID_CREDENTIAL)
    if tenant is not None and not await _tenant_matches(ports, actor.tenant, tenant):
        raise Unauthenticated(INVALID_CREDENTIAL)


async def require_own_tenant(ports: Ports, actor: Actor, tenant: str) -> None:
    """Raise Unauthenticated if a service names a tenant other than its own."""
    if actor.kind is CredentialKind.SERVICE and not await _tenant_matches(
        ports, actor.tenant, tenant
    ):
        raise Unauthenticated(INVALID_CREDENTIAL)


async def _tenant_matches(ports: Ports, tenant: str, name: str) -> bool:
    if name == tenant:
        return True
    revision = await ports.records.revision()
    slug: str | None = ports.record_cache.get(revision, ("slug", tenant))
    if slug is None:
        [record] = await ports.records.get(tenant, RecordType.TENANT, [tenant])
        slug = tenant_from_record(record).slug if record else ""
        ports.record_cache.put(revision, ("slug", tenant), slug)
    return bool(name) and name == slug


async def _load_actor_by_hash(ports: Ports, token_hash: str) -> tuple[Actor, str, TimestampMs]:
    [record] = await ports.records.get_by_unique_key([key_unique_key(token_hash)])
    if record is None:
        raise Unauthenticated(INVALID_CREDENTIAL)
    key = key_from_record(record)
    if not hmac.compare_digest(key.hash, token_hash):
        raise Unauthenticated(INVALID_CREDENTIAL)
    return await _actor_from_key(ports, record, key), record.id, key.expires


async def _actor_from_key(ports: Ports, record: Record, key: KeyRecord) -> Actor:
    name, role = record.id, None
    if key.kind is CredentialKind.PERSON:
        name = key.person_id or ""
        role = await _load_role(ports, record.tenant, name)
    scopes = None if key.scopes is None else frozenset(key.scopes)
    return Actor(
        tenant=record.tenant,
        name=name,
        permissions=effective_permissions(key.kind, role, scopes),
        kind=key.kind,
        role=role,
        person=key.person_id,
        agent=key.agent_id,
        workspace=key.workspace,
        key=record.id,
        key_name=key.name,
    )


async def reload_actor(ports: Ports, actor: Actor) -> Actor:
    """Return the caller with current permissions, never more than they had before.

    Raises Unauthenticated if the key expired, or the key or the person was deleted.
    """
    if not actor.key and actor.person is None:
        return actor
    revision = await ports.records.revision()
    cache_key = ("current", actor)
    cached: tuple[Actor, TimestampMs] | None = ports.record_cache.get(revision, cache_key)
    if cached is None:
        cached = await _load_current(ports, actor)
        ports.record_cache.put(revision, cache_key, cached)
    current, expires = cached
    if expires and ports.clock.now() >= expires:
        raise Unauthenticated(INVALID_CREDENTIAL)
    return replace(current, permissions=current.permissions & actor.permissions)


async def _load_current(ports: Ports, actor: Actor) -> tuple[Actor, TimestampMs]:
    """Load the holder of the caller's key, else the person, and the end of the key or 0."""
    if actor.key:
        [record] = await ports.records.get(actor.tenant, RecordType.KEY, [actor.key])
        if record is None:
            raise Unauthenticated(INVALID_CREDENTIAL)
        key = key_from_record(record)
        return await _actor_from_key(ports, record, key), key.expires
    role = await _load_role(ports, actor.tenant, actor.person or "")
    permissions = effective_permissions(actor.kind, role, None)
    return replace(actor, role=role, permissions=permissions), 0


async def _load_role(ports: Ports, tenant: str, id: str) -> Role:
    """Load the person's current role; roles are never copied into a key."""
    [person] = await ports.records.get(tenant, RecordType.PERSON, [id])
    if person is None:
        raise Unauthenticated(INVALID_CREDENTIAL)
    return person_from_record(person).role
