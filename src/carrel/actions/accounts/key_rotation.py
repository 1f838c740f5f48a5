"""Rotation: a new secret for a key, while the old one stays valid for an hour."""

from __future__ import annotations

import dataclasses
from typing import Final

from msgspec.structs import replace

from carrel.actions.accounts import keys
from carrel.actions.accounts.keys import IssuedKey, KeySpec
from carrel.actions.records import commit_changes, load_collection_revision, record_after
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor, CredentialKind
from carrel.core.accounts import KeyRecord, key_from_record
from carrel.core.errors import Forbidden, NotFound
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

OVERLAP_MS: Final = 3_600_000
"""How long the old key stays valid."""


@retry_on_conflict()
async def rotate(
    ports: Ports, actor: Actor, id: str, idempotency_key: IdempotencyKey | None = None
) -> IssuedKey:
    """Issue a key with the same holder, confinement, scopes and end as the given one.

    The old key ends in an hour, or earlier if it was to. Raises NotFound for a key that the caller
    may not see, and Forbidden for another person's key or one worth more than the caller's own.
    """
    revision = await load_collection_revision(ports, actor.tenant, RecordType.KEY)
    record = await keys.get(ports, actor, id)
    key = key_from_record(record)
    now = ports.clock.now()
    if key.is_expired(now):
        raise NotFound(f"no such {RecordType.KEY}: {id}")
    spec = await _replacement_spec(ports, actor, record, key)
    new = keys.new_key(ports, actor.tenant, spec)
    ends = min(key.expires or now + OVERLAP_MS, now + OVERLAP_MS)
    ending = keys.key_change(actor.tenant, id, replace(key, expires=ends), record)
    committed_at = await commit_changes(
        ports,
        actor,
        "rotate a key",
        [ending, new.change],
        collection_revisions=[revision],
        idempotency_key=idempotency_key,
    )
    return IssuedKey(record_after(new.change, committed_at), new.token)


async def _replacement_spec(ports: Ports, actor: Actor, record: Record, key: KeyRecord) -> KeySpec:
    spec = KeySpec(
        key.name,
        key.kind,
        person=key.person_id,
        agent=key.agent_id,
        workspace=key.workspace,
        scopes=None if key.scopes is None else frozenset(key.scopes),
        expires=key.expires or None,
        creators=(*key.creators, record.id),
    )
    if record.id == actor.key:
        return spec
    if key.kind is CredentialKind.PERSON and key.person_id != actor.person:
        raise Forbidden("a person's key is rotated only by that person")
    keys.require_unconfined(actor)
    limited = await keys.limit_to_callers_key(ports, actor, spec, actor.role)
    if limited.expires != spec.expires:
        raise Forbidden("a key cannot outlive the key that rotates it")
    creators = dict.fromkeys((*spec.creators, *limited.creators))
    return dataclasses.replace(limited, creators=tuple(creators))
