"""Idempotency-Key: runs a request once and replays its stored response."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from carrel.actions.idempotency import IdempotentOperation, ResultCodec, parse_key, run_once
from carrel.core.errors import Busy, IdempotencyInFlight, IdempotencyKeyMismatch, Refusal
from carrel.core.store.idempotency import Committed
from carrel.server.http.endpoint import Endpoint, Request
from carrel.server.http.error_responses import refusal_response
from carrel.server.http.response import Response, encode

IDEMPOTENCY_HEADER: Final = b"idempotency-key"
REPLAY_HEADER: Final = (b"openwop-idempotent-replay", b"true")

_STORED_HEADERS: Final = (
    *(b"content-type", b"etag", b"location"),
    *(b"carrel-redacted", b"carrel-warning"),
)
_TRANSIENT_STATUSES: Final = frozenset({400, 401, 403, 408, 429})
_CONDITION_HEADERS: Final = (b"if-match", b"if-none-match")


class _SealedResponse(msgspec.Struct, frozen=True, array_like=True):
    headers: list[tuple[str, str]]
    body: bytes


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_SealedResponse).decode
_decode_json: Final = msgspec.json.Decoder(_SealedResponse).decode


def idempotency_key_value(endpoint: Endpoint, request: Request[Any, Any]) -> bytes | None:
    """Value of the header, or None if the request has none or must not be run only once."""
    if not endpoint.idempotent or (endpoint.is_write and not endpoint.is_write(request)):
        return None
    return request.headers.get(IDEMPOTENCY_HEADER)


async def respond_once(
    endpoint: Endpoint, request: Request[Any, Any], header_value: bytes, query: bytes
) -> Response:
    """Run the endpoint, or replay the response stored under this Idempotency-Key.

    Raises IdempotencyKeyMismatch, IdempotencyInFlight, ValidationError and Busy.
    """
    operation = _operation(endpoint, request, header_value, query)
    request.idempotency_key = operation.key

    async def run() -> Response:
        try:
            return await endpoint.run(request)
        except Busy:
            raise
        except Refusal as refusal:  # repeated like any other final response
            return refusal_response(refusal)

    response = await run_once(request.ports, operation, run)
    if endpoint.complete is not None and REPLAY_HEADER in response.headers:
        return await endpoint.complete(request, response)
    return response


def _operation(
    endpoint: Endpoint, request: Request[Any, Any], header_value: bytes, query: bytes
) -> IdempotentOperation[Response]:
    rebuild = endpoint.rebuild

    async def rebuild_response(committed: Committed) -> Response:
        assert rebuild is not None
        request.committed_revision = committed.revision
        # The commit met the condition; now its own result would fail it.
        request.headers = {
            name: value for name, value in request.headers.items() if name not in _CONDITION_HEADERS
        }
        return _as_replay(await rebuild(request, committed.versions))

    operation = (endpoint.id, *request.params.values())
    return IdempotentOperation(
        key=parse_key(request.actor, operation, header_value.decode("latin-1"), "Idempotency-Key"),
        fingerprint=_fingerprint(endpoint, request, query),
        codec=_CODEC,
        mismatch=IdempotencyKeyMismatch("this Idempotency-Key was used with a different request"),
        in_progress=IdempotencyInFlight(
            "the first request with this Idempotency-Key is still in progress"
        ),
        rebuild=rebuild and rebuild_response,
        is_final=_is_final,
    )


def _fingerprint(endpoint: Endpoint, request: Request[Any, Any], query: bytes) -> str:
    conditions = [request.header(name) for name in _CONDITION_HEADERS]
    parts = [endpoint.method, endpoint.path, query.decode("latin-1"), *conditions]
    digest = hashlib.sha256(encode([*parts, *request.params.values()]))
    digest.update(request.raw_body)
    return digest.hexdigest()


def _is_final(response: Response) -> bool:
    """Whether a repeated request would get the same response."""
    status = response.status
    return response.source is None and status < 500 and status not in _TRANSIENT_STATUSES


def _encode_response(response: Response) -> tuple[int, bytes]:
    headers = [
        (n.decode("latin-1"), v.decode("latin-1"))
        for n, v in response.headers
        if n in _STORED_HEADERS
    ]
    body = response.body if response.stored_body is None else response.stored_body
    # In MessagePack the body stays as it is, so a text to erase is found in it.
    return response.status, _encode(_SealedResponse(headers, body))


def _decode_response(status: int, content: bytes) -> Response:
    # An earlier version stored JSON; such responses expire within a day.
    decoded = (_decode_json if content.startswith(b"[") else _decode)(content)
    headers = [(n.encode("latin-1"), v.encode("latin-1")) for n, v in decoded.headers]
    return _as_replay(Response(status, decoded.body, headers))


def _as_replay(response: Response) -> Response:
    return Response(response.status, response.body, [*response.headers, REPLAY_HEADER])


_CODEC: Final = ResultCodec(_encode_response, _decode_response)
