"""Requests that are done once, however often they are sent: the Idempotency-Key."""

from __future__ import annotations

import asyncio
import hashlib
import re
from typing import Any, Final

import msgspec

from carrel.core.errors import (
    Busy,
    Conflict,
    IdempotencyInFlight,
    IdempotencyKeyMismatch,
    Refusal,
    ValidationError,
)
from carrel.core.store import idempotency
from carrel.core.store.idempotency import (
    Claim,
    Committed,
    Completed,
    InProgress,
    KeyMismatch,
    StoredResponse,
)
from carrel.core.store.tree import IdempotencyKey
from carrel.server.http.endpoint import Endpoint, Request
from carrel.server.http.problems import refusal_response
from carrel.server.http.response import Response, encode

HEADER: Final = b"idempotency-key"
REPLAY: Final = (b"openwop-idempotent-replay", b"true")
LEASE: Final = 60_000
"""Milliseconds after which a claim that came to nothing may be taken over."""

_KEY: Final = re.compile(rb"[\x21-\x7e]{1,255}")
_CONTEXT: Final = "receipt"
_KEPT: Final = (b"content-type", b"etag", b"location")
_PASSING: Final = frozenset({400, 401, 403, 408, 429})
_CONDITIONS: Final = (b"if-match", b"if-none-match")
_WAITS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 0.64)


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    headers: list[tuple[str, str]]
    body: bytes


_decode: Final = msgspec.json.Decoder(_Kept).decode


async def once(endpoint: Endpoint, call: Request[Any, Any], given: bytes, query: bytes) -> Response:
    """Answer a request with a key: by doing it, or by what was answered when it was done.

    Raises KeyReused, InFlight and Malformed.
    """
    if not _KEY.fullmatch(given):
        raise ValidationError("an Idempotency-Key is 1 to 255 visible ASCII characters")
    call.receipt = key = _name(endpoint, call, given.decode("ascii"))
    claim = await _claim(endpoint, call, key, _fingerprint(endpoint, call, query))
    match claim:
        case Completed(receipt):
            return _replayed(call, receipt)
        case KeyMismatch():
            raise IdempotencyKeyMismatch("this Idempotency-Key was used for another request")
        case InProgress():
            raise IdempotencyInFlight(
                "the first request with this Idempotency-Key is still being answered"
            )
        case Committed(versions):
            return await _rebuilt(endpoint, call, key, versions)
        case idempotency.Claimed():
            return await _first(endpoint, call, key)


def _name(endpoint: Endpoint, call: Request[Any, Any], key: str) -> IdempotencyKey:
    """Callers do not share keys: one path may be two files to two of them."""
    actor = call.actor
    who = [endpoint.id, actor.name, actor.scope.kind, actor.scope.name, *call.params.values()]
    return IdempotencyKey(actor.tenant, encode(who).decode(), key)


def _fingerprint(endpoint: Endpoint, call: Request[Any, Any], query: bytes) -> str:
    conditions = [call.header(name) for name in _CONDITIONS]
    asked = [endpoint.method, endpoint.path, query.decode("latin-1"), *conditions]
    whole = hashlib.sha256(encode([*asked, *call.params.values()]))
    whole.update(call.raw)
    return whole.hexdigest()


async def _claim(
    endpoint: Endpoint, call: Request[Any, Any], key: IdempotencyKey, fingerprint: str
) -> Claim:
    """Take the key; while somebody else is at work on it, wait a little for their answer."""
    for wait in (*_WAITS, None):
        now = call.ports.clock.now()
        claim = await call.ports.idempotency.claim(key, fingerprint, now, now - LEASE)
        unanswered = isinstance(claim, InProgress) or (
            isinstance(claim, Committed) and endpoint.rebuild is None
        )
        if not unanswered or wait is None:
            break
        await asyncio.sleep(wait)
    return claim


async def _first(endpoint: Endpoint, call: Request[Any, Any], key: IdempotencyKey) -> Response:
    final = True
    try:
        answer = await endpoint.run(call)
    except Refusal as refusal:
        answer = refusal_response(refusal)
        final = not isinstance(refusal, Busy)
    except Exception:
        await call.ports.idempotency.release(key)
        raise
    if final and answer.source is None and _lasts(answer.status):
        await _settle(call, key, answer)
    else:
        await call.ports.idempotency.release(key)
    return answer


def _lasts(status: int) -> bool:
    """Whether the same request would be answered the same later on."""
    return status < 500 and status not in _PASSING


async def _settle(call: Request[Any, Any], key: IdempotencyKey, answer: Response) -> None:
    headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in answer.headers if n in _KEPT]
    sealed = call.ports.vault.seal(encode(_Kept(headers, answer.body)), _CONTEXT)
    await call.ports.idempotency.complete(key, StoredResponse(answer.status, sealed))


def _replayed(call: Request[Any, Any], receipt: StoredResponse) -> Response:
    kept = _decode(call.ports.vault.open(receipt.sealed, _CONTEXT))
    headers = [(n.encode("latin-1"), v.encode("latin-1")) for n, v in kept.headers]
    return Response(receipt.status, kept.body, [*headers, REPLAY])


async def _rebuilt(
    endpoint: Endpoint, call: Request[Any, Any], key: IdempotencyKey, versions: tuple[int, ...]
) -> Response:
    """It was committed, but whoever did it never came to answering."""
    if endpoint.rebuild is None:
        raise Conflict("this was done before, but how it was answered is lost", versions=versions)
    answer = await endpoint.rebuild(call, versions)
    await _settle(call, key, answer)
    return Response(answer.status, answer.body, [*answer.headers, REPLAY])
