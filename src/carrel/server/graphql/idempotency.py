"""The idempotencyKey argument: runs a mutation once and repeats its record."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from carrel.actions.idempotency import IdempotentOperation, json_codec, parse_key, run_once
from carrel.core.access import Actor
from carrel.core.errors import IdempotencyInFlight, IdempotencyKeyMismatch
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record
from carrel.ports import Ports

_CODEC: Final = json_codec(Record)


class IdempotentMutation(msgspec.Struct, frozen=True):
    """Name, arguments and idempotency key of a mutation."""

    name: str
    arguments: Mapping[str, Any]
    key: str | None


async def run_mutation_once(
    ports: Ports,
    actor: Actor,
    mutation: IdempotentMutation,
    action: Callable[[IdempotencyKey | None], Awaitable[Record]],
    load_committed: Callable[[], Awaitable[Record]],
) -> Record:
    """Run `action`, or return the stored record of its first run with the same key.

    Without a key the action just runs. `load_committed` loads the record of a mutation that was
    committed but whose record was not stored. A refusal releases the key. Raises
    IdempotencyKeyMismatch, IdempotencyInFlight and ValidationError.
    """
    if mutation.key is None:
        return await action(None)
    key = parse_key(actor, (mutation.name,), mutation.key, "idempotencyKey")
    operation: IdempotentOperation[Record] = IdempotentOperation(
        key=key,
        fingerprint=hashlib.sha256(msgspec.json.encode(mutation.arguments)).hexdigest(),
        codec=_CODEC,
        mismatch=IdempotencyKeyMismatch("this idempotencyKey was used for a different request"),
        in_progress=IdempotencyInFlight(
            "the first request with this idempotencyKey is still in progress"
        ),
        rebuild=lambda _: load_committed(),
    )
    return await run_once(ports, operation, lambda: action(key))
