"""Deeds that are done once, however often they are asked for under the same key."""

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

LEASE: Final = 60_000
"""Milliseconds after which a claim that came to nothing may be taken over."""

_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")
_CONTEXT: Final = "receipt"
_WAITS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
_DONE: Final = 200

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Record).decode


class IdempotentRequest(msgspec.Struct, frozen=True):
    """What is to be done once: by which name, with what, under which key."""

    deed: str
    given: Mapping[str, Any]
    key: str | None


async def run_once(
    ports: Ports,
    actor: Actor,
    asked: IdempotentRequest,
    act: Callable[[IdempotencyKey | None], Awaitable[Record]],
    again: Callable[[], Awaitable[Record]],
) -> Record:
    """What ``act`` gives, or gave when it was first asked for; without a key it is simply done.

    ``again`` finds the record of a deed that was committed but never answered. A refusal gives the
    key back. Raises KeyReused, InFlight and Malformed.
    """
    if asked.key is None:
        return await act(None)
    if not _KEY.fullmatch(asked.key):
        raise ValidationError("an idempotencyKey is 1 to 255 visible ASCII characters")
    who = [asked.deed, actor.name, actor.scope.kind, actor.scope.name]
    key = IdempotencyKey(actor.tenant, _encode(who).decode(), asked.key)
    match await _claim(ports, key, hashlib.sha256(_encode(asked.given)).hexdigest()):
        case Completed(receipt):
            return _decode(ports.vault.open(receipt.sealed, _CONTEXT))
        case KeyMismatch():
            raise IdempotencyKeyMismatch("this idempotencyKey was used for something else")
        case InProgress():
            raise IdempotencyInFlight(
                "the first request with this idempotencyKey is still being answered"
            )
        case Committed():
            return await _settled(ports, key, await again())
        case idempotency.Claimed():
            return await _first(ports, key, act)


async def _claim(ports: Ports, key: IdempotencyKey, fingerprint: str) -> Claim:
    """Take the key; while somebody else is at work on it, wait a little for their answer."""
    for wait in (*_WAITS, None):
        now = ports.clock.now()
        claim = await ports.idempotency.claim(key, fingerprint, now, now - LEASE)
        if not isinstance(claim, InProgress) or wait is None:
            break
        await asyncio.sleep(wait)
    return claim


async def _first(
    ports: Ports, key: IdempotencyKey, act: Callable[[IdempotencyKey | None], Awaitable[Record]]
) -> Record:
    try:
        record = await act(key)
    except Exception:
        await ports.idempotency.release(key)
        raise
    return await _settled(ports, key, record)


async def _settled(ports: Ports, key: IdempotencyKey, record: Record) -> Record:
    sealed = ports.vault.seal(_encode(record), _CONTEXT)
    await ports.idempotency.complete(key, StoredResponse(_DONE, sealed))
    return record
