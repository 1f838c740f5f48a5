"""A sign-in code is good once, and not for long."""

from __future__ import annotations

import pytest
from tests.actions.cast import founded, joined, rivals
from tests.worlds import travel

from carrel.actions.accounts import credentials, keys, tenants
from carrel.actions.accounts import sign_in as signins
from carrel.core.access import Role
from carrel.core.errors import NotFound, Unauthenticated
from carrel.core.store.record import RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
HOUR, DAY = 3_600_000, 86_400_000


async def test_a_code_becomes_a_key_of_that_person(world: Ports) -> None:
    made, owner = await founded(world)
    code = await signins.issue(world, owner.tenant, made.owner.id)
    signed_in = await signins.redeem(world, code)
    assert (signed_in.tenant, signed_in.person) == (made.tenant, made.owner)
    actor = await credentials.authenticate(world, signed_in.token)
    assert (actor.person, actor.role) == (made.owner.id, Role.OWNER)
    key = await keys.get(world, owner, actor.key or "")
    assert key.body["name"] == "web sign-in"
    travel(world, 30 * DAY)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(world, signed_in.token)


async def test_a_code_is_good_once(world: Ports) -> None:
    made, owner = await founded(world)
    code = await signins.issue(world, owner.tenant, made.owner.id)
    await signins.redeem(world, code)
    with pytest.raises(Unauthenticated):
        await signins.redeem(world, code)


async def test_of_several_who_redeem_one_code_exactly_one_gets_in(world: Ports) -> None:
    made, owner = await founded(world)
    code = await signins.issue(world, owner.tenant, made.owner.id)
    done, refused = await rivals(*(signins.redeem(world, code) for _ in range(4)))
    assert len(done) == 1
    assert {type(why) for why in refused} == {Unauthenticated}
    assert len((await keys.listing(world, owner)).items) == 2


async def test_a_code_is_good_for_an_hour(world: Ports) -> None:
    made, owner = await founded(world)
    code = await signins.issue(world, owner.tenant, made.owner.id)
    travel(world, HOUR)
    with pytest.raises(Unauthenticated):
        await signins.redeem(world, code)


async def test_a_new_code_sweeps_away_those_that_are_over_and_spares_the_others(
    world: Ports,
) -> None:
    made, owner = await founded(world)
    bob, _ = await joined(world, owner, "bob")
    await signins.issue(world, owner.tenant, made.owner.id)
    await signins.issue(world, owner.tenant, bob.id)
    travel(world, HOUR)
    young = await signins.issue(world, owner.tenant, made.owner.id)
    await signins.issue(world, owner.tenant, made.owner.id)
    assert len(await world.records.list(owner.tenant, RecordType.CODE)) == 3
    await signins.redeem(world, young)


@pytest.mark.parametrize("code", ["", "code_x", "\x00", "é" * 100])
async def test_what_is_no_code_opens_nothing(world: Ports, code: str) -> None:
    await founded(world)
    with pytest.raises(Unauthenticated):
        await signins.redeem(world, code)


async def test_a_code_is_kept_as_a_hash(world: Ports) -> None:
    made, owner = await founded(world)
    code = await signins.issue(world, owner.tenant, made.owner.id)
    [record] = await world.records.list(owner.tenant, RecordType.CODE)
    assert code not in str(record)


async def test_a_code_is_not_a_token_nor_a_token_a_code(world: Ports) -> None:
    made, owner = await founded(world)
    code = await signins.issue(world, owner.tenant, made.owner.id)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(world, code)
    with pytest.raises(Unauthenticated):
        await signins.redeem(world, made.token)


async def test_a_code_needs_a_person_of_that_tenant(world: Ports) -> None:
    made, _ = await founded(world)
    _, other = await founded(world, "globex")
    with pytest.raises(NotFound):
        await signins.issue(world, other.tenant, made.owner.id)


async def test_the_owner_of_a_tenant_is_given_a_code_by_its_slug(world: Ports) -> None:
    with pytest.raises(NotFound):
        await signins.for_owner(world, tenants.FIRST)
    first = await tenants.bootstrap(world)
    assert first
    signed_in = await signins.redeem(world, await signins.for_owner(world, tenants.FIRST))
    assert signed_in.person == first.owner
