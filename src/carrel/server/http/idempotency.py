"""Idempotency-Key: runs a request once and replays its stored response."""

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
    VAULT_CONTEXT,
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

IDEMPOTENCY_HEADER: Final = b"idempotency-key"
REPLAY_HEADER: Final = (b"openwop-idempotent-replay", b"true")
CLAIM_LEASE_MS: Final = 60_000
"""Age at which an unfinished claim may be taken over, in milliseconds."""

_VALID_KEY: Final = re.compile(rb"[\x21-\x7e]{1,255}")
_STORED_HEADERS: Final = (b"content-type", b"etag", b"location")
_TRANSIENT_STATUSES: Final = frozenset({400, 401, 403, 408, 429})
_CONDITION_HEADERS: Final = (b"if-match", b"if-none-match")
_POLL_DELAYS_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 0.64)


class _SealedResponse(msgspec.Struct, frozen=True, array_like=True):
    headers: list[tuple[str, str]]
    body: bytes


_decode: Final = msgspec.json.Decoder(_SealedResponse).decode


async def respond_once(
    endpoint: Endpoint, request: Request[Any, Any], header_value: bytes, query: bytes
) -> Response:
    """Run the endpoint, or replay the response stored under this Idempotency-Key.

    Raises IdempotencyKeyMismatch, IdempotencyInFlight and ValidationError.
    """
    if not _VALID_KEY.fullmatch(header_value):
        raise ValidationError("an Idempotency-Key is 1 to 255 visible ASCII characters")
    request.idempotency_key = key = _scoped_key(endpoint, request, header_value.decode("ascii"))
    claim = await _claim(endpoint, request, key, _fingerprint(endpoint, request, query))
    match claim:
        case Completed(stored):
            return _replay_response(request, stored)
        case KeyMismatch():
            raise IdempotencyKeyMismatch("this Idempotency-Key was used with a different request")
        case InProgress():
            raise IdempotencyInFlight(
                "the first request with this Idempotency-Key is still in progress"
            )
        case Committed(versions):
            return await _rebuild_response(endpoint, request, key, versions)
        case idempotency.Claimed():
            return await _run_and_store(endpoint, request, key)


def _scoped_key(endpoint: Endpoint, request: Request[Any, Any], key: str) -> IdempotencyKey:
    """Key scoped to endpoint, caller and path: callers never share keys."""
    actor = request.actor
    scope = [endpoint.id, actor.name, actor.scope.kind, actor.scope.name, *request.params.values()]
    return IdempotencyKey(actor.tenant, encode(scope).decode(), key)


def _fingerprint(endpoint: Endpoint, request: Request[Any, Any], query: bytes) -> str:
    conditions = [request.header(name) for name in _CONDITION_HEADERS]
    parts = [endpoint.method, endpoint.path, query.decode("latin-1"), *conditions]
    digest = hashlib.sha256(encode([*parts, *request.params.values()]))
    digest.update(request.raw_body)
    return digest.hexdigest()


async def _claim(
    endpoint: Endpoint, request: Request[Any, Any], key: IdempotencyKey, fingerprint: str
) -> Claim:
    """Claim the key; while another request holds it, poll for up to 2 seconds."""
    for delay in (*_POLL_DELAYS_SECONDS, None):
        now = request.ports.clock.now()
        claim = await request.ports.idempotency.claim(key, fingerprint, now, now - CLAIM_LEASE_MS)
        is_pending = isinstance(claim, InProgress) or (
            isinstance(claim, Committed) and endpoint.rebuild is None
        )
        if not is_pending or delay is None:
            break
        await asyncio.sleep(delay)
    return claim


async def _run_and_store(
    endpoint: Endpoint, request: Request[Any, Any], key: IdempotencyKey
) -> Response:
    is_final = True
    try:
        response = await endpoint.run(request)
    except Refusal as refusal:
        response = refusal_response(refusal)
        is_final = not isinstance(refusal, Busy)
    except Exception:
        await request.ports.idempotency.release(key)
        raise
    if is_final and response.source is None and _is_final_status(response.status):
        await _store_response(request, key, response)
    else:
        await request.ports.idempotency.release(key)
    return response


def _is_final_status(status: int) -> bool:
    """Whether a repeated request would get the same response."""
    return status < 500 and status not in _TRANSIENT_STATUSES


async def _store_response(
    request: Request[Any, Any], key: IdempotencyKey, response: Response
) -> None:
    headers = [
        (n.decode("latin-1"), v.decode("latin-1"))
        for n, v in response.headers
        if n in _STORED_HEADERS
    ]
    sealed = request.ports.vault.seal(
        encode(_SealedResponse(headers, response.body)), VAULT_CONTEXT
    )
    await request.ports.idempotency.complete(key, StoredResponse(response.status, sealed))


def _replay_response(request: Request[Any, Any], stored: StoredResponse) -> Response:
    decoded = _decode(request.ports.vault.open(stored.sealed, VAULT_CONTEXT))
    headers = [(n.encode("latin-1"), v.encode("latin-1")) for n, v in decoded.headers]
    return Response(stored.status, decoded.body, [*headers, REPLAY_HEADER])


async def _rebuild_response(
    endpoint: Endpoint, request: Request[Any, Any], key: IdempotencyKey, versions: tuple[int, ...]
) -> Response:
    """Response of a request that was committed but whose response was never stored."""
    if endpoint.rebuild is None:
        raise Conflict(
            "the request was committed before, but its response was not stored", versions=versions
        )
    response = await endpoint.rebuild(request, versions)
    await _store_response(request, key, response)
    return Response(response.status, response.body, [*response.headers, REPLAY_HEADER])
