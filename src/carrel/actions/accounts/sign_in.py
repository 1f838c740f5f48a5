"""Signing in: a code that is good once, for an hour, becomes a key for a browser."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from carrel.actions.accounts import keys, tenants
from carrel.actions.accounts.credentials import UNKNOWN, authenticate, hash_of
from carrel.actions.accounts.people import of_person
from carrel.actions.records import (
    collection_revision,
    collection_revisions,
    commit_changes,
    find,
    iter_records,
    retry_while_busy,
)
from carrel.core.access import Actor, CredentialKind, Permission
from carrel.core.errors import Forbidden, NotFound, Unauthenticated
from carrel.core.identifiers import TimestampMs
from carrel.core.store.record import (
    CollectionRevision,
    Record,
    RecordChange,
    RecordType,
    global_unique_key,
)
from carrel.ports import Ports

CODE_LIFE: Final = 3_600_000
KEY_LIFE: Final = 30 * 86_400_000
BROWSER: Final = "browser"
"""What a session's key is called."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    token: str
    tenant: Record
    person: Record


@dataclass(frozen=True, slots=True)
class CredentialDetails:
    """What stands behind a credential."""

    tenant: Record
    person: Record | None
    expires: TimestampMs
    """0 for one that does not."""


async def issue(ports: Ports, tenant: str, person: str) -> str:
    """A new code for a person; those that have run out are swept away. Raises Missing."""
    code = ports.clock.new_token("code")

    async def attempt() -> str:
        rests = await collection_revision(ports, tenant, RecordType.PERSON)
        await find(ports, tenant, RecordType.PERSON, person)
        now = ports.clock.now()
        old = [
            known async for known in iter_records(ports, tenant, RecordType.CODE, of_person(person))
        ]
        changes = [_removed(known) for known in old if known.body["expires"] <= now]
        changes.append(_made(ports, tenant, person, code))
        await commit_changes(
            ports, person, "issue a sign-in code", changes, collection_revisions=[rests]
        )
        return code

    return await retry_while_busy(attempt)


async def for_owner(ports: Ports, slug: str) -> str:
    """A new code for the owner who has been in a tenant longest. Raises Missing."""
    owner = await tenants.first_owner(ports, slug)
    return await issue(ports, owner.tenant, owner.id)


async def redeem(ports: Ports, code: str, name: str = "web sign-in") -> SignedIn:
    """Trade a code for a key that lasts 30 days; of several that try one succeeds.

    Raises Unauthenticated for a code that is unknown, used or over, saying nothing of which.
    """

    async def attempt() -> SignedIn:
        [found] = await ports.records.get_by_unique_key([_handle(hash_of(code))])
        now = ports.clock.now()
        if found is None or now >= found.body["expires"]:
            raise Unauthenticated(UNKNOWN)
        rests, person = await _holder(ports, found)
        holding = keys.KeySpec(
            name, CredentialKind.PERSON, person=person.id, expires=now + KEY_LIFE
        )
        key = keys.new_key(ports, found.tenant, holding)
        changes = [_removed(found), key.change]
        await commit_changes(ports, key.change.id, "sign in", changes, collection_revisions=[rests])
        tenant = await find(ports, found.tenant, RecordType.TENANT, found.tenant)
        return SignedIn(key.token, tenant, person)

    return await retry_while_busy(attempt)


async def begin(ports: Ports, token: str) -> str:
    """A browser's own key for who shows a person's: good for the same, and never for longer.

    Raises Unauthenticated, and Forbidden for the key of a service or an agent.
    """

    async def attempt() -> str:
        actor = await authenticate(ports, token)
        if actor.kind is not CredentialKind.PERSON:
            raise Forbidden(f"a session is for people: this is the key of {_a(actor.kind)}")
        rests = await collection_revisions(ports, actor.tenant, (RecordType.PERSON, RecordType.KEY))
        shown = await _still(ports, actor.tenant, RecordType.KEY, actor.key)
        await _still(ports, actor.tenant, RecordType.PERSON, shown.body["personId"])
        key = keys.new_key(ports, actor.tenant, _like(shown, ports.clock.now()))
        await commit_changes(ports, actor.name, "sign in", [key.change], collection_revisions=rests)
        return key.token

    return await retry_while_busy(attempt)


async def sign_in_person(ports: Ports, actor: Actor) -> str:
    """A browser's key for a person whom somebody else vouches for. Raises Unauthenticated."""

    async def attempt() -> str:
        rests = await collection_revision(ports, actor.tenant, RecordType.PERSON)
        person = await _still(ports, actor.tenant, RecordType.PERSON, actor.person or "")
        until = ports.clock.now() + KEY_LIFE
        holding = keys.KeySpec(BROWSER, CredentialKind.PERSON, person=person.id, expires=until)
        key = keys.new_key(ports, actor.tenant, holding)
        await commit_changes(
            ports, person.id, "sign in", [key.change], collection_revisions=[rests]
        )
        return key.token

    return await retry_while_busy(attempt)


def _a(kind: CredentialKind) -> str:
    return {CredentialKind.AGENT: "an agent"}.get(kind, f"a {kind}")


def _like(key: Record, now: TimestampMs) -> keys.KeySpec:
    """A session that is worth what the key is."""
    body, most = key.body, now + KEY_LIFE
    scopes = body.get("scopes")
    return keys.KeySpec(
        BROWSER,
        CredentialKind.PERSON,
        person=body["personId"],
        agent=body.get("agentId"),
        workspace=body.get("workspace"),
        scopes=None if scopes is None else frozenset(map(Permission, scopes)),
        expires=min(body.get("expires") or most, most),
    )


async def end(ports: Ports, actor: Actor) -> None:
    """Revoke the key that the caller came with."""
    with suppress(NotFound):  # Somebody else did it, and that is what was wanted.
        await keys.revoke(ports, actor, actor.key)


async def current_credential(ports: Ports, actor: Actor) -> CredentialDetails:
    """Raises Unauthenticated where the key, or whose it is, has gone since it was shown."""
    tenant = await _still(ports, actor.tenant, RecordType.TENANT, actor.tenant)
    person, expires = None, 0
    if actor.person is not None:
        person = await _still(ports, actor.tenant, RecordType.PERSON, actor.person)
    if actor.key:
        key = await _still(ports, actor.tenant, RecordType.KEY, actor.key)
        expires = key.body.get("expires") or 0
    return CredentialDetails(tenant, person, expires)


async def _still(ports: Ports, tenant: str, record_type: RecordType, id: str) -> Record:
    try:
        return await find(ports, tenant, record_type, id)
    except NotFound:
        raise Unauthenticated(UNKNOWN) from None


async def _holder(ports: Ports, code: Record) -> tuple[CollectionRevision, Record]:
    rests = await collection_revision(ports, code.tenant, RecordType.PERSON)
    return rests, await _still(ports, code.tenant, RecordType.PERSON, code.body["personId"])


def _made(ports: Ports, tenant: str, person: str, code: str) -> RecordChange:
    return RecordChange(
        tenant,
        RecordType.CODE,
        ports.clock.new_id("cod"),
        {"personId": person, "expires": ports.clock.now() + CODE_LIFE},
        expected=0,
        unique_keys=(_handle(hash_of(code)),),
        index_keys=(of_person(person),),
    )


def _removed(code: Record) -> RecordChange:
    return RecordChange(code.tenant, RecordType.CODE, code.id, None, code.revision)


def _handle(hash: str) -> str:
    return global_unique_key(RecordType.CODE, "hash", hash)
