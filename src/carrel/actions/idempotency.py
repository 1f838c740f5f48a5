"""Runs an operation at most once per idempotency key."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from carrel.core.access import Actor
from carrel.core.errors import IdempotencyInFlight, IdempotencyKeyMismatch, ValidationError
from carrel.core.store import idempotency
from carrel.core.store.idempotency import (
    VAULT_CONTEXT,
    Claim,
    Committed,
    Completed,
    InProgress,
    KeyMismatch,
    StoredResponse,
)
from carrel.core.store.record import Record
from carrel.core.store.tree import IdempotencyKey
from carrel.ports import Ports

CLAIM_LEASE_MS: Final = 60_000
"""Milliseconds after which an unfinished claim may be taken over."""

_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")
_POLL_DELAYS_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
_STATUS_OK: Final = 200

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Record).decode


class IdempotentRequest(msgspec.Struct, frozen=True):
    """Operation, arguments and idempotency key of a request."""

    operation: str
    arguments: Mapping[str, Any]
    key: str | None


async def run_once(
    ports: Ports,
    actor: Actor,
    request: IdempotentRequest,
    action: Callable[[IdempotencyKey | None], Awaitable[Record]],
    load_committed: Callable[[], Awaitable[Record]],
) -> Record:
    """Run `action`, or return the stored result of its first run with the same key.

    Without a key the action just runs. `load_committed` loads the record of an operation that was
    committed but whose response was not stored. A refusal releases the key. Raises
    IdempotencyKeyMismatch, IdempotencyInFlight and ValidationError.
    """
    if request.key is None:
        return await action(None)
    if not _KEY.fullmatch(request.key):
        raise ValidationError("an idempotencyKey is 1 to 255 visible ASCII characters")
    owner = [request.operation, actor.name, actor.scope.kind, actor.scope.name]
    key = IdempotencyKey(actor.tenant, _encode(owner).decode(), request.key)
    match await _claim(ports, key, hashlib.sha256(_encode(request.arguments)).hexdigest()):
        case Completed(stored):
            return _decode(ports.vault.open(stored.sealed, VAULT_CONTEXT))
        case KeyMismatch():
            raise IdempotencyKeyMismatch("this idempotencyKey was used for a different request")
        case InProgress():
            raise IdempotencyInFlight(
                "the first request with this idempotencyKey is still in progress"
            )
        case Committed():
            return await _complete(ports, key, await load_committed())
        case idempotency.Claimed():
            return await _run_claimed(ports, key, action)


async def _claim(ports: Ports, key: IdempotencyKey, fingerprint: str) -> Claim:
    """Claim the key; while another request holds it, poll for at most 1.3 seconds."""
    for delay in (*_POLL_DELAYS_SECONDS, None):
        now = ports.clock.now()
        claim = await ports.idempotency.claim(key, fingerprint, now, now - CLAIM_LEASE_MS)
        if not isinstance(claim, InProgress) or delay is None:
            break
        await asyncio.sleep(delay)
    return claim


async def _run_claimed(
    ports: Ports, key: IdempotencyKey, action: Callable[[IdempotencyKey | None], Awaitable[Record]]
) -> Record:
    try:
        record = await action(key)
    except Exception:
        await ports.idempotency.release(key)
        raise
    return await _complete(ports, key, record)


async def _complete(ports: Ports, key: IdempotencyKey, record: Record) -> Record:
    sealed = ports.vault.seal(_encode(record), VAULT_CONTEXT)
    await ports.idempotency.complete(key, StoredResponse(_STATUS_OK, sealed))
    return record
