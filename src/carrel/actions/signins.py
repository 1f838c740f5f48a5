"""Signing in: a code that is good once, for an hour, becomes a key for a browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from carrel.actions import keys, tenants
from carrel.actions.credentials import UNKNOWN, hash_of
from carrel.actions.people import of_person
from carrel.actions.records import commit_changes, each, find, insist, shelf
from carrel.core.access import KeyKind
from carrel.core.errors import Missing, Unauthenticated
from carrel.core.record import Change, Noun, Record, Shelf, global_handle
from carrel.ports import World

CODE_LIFE: Final = 3_600_000
KEY_LIFE: Final = 30 * 86_400_000


@dataclass(frozen=True, slots=True)
class SignedIn:
    token: str
    tenant: Record
    person: Record


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


async def redeem(world: World, code: str) -> SignedIn:
    """Trade a code for a key that lasts 30 days; of several that try one succeeds.

    Raises Unauthenticated for a code that is unknown, used or over, saying nothing of which.
    """

    async def attempt() -> SignedIn:
        [found] = await world.records.named([_handle(hash_of(code))])
        now = world.clock.now()
        if found is None or now >= found.body["expires"]:
            raise Unauthenticated(UNKNOWN)
        rests, person = await _holder(world, found)
        holding = keys.Holding(
            "web sign-in", KeyKind.PERSON, person=person.id, expires=now + KEY_LIFE
        )
        key = keys.made(world, found.tenant, holding)
        changes = [_removed(found), key.change]
        await commit_changes(world, key.change.id, "sign in", changes, shelves=[rests])
        tenant = await find(world, found.tenant, Noun.TENANT, found.tenant)
        return SignedIn(key.token, tenant, person)

    return await insist(attempt)


async def _holder(world: World, code: Record) -> tuple[Shelf, Record]:
    rests = await shelf(world, code.tenant, Noun.PERSON)
    try:
        return rests, await find(world, code.tenant, Noun.PERSON, code.body["personId"])
    except Missing:
        raise Unauthenticated(UNKNOWN) from None


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
