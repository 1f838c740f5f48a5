"""Revocation of a key with everything that it led to."""

from __future__ import annotations

import pytest
from tests.support.tenants import add_person, create_tenant

from carrel.actions.accounts import credentials, invitations, key_rotation, keys, sign_in
from carrel.actions.accounts.keys import KeySpec
from carrel.core.access import ALL_PERMISSIONS, Actor, CredentialKind, Permission, Role
from carrel.core.accounts import key_from_record
from carrel.core.errors import Forbidden, NotFound, Unauthenticated
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


async def create_key(
    ports: Ports, creator: Actor, kind: CredentialKind = CredentialKind.SERVICE
) -> tuple[str, Actor]:
    issued = await keys.create(ports, creator, KeySpec("a key", kind, scopes=ALL_PERMISSIONS))
    return issued.token, await credentials.authenticate(ports, issued.token)


async def is_valid(ports: Ports, token: str) -> bool:
    try:
        await credentials.authenticate(ports, token)
    except Unauthenticated:
        return False
    return True


async def test_a_stolen_key_is_revoked_with_all_that_it_led_to(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob, _ = await add_person(ports, owner, "bob")
    carol, _ = await add_person(ports, owner, "carol")
    robots_token, robot = await create_key(ports, owner)
    stolen, thief = await create_key(ports, owner, CredentialKind.PERSON)
    child, childs = await create_key(ports, thief)
    grandchild, _ = await create_key(ports, childs)
    of_robot = (await key_rotation.rotate(ports, thief, robot.key)).token
    session = await sign_in.create_session(ports, stolen)
    invited = await sign_in.redeem_code(
        ports, (await invitations.invite(ports, thief, bob.id)).code
    )
    code = (await invitations.invite(ports, thief, carol.id)).code
    replaced = (await key_rotation.rotate(ports, thief, thief.key)).token
    led_to = [child, grandchild, replaced, of_robot, session, invited.token]
    assert [await is_valid(ports, token) for token in led_to] == [True] * len(led_to)
    await keys.revoke(ports, owner, thief.key, with_created=True)
    assert [await is_valid(ports, token) for token in (stolen, *led_to)] == [False] * 7
    with pytest.raises(Unauthenticated):
        await sign_in.redeem_code(ports, code)
    assert await is_valid(ports, robots_token)
    assert (await keys.get(ports, owner, owner.key)).id == owner.key


async def test_what_a_revoked_key_created_stays_until_it_is_revoked_too(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, first = await create_key(ports, owner)
    token, second = await create_key(ports, first)
    key = key_from_record(await keys.get(ports, owner, second.key))
    assert key.creators == [owner.key, first.key]
    await keys.revoke(ports, owner, first.key)
    assert await is_valid(ports, token)
    await keys.revoke(ports, owner, first.key, with_created=True)
    assert not await is_valid(ports, token)
    with pytest.raises(NotFound):
        await keys.revoke(ports, owner, first.key, with_created=True)


async def test_a_member_revokes_no_key_of_others_with_an_own_one(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob, as_bob = await add_person(ports, owner, "bob", Role.ADMIN)
    token, _ = await create_key(ports, as_bob)
    scopes = ALL_PERMISSIONS - {Permission.TENANT_ADMIN}
    issued = await keys.create(
        ports, as_bob, KeySpec("narrow", CredentialKind.PERSON, person=bob.id, scopes=scopes)
    )
    narrow = await credentials.authenticate(ports, issued.token)
    with pytest.raises(Forbidden):
        await keys.revoke(ports, narrow, as_bob.key, with_created=True)
    assert await is_valid(ports, token)


async def test_a_member_learns_nothing_of_the_keys_that_others_created(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, member = await add_person(ports, owner, "bob")
    _, robot = await create_key(ports, owner)
    await create_key(ports, robot)
    with pytest.raises(NotFound):
        await keys.revoke(ports, member, robot.key, with_created=True)


async def test_a_key_that_rotates_itself_for_ever_stays_small(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, robot = await create_key(ports, owner)
    for _ in range(105):
        issued = await key_rotation.rotate(ports, robot, robot.key)
        robot = await credentials.authenticate(ports, issued.token)
    assert len(key_from_record(issued.key).creators) == 100
