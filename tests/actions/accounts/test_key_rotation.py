"""Rotation of keys: the new one is like the old one, which ends in an hour."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.stores import advance_clock
from tests.support.tenants import add_person, create_tenant

from carrel.actions.accounts import credentials, key_rotation, keys
from carrel.actions.accounts.keys import KeySpec
from carrel.core.access import ALL_PERMISSIONS, Actor, CredentialKind, Permission, Role
from carrel.core.accounts import KeyRecord, key_from_record
from carrel.core.errors import Forbidden, NotFound, Unauthenticated
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
HOUR = 3_600_000
DAY = 24 * HOUR


async def new_key(
    ports: Ports, owner: Actor, kind: CredentialKind = CredentialKind.SERVICE, **options: Any
) -> tuple[str, Actor]:
    issued = await keys.create(ports, owner, KeySpec("runtime", kind, **options))
    return issued.token, await credentials.authenticate(ports, issued.token)


def properties(key: KeyRecord) -> tuple[Any, ...]:
    return (key.name, key.kind, key.person_id, key.agent_id, key.workspace, key.scopes, key.expires)


async def test_a_rotated_key_stays_valid_for_an_hour_beside_the_new_one(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    end = ports.clock.now() + 90 * DAY
    scopes = frozenset({Permission.WORKSPACE_READ})
    token, robot = await new_key(ports, owner, workspace="data", scopes=scopes, expires=end)
    before = key_from_record(await keys.get(ports, owner, robot.key))
    rotated = await key_rotation.rotate(ports, robot, robot.key)
    assert rotated.token != token
    assert properties(key_from_record(rotated.key)) == properties(before)
    advance_clock(ports, HOUR - 60_000)
    assert (await credentials.authenticate(ports, token)).key == robot.key
    advance_clock(ports, 60_000)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(ports, token)
    assert (await credentials.authenticate(ports, rotated.token)).workspace == "data"
    with pytest.raises(NotFound):
        await key_rotation.rotate(ports, owner, robot.key)


async def test_a_key_that_ends_sooner_keeps_its_end(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    end = ports.clock.now() + HOUR // 2
    _, robot = await new_key(ports, owner, expires=end)
    rotated = await key_rotation.rotate(ports, owner, robot.key)
    old = await keys.get(ports, owner, robot.key)
    assert [key_from_record(key).expires for key in (old, rotated.key)] == [end, end]


async def test_a_persons_key_is_rotated_only_by_that_person(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, bob = await add_person(ports, owner, "bob", Role.ADMIN)
    _, robot = await new_key(ports, owner, scopes=ALL_PERMISSIONS)
    for caller, key in ((owner, bob.key), (bob, owner.key), (robot, bob.key)):
        with pytest.raises(Forbidden):
            await key_rotation.rotate(ports, caller, key)
    _, carol = await add_person(ports, owner, "carol")
    with pytest.raises(NotFound):
        await key_rotation.rotate(ports, carol, robot.key)
    assert (await key_rotation.rotate(ports, bob, bob.key)).token


async def test_a_key_worth_more_than_the_callers_is_not_rotated(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, lasting = await new_key(ports, owner, scopes=ALL_PERMISSIONS)
    _, brief = await new_key(ports, owner, CredentialKind.PERSON, expires=ports.clock.now() + DAY)
    with pytest.raises(Forbidden, match="outlive"):
        await key_rotation.rotate(ports, brief, lasting.key)
    with pytest.raises(Forbidden, match="outlive"):
        await key_rotation.rotate(ports, brief, owner.key)
    narrow_scopes = frozenset({Permission.TENANT_ADMIN, Permission.TENANT_READ})
    _, narrow = await new_key(ports, owner, scopes=narrow_scopes)
    with pytest.raises(Forbidden, match="does not carry"):
        await key_rotation.rotate(ports, narrow, lasting.key)
