"""Runs an operation at most once per idempotency key and stores its result."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from carrel.core.access import Actor
from carrel.core.errors import Conflict, Refusal, TooManyCommands, ValidationError
from carrel.core.sessions.session_ids import session_field
from carrel.core.store.idempotency import (
    Claim,
    Claimed,
    Committed,
    Completed,
    IdempotencyKey,
    InProgress,
    KeyMismatch,
    StoredResponse,
)
from carrel.ports import Ports

CLAIM_LEASE_MS: Final = 60_000
"""Milliseconds after which an unfinished claim may be taken over."""

_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")
VAULT_CONTEXT: Final = "idempotency"
_POLL_DELAYS_SECONDS: Final = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 0.64)
_STATUS_OK: Final = 200

_CONTENT_FIELD: Final = b'"content":'
_CALL: Final = "call"
_CALL_PREFIX: Final = f'["{_CALL}",'

_encode: Final = msgspec.json.Encoder().encode

Result = TypeVar("Result")
ResponseRewrite: TypeAlias = Callable[[str, str, bytes], bytes | None]
"""Returns the new response of an endpoint and a key, or None to delete it."""


class ResultCodec(Struct, Generic[Result], frozen=True):
    """Conversion of a result to a status and bytes, and back."""

    encode: Callable[[Result], tuple[int, bytes]]
    decode: Callable[[int, bytes], Result]


def json_codec(type: Any) -> ResultCodec[Any]:
    """Codec of results that msgspec can encode, with status 200."""
    decode = msgspec.json.Decoder(type).decode
    return ResultCodec(
        lambda result: (_STATUS_OK, _encode(result)), lambda _, content: decode(content)
    )


class IdempotentOperation(Struct, Generic[Result], frozen=True, kw_only=True):
    """Identity of an operation, and how its result is stored and repeated."""

    key: IdempotencyKey
    fingerprint: str
    """Hash of the request; the key is refused with a different one."""
    codec: ResultCodec[Result]
    mismatch: Refusal
    """Raised if the key has a different fingerprint."""
    in_progress: Refusal
    """Raised if another request holds the claim."""
    rebuild: Callable[[Committed], Awaitable[Result]] | None = None
    """Builds the result of a commit if none was stored."""
    stores_rebuilt: bool = True
    """False if a rebuilt result lacks parts that the first call may still store."""
    is_final: Callable[[Result], bool] = lambda _: True
    """Whether to store a result; otherwise the key is released."""
    lease_ms: int | None = CLAIM_LEASE_MS
    """None if a run may have effects beyond its commit.

    Then an unfinished claim is neither taken over nor released after an error, except
    TooManyCommands: nothing was run.
    """
    polls: bool = True
    """Whether to wait up to 2 seconds for the request that holds the claim."""


def parse_key(actor: Actor, operation: tuple[str, ...], key: str, label: str) -> IdempotencyKey:
    """Scope a key to operation and caller: callers never share keys.

    Nor do the API keys of a person, which may do different things. `label` is the key's name in the
    protocol. Raises ValidationError.
    """
    check_key(key, label)
    name, *parameters = operation
    caller = "/".join(dict.fromkeys(filter(None, (actor.name, actor.key))))
    owner = [name, caller, actor.scope.kind, actor.scope.name, *parameters]
    return IdempotencyKey(actor.tenant, _encode(owner).decode(), key)


def check_key(key: str, label: str) -> None:
    """Raise ValidationError if this is no idempotency key."""
    if not _KEY.fullmatch(key):
        raise ValidationError(f"an {label} is 1 to 255 visible ASCII characters")


def call_key(tenant: str, agent: str, sessions: Iterable[str | None], name: str) -> IdempotencyKey:
    """Key of an agent's tool call, which names the sessions that it belongs to.

    So its result is deleted with any of them.
    """
    names = dict.fromkeys(filter(None, sessions))
    return IdempotencyKey(tenant, _encode([_CALL, "", "agent", agent, *names]).decode(), name)


async def run_once(
    ports: Ports, operation: IdempotentOperation[Result], run: Callable[[], Awaitable[Result]]
) -> Result:
    """Call `run`, or return the stored result of its first call with the same key.

    Raises the operation's refusals, and Conflict if the change was committed, its result was not
    stored and cannot be rebuilt.
    """
    match await _claim(ports, operation):
        case Completed(stored):
            content = ports.vault.open(stored.sealed, VAULT_CONTEXT)
            return operation.codec.decode(stored.status, content)
        case KeyMismatch():
            raise operation.mismatch
        case InProgress():
            raise operation.in_progress
        case Committed(versions) as committed:
            if operation.rebuild is None:
                raise Conflict(
                    "the request was committed before, but its response was not stored",
                    versions=versions,
                )
            rebuilt = await operation.rebuild(committed)
            if not operation.stores_rebuilt:
                return rebuilt
            return await _complete(ports, operation, rebuilt)
        case Claimed():
            return await _run_claimed(ports, operation, run)


async def _claim(ports: Ports, operation: IdempotentOperation[Any]) -> Claim:
    """Claim the key; poll while another request holds it."""
    # Encrypted, since a text to be purged could be guessed from the hash of its request.
    fingerprint = ports.vault.encrypt_repeatably(operation.fingerprint, VAULT_CONTEXT)
    for delay in (*(_POLL_DELAYS_SECONDS if operation.polls else ()), None):
        now = ports.clock.now()
        stale_before = 0 if operation.lease_ms is None else now - operation.lease_ms
        claim = await ports.idempotency.claim(operation.key, fingerprint, now, stale_before)
        is_pending = isinstance(claim, InProgress) or (
            isinstance(claim, Committed) and operation.rebuild is None
        )
        if not is_pending or delay is None:
            break
        await asyncio.sleep(delay)
    return claim


async def _run_claimed(
    ports: Ports, operation: IdempotentOperation[Result], run: Callable[[], Awaitable[Result]]
) -> Result:
    try:
        result = await run()
    except Exception as error:
        if operation.lease_ms is not None or isinstance(error, TooManyCommands):
            await ports.idempotency.release(operation.key)
        raise
    if operation.is_final(result):
        return await _complete(ports, operation, result)
    await ports.idempotency.release(operation.key)
    return result


async def _complete(ports: Ports, operation: IdempotentOperation[Result], result: Result) -> Result:
    status, content = operation.codec.encode(result)
    sealed = ports.vault.seal(content, VAULT_CONTEXT)
    await ports.idempotency.complete(operation.key, StoredResponse(status, sealed))
    return result


async def delete_responses(
    ports: Ports, tenant: str, ids: Collection[str], slug: str | None = None
) -> None:
    """Delete the stored responses of requests that name one of these ids, or this slug in a URL.

    The ids must be unique within all texts, as generated ones are. A request in progress keeps its
    claim.
    """

    def is_named(endpoint: str, key: str, content: bytes) -> bool:
        if slug is not None and slug in _url_parameters(endpoint):
            return True
        parts = (endpoint.encode(), key.encode(), content)
        return any(id.encode() in part for id in ids for part in parts)

    await _rewrite_responses(ports, tenant, _delete_if(is_named))


async def delete_session_responses(ports: Ports, tenant: str, agent: str, session: str) -> None:
    """Delete the stored responses of an agent's calls in a session, and of requests that name it.

    A request names a session in its URL or in a field of its response. Callers choose these ids,
    so one may occur in any other response.
    """
    field = session_field(session)

    def is_named(endpoint: str, _: str, content: bytes) -> bool:
        if (call := _call_of(endpoint)) is not None:
            return call[0] == agent and session in call[1:]
        return session in _url_parameters(endpoint) or field.search(content) is not None

    await _rewrite_responses(ports, tenant, _delete_if(is_named))


async def redact_responses(ports: Ports, tenant: str, contents: Collection[bytes]) -> None:
    """Remove the contents of files from the fields `content` of stored responses.

    A repeated request gets its response without the content, and still happens once.
    """
    fields = [_content_field(content) for content in contents if content]

    def redact(endpoint: str, key: str, response: bytes) -> bytes:
        for field in fields:
            response = response.replace(field, _redacted_field(len(field)))
        return response

    if fields:
        await _rewrite_responses(ports, tenant, redact)


def _content_field(content: bytes) -> bytes:
    return _CONTENT_FIELD + _encode(content.decode("utf-8", "replace"))


def _redacted_field(length: int) -> bytes:
    """Field of the same length, since the format around it may count bytes."""
    texts = (b'"[REDACTED]"', b'""')
    fields = (_CONTENT_FIELD + text for text in texts)
    return next(field for field in fields if len(field) <= length).ljust(length)


def _delete_if(is_named: Callable[[str, str, bytes], bool]) -> ResponseRewrite:
    return lambda endpoint, key, response: None if is_named(endpoint, key, response) else response


async def _rewrite_responses(ports: Ports, tenant: str, rewrite_response: ResponseRewrite) -> None:
    """Rewrite the stored responses of a tenant, or delete them where the new one is None."""

    def rewrite(values: Sequence[Any]) -> Sequence[Any] | None:
        endpoint, key, sealed = values
        if not sealed:
            return values
        stored = ports.vault.open(sealed, VAULT_CONTEXT)
        response = rewrite_response(endpoint, key, stored)
        if response is None or response == stored:
            return None if response is None else values
        return [endpoint, key, ports.vault.seal(response, VAULT_CONTEXT)]

    position: tuple[Any, ...] | None = None
    while True:
        rows = await ports.erasure.rewrite_rows(tenant, "idempotency_key", rewrite, after=position)
        position = rows.position
        if position is None:
            return


def _call_of(endpoint: str) -> Sequence[str] | None:
    """Return the agent and the sessions of a tool call, None for other requests."""
    owner: list[str] = msgspec.json.decode(endpoint) if endpoint.startswith(_CALL_PREFIX) else []
    return owner[3:] or None


def _url_parameters(endpoint: str) -> Sequence[str]:
    """Return the parameters that `parse_key` stored after the operation and its caller."""
    if not endpoint.startswith("["):
        return ()
    owner: list[str] = msgspec.json.decode(endpoint)
    return owner[4:]
