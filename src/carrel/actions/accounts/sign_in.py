"""Signing in: a code that is good once, for an hour, becomes a key for a browser."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from carrel.actions.accounts import keys, tenants
from carrel.actions.accounts.credentials import UNKNOWN, authenticate, hash_of
from carrel.actions.accounts.people import of_person
from carrel.actions.records import commit_changes, each, find, insist, shelf, shelves
from carrel.core.access import Actor, KeyKind, Permission
from carrel.core.errors import Forbidden, Missing, Unauthenticated
from carrel.core.identifiers import Moment
from carrel.core.store.record import Change, Noun, Record, Shelf, global_handle
from carrel.ports import World

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
class Held:
    """What stands behind a credential."""

    tenant: Record
    person: Record | None
    expires: Moment
    """0 for one that does not."""


async def issue(world: World, tenant: str, person: str) -> str:
    """A new code for a person; those that have run out are swept away. Raises Missing."""
    code = world.clock.token("code")

    async def attempt() -> str:
        rests = await shelf(world, tenant, Noun.PERSON)
        await find(world, tenant, Noun.PERSON, person)
        now = world.clock.now()
        old = [known async for known in each(world, tenant, Noun.CODE, of_person(person))]
        changes = [_removed(known) for known in old if known.body["expires"] <= now]
        changes.append(_made(world, tenant, person, code))
        await commit_changes(world, person, "issue a sign-in code", changes, shelves=[rests])
        return code

    return await insist(attempt)


async def for_owner(world: World, slug: str) -> str:
    """A new code for the owner who has been in a tenant longest. Raises Missing."""
    owner = await tenants.first_owner(world, slug)
    return await issue(world, owner.tenant, owner.id)


async def redeem(world: World, code: str, name: str = "web sign-in") -> SignedIn:
    """Trade a code for a key that lasts 30 days; of several that try one succeeds.

    Raises Unauthenticated for a code that is unknown, used or over, saying nothing of which.
    """

    async def attempt() -> SignedIn:
        [found] = await world.records.named([_handle(hash_of(code))])
        now = world.clock.now()
        if found is None or now >= found.body["expires"]:
            raise Unauthenticated(UNKNOWN)
        rests, person = await _holder(world, found)
        holding = keys.Holding(name, KeyKind.PERSON, person=person.id, expires=now + KEY_LIFE)
        key = keys.made(world, found.tenant, holding)
        changes = [_removed(found), key.change]
        await commit_changes(world, key.change.id, "sign in", changes, shelves=[rests])
        tenant = await find(world, found.tenant, Noun.TENANT, found.tenant)
        return SignedIn(key.token, tenant, person)

    return await insist(attempt)


async def begin(world: World, token: str) -> str:
    """A browser's own key for who shows a person's: good for the same, and never for longer.

    Raises Unauthenticated, and Forbidden for the key of a service or an agent.
    """

    async def attempt() -> str:
        actor = await authenticate(world, token)
        if actor.kind is not KeyKind.PERSON:
            raise Forbidden(f"a session is for people: this is the key of {_a(actor.kind)}")
        rests = await shelves(world, actor.tenant, (Noun.PERSON, Noun.KEY))
        shown = await _still(world, actor.tenant, Noun.KEY, actor.key)
        await _still(world, actor.tenant, Noun.PERSON, shown.body["personId"])
        key = keys.made(world, actor.tenant, _like(shown, world.clock.now()))
        await commit_changes(world, actor.name, "sign in", [key.change], shelves=rests)
        return key.token

    return await insist(attempt)


async def admit(world: World, actor: Actor) -> str:
    """A browser's key for a person whom somebody else vouches for. Raises Unauthenticated."""

    async def attempt() -> str:
        rests = await shelf(world, actor.tenant, Noun.PERSON)
        person = await _still(world, actor.tenant, Noun.PERSON, actor.person or "")
        until = world.clock.now() + KEY_LIFE
        holding = keys.Holding(BROWSER, KeyKind.PERSON, person=person.id, expires=until)
        key = keys.made(world, actor.tenant, holding)
        await commit_changes(world, person.id, "sign in", [key.change], shelves=[rests])
        return key.token

    return await insist(attempt)


def _a(kind: KeyKind) -> str:
    return {KeyKind.AGENT: "an agent"}.get(kind, f"a {kind}")


def _like(key: Record, now: Moment) -> keys.Holding:
    """A session that is worth what the key is."""
    body, most = key.body, now + KEY_LIFE
    scopes = body.get("scopes")
    return keys.Holding(
        BROWSER,
        KeyKind.PERSON,
        person=body["personId"],
        agent=body.get("agentId"),
        workspace=body.get("workspace"),
        scopes=None if scopes is None else frozenset(map(Permission, scopes)),
        expires=min(body.get("expires") or most, most),
    )


async def end(world: World, actor: Actor) -> None:
    """Revoke the key that the caller came with."""
    with suppress(Missing):  # Somebody else did it, and that is what was wanted.
        await keys.revoke(world, actor, actor.key)


async def held(world: World, actor: Actor) -> Held:
    """Raises Unauthenticated where the key, or whose it is, has gone since it was shown."""
    tenant = await _still(world, actor.tenant, Noun.TENANT, actor.tenant)
    person, expires = None, 0
    if actor.person is not None:
        person = await _still(world, actor.tenant, Noun.PERSON, actor.person)
    if actor.key:
        key = await _still(world, actor.tenant, Noun.KEY, actor.key)
        expires = key.body.get("expires") or 0
    return Held(tenant, person, expires)


async def _still(world: World, tenant: str, noun: Noun, id: str) -> Record:
    try:
        return await find(world, tenant, noun, id)
    except Missing:
        raise Unauthenticated(UNKNOWN) from None


async def _holder(world: World, code: Record) -> tuple[Shelf, Record]:
    rests = await shelf(world, code.tenant, Noun.PERSON)
    return rests, await _still(world, code.tenant, Noun.PERSON, code.body["personId"])


def _made(world: World, tenant: str, person: str, code: str) -> Change:
    return Change(
        tenant,
        Noun.CODE,
        world.clock.fresh("cod"),
        {"personId": person, "expires": world.clock.now() + CODE_LIFE},
        expected=0,
        handles=(_handle(hash_of(code)),),
        links=(of_person(person),),
    )


def _removed(code: Record) -> Change:
    return Change(code.tenant, Noun.CODE, code.id, None, code.revision)


def _handle(hash: str) -> str:
    return global_handle(Noun.CODE, "hash", hash)
