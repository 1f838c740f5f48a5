"""What an account describes once and its agents refer to by id: a name, a description, a config."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from carrel.actions.records import commit_changes, iter_records, record_after, retry_while_busy
from carrel.core import field_validation
from carrel.core.access import Actor
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import identifier
from carrel.core.store.record import Record, RecordChange, RecordType, unique_key
from carrel.core.store.tree import IdempotencyKey
from carrel.ports import Ports

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AccountRecordType:
    """One kind of such records."""

    noun: RecordType
    prefix: str
    settle: Callable[[Ports, str, str, Config, Config], Awaitable[Config]]
    """World, tenant, id, a merge-patch and what is stored → what is to be stored, or Malformed."""

    @property
    def missing(self) -> NotFound:
        return NotFound(f"{self.noun.capitalize()} not found")


async def get(ports: Ports, actor: Actor, book: AccountRecordType, id: str) -> Record:
    """Raises Missing, in the same words whoever's it is."""
    try:
        [found] = await ports.records.get(actor.tenant, book.noun, [identifier(id)])
    except ValidationError:
        raise book.missing from None
    if found is None:
        raise book.missing
    return found


async def listing(ports: Ports, actor: Actor, book: AccountRecordType) -> list[Record]:
    """All of them, oldest first."""
    return [record async for record in iter_records(ports, actor.tenant, book.noun)]


async def create(
    ports: Ports,
    actor: Actor,
    book: AccountRecordType,
    given: Config,
    receipt: IdempotencyKey | None = None,
) -> Record:
    """Raises Malformed."""
    id = ports.clock.new_id(book.prefix)
    body: dict[str, Any] = {"name": field_validation.name(given.get("name")), **_described(given)}
    body["config"] = await book.settle(ports, actor.tenant, id, _config(given), {})
    if receipt is not None:
        body["request"] = _request(receipt)
    change = _change(actor.tenant, book, id, body, 0)
    reason = f"create a {book.noun}"
    at = await commit_changes(ports, actor.name, reason, [change], receipt=receipt)
    return record_after(change, at)


async def created(
    ports: Ports, actor: Actor, book: AccountRecordType, receipt: IdempotencyKey
) -> Record:
    """The record that a request made before. Raises Missing where it is gone since."""
    [found] = await ports.records.get_by_unique_key(
        [_handle(actor.tenant, book, _request(receipt))]
    )
    if found is None:
        raise book.missing
    return found


async def patch(
    ports: Ports,
    actor: Actor,
    book: AccountRecordType,
    id: str,
    given: Config,
    receipt: IdempotencyKey | None = None,
) -> Record:
    """Change what is given. Raises Missing and Malformed."""

    async def attempt() -> Record:
        was = await get(ports, actor, book, id)
        body = dict(was.body)
        if "name" in given:
            body["name"] = field_validation.name(given["name"])
        if "description" in given:
            body.pop("description", None)
            body |= _described(given)
        if "config" in given:
            stored = {} if given["config"] is None else was.body["config"]
            body["config"] = await book.settle(ports, was.tenant, id, _config(given), stored)
        if body == was.body:
            return was
        change = _change(was.tenant, book, id, body, was.revision)
        reason = f"change a {book.noun}"
        at = await commit_changes(ports, actor.name, reason, [change], receipt=receipt)
        return record_after(change, at, was)

    return await retry_while_busy(attempt)


def _config(given: Config) -> Config:
    """What is said of it, of no great depth. Raises Malformed."""
    said = given.get("config")
    config = field_validation.mapping("config", {} if said is None else said)
    field_validation.shallow("config", config)
    return config


def _described(given: Config) -> dict[str, str]:
    said = field_validation.description(given.get("description"))
    return {} if said is None else {"description": said}


def _change(
    tenant: str, book: AccountRecordType, id: str, body: Config, expected: int
) -> RecordChange:
    made_by = body.get("request")
    unique_keys = (_handle(tenant, book, made_by),) if made_by else ()
    return RecordChange(tenant, book.noun, id, body, expected, unique_keys)


def _handle(tenant: str, book: AccountRecordType, request: str) -> str:
    return unique_key(tenant, book.noun, "request", request)


def _request(receipt: IdempotencyKey) -> str:
    named = msgspec.json.encode((receipt.endpoint, receipt.key))
    return hashlib.sha256(named).hexdigest()
