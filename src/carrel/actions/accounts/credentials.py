"""From a token to who is asking."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from typing import Any

from carrel.core.access import Actor, CredentialKind, Permission, Role, granted
from carrel.core.errors import Unauthenticated
from carrel.core.identifiers import TimestampMs
from carrel.core.store.record import Record, RecordType, global_unique_key
from carrel.ports import Ports

UNKNOWN = "the credential is missing, unknown, revoked or expired"


def hash_of(token: str) -> str:
    """How a token is stored: 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def key_handle(hash: str) -> str:
    return global_unique_key(RecordType.KEY, "hash", hash)


async def authenticate(ports: Ports, token: str) -> Actor:
    """Return whose token this is. Raises Unauthenticated, saying nothing of why."""
    revision = await ports.records.revision()
    found: tuple[Actor, str, TimestampMs] | None = ports.record_cache.get(revision, token)
    if found is None:
        found = await _find(ports, hash_of(token))
        ports.record_cache.put(revision, token, found)
    actor, key, expires = found
    now = ports.clock.now()
    if expires and now >= expires:
        raise Unauthenticated(UNKNOWN)
    ports.key_last_used[key] = now
    return actor


async def authenticate_service(ports: Ports, token: str, tenant: str) -> Actor:
    """The same for a service that also names its tenant, by id or slug: that has to be its own.

    Raises Unauthenticated, for keys of people and agents too.
    """
    actor = await authenticate(ports, token)
    if actor.kind is not CredentialKind.SERVICE:
        raise Unauthenticated(UNKNOWN)
    await refuse_contradiction(ports, actor, tenant)
    return actor


async def refuse_contradiction(ports: Ports, actor: Actor, tenant: str) -> None:
    """Raises Unauthenticated for a service that names another tenant than its own."""
    if actor.kind is CredentialKind.SERVICE and not await _is_called(ports, actor.tenant, tenant):
        raise Unauthenticated(UNKNOWN)


async def _is_called(ports: Ports, tenant: str, name: str) -> bool:
    if name == tenant:
        return True
    revision = await ports.records.revision()
    known: str | None = ports.record_cache.get(revision, ("slug", tenant))
    if known is None:
        [record] = await ports.records.get(tenant, RecordType.TENANT, [tenant])
        known = str(record.body["slug"]) if record else ""
        ports.record_cache.put(revision, ("slug", tenant), known)
    return bool(name) and name == known


async def _find(ports: Ports, hashed: str) -> tuple[Actor, str, TimestampMs]:
    [key] = await ports.records.get_by_unique_key([key_handle(hashed)])
    if key is None or not hmac.compare_digest(str(key.body["hash"]), hashed):
        raise Unauthenticated(UNKNOWN)
    return await _actor(ports, key), key.id, key.body.get("expires") or 0


async def _actor(ports: Ports, key: Record) -> Actor:
    body = key.body
    kind = CredentialKind(body["kind"])
    role = await _role(ports, key.tenant, body) if kind is CredentialKind.PERSON else None
    scopes = body.get("scopes")
    asked = None if scopes is None else frozenset(map(Permission, scopes))
    return Actor(
        tenant=key.tenant,
        name=body["personId"] if kind is CredentialKind.PERSON else key.id,
        permissions=granted(kind, role, asked),
        kind=kind,
        role=role,
        person=body.get("personId"),
        agent=body.get("agentId"),
        workspace=body.get("workspace"),
        key=key.id,
    )


async def actor_now(ports: Ports, actor: Actor) -> Actor:
    """The same caller with what they may do now, never more than they might then.

    Raises Unauthenticated where their key, or they themselves, are gone.
    """
    if actor.key:
        [key] = await ports.records.get(actor.tenant, RecordType.KEY, [actor.key])
        expires = (key.body.get("expires") or 0) if key else 0
        if key is None or (expires and ports.clock.now() >= expires):
            raise Unauthenticated(UNKNOWN)
        now = await _actor(ports, key)
    elif actor.person is not None:
        role = await _role(ports, actor.tenant, {"personId": actor.person})
        now = replace(actor, role=role, permissions=granted(actor.kind, role, None))
    else:
        return actor
    return replace(now, permissions=now.permissions & actor.permissions)


async def _role(ports: Ports, tenant: str, body: Any) -> Role:
    """The role that the person has now: it is never copied into a key."""
    [person] = await ports.records.get(tenant, RecordType.PERSON, [body["personId"]])
    if person is None:
        raise Unauthenticated(UNKNOWN)
    return Role(person.body["role"])
