"""A sign-in code is good once, and not for long."""

from __future__ import annotations

import pytest
from tests.support.stores import advance_clock
from tests.support.tenants import add_person, create_tenant, race

from carrel.actions.accounts import credentials, keys, sign_in, tenants
from carrel.core.access import Role
from carrel.core.errors import NotFound, Unauthenticated
from carrel.core.store.record import RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
HOUR, DAY = 3_600_000, 86_400_000


async def test_a_code_becomes_a_key_of_that_person(ports: Ports) -> None:
    made, owner = await create_tenant(ports)
    code = await sign_in.issue_code(ports, owner.tenant, made.owner.id)
    signed_in = await sign_in.redeem_code(ports, code)
    assert (signed_in.tenant, signed_in.person) == (made.tenant, made.owner)
    actor = await credentials.authenticate(ports, signed_in.token)
    assert (actor.person, actor.role) == (made.owner.id, Role.OWNER)
    key = await keys.get(ports, owner, actor.key or "")
    assert key.body["name"] == "web sign-in"
    advance_clock(ports, 30 * DAY)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(ports, signed_in.token)


async def test_a_code_is_good_once(ports: Ports) -> None:
    made, owner = await create_tenant(ports)
    code = await sign_in.issue_code(ports, owner.tenant, made.owner.id)
    await sign_in.redeem_code(ports, code)
    with pytest.raises(Unauthenticated):
        await sign_in.redeem_code(ports, code)


async def test_of_several_who_redeem_one_code_exactly_one_gets_in(ports: Ports) -> None:
    made, owner = await create_tenant(ports)
    code = await sign_in.issue_code(ports, owner.tenant, made.owner.id)
    done, refused = await race(*(sign_in.redeem_code(ports, code) for _ in range(4)))
    assert len(done) == 1
    assert {type(reason) for reason in refused} == {Unauthenticated}
    assert len((await keys.list_keys(ports, owner)).items) == 2


async def test_a_code_is_good_for_an_hour(ports: Ports) -> None:
    made, owner = await create_tenant(ports)
    code = await sign_in.issue_code(ports, owner.tenant, made.owner.id)
    advance_clock(ports, HOUR)
    with pytest.raises(Unauthenticated):
        await sign_in.redeem_code(ports, code)


async def test_a_new_code_sweeps_away_those_that_are_over_and_spares_the_others(
    ports: Ports,
) -> None:
    made, owner = await create_tenant(ports)
    bob, _ = await add_person(ports, owner, "bob")
    await sign_in.issue_code(ports, owner.tenant, made.owner.id)
    await sign_in.issue_code(ports, owner.tenant, bob.id)
    advance_clock(ports, HOUR)
    young = await sign_in.issue_code(ports, owner.tenant, made.owner.id)
    await sign_in.issue_code(ports, owner.tenant, made.owner.id)
    assert len(await ports.records.list(owner.tenant, RecordType.CODE)) == 3
    await sign_in.redeem_code(ports, young)


@pytest.mark.parametrize("code", ["", "code_x", "\x00", "é" * 100])
async def test_what_is_no_code_opens_nothing(ports: Ports, code: str) -> None:
    await create_tenant(ports)
    with pytest.raises(Unauthenticated):
        await sign_in.redeem_code(ports, code)


async def test_a_code_is_kept_as_a_hash(ports: Ports) -> None:
    made, owner = await create_tenant(ports)
    code = await sign_in.issue_code(ports, owner.tenant, made.owner.id)
    [record] = await ports.records.list(owner.tenant, RecordType.CODE)
    assert code not in str(record)


async def test_a_code_is_not_a_token_nor_a_token_a_code(ports: Ports) -> None:
    made, owner = await create_tenant(ports)
    code = await sign_in.issue_code(ports, owner.tenant, made.owner.id)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(ports, code)
    with pytest.raises(Unauthenticated):
        await sign_in.redeem_code(ports, made.token)


async def test_a_code_needs_a_person_of_that_tenant(ports: Ports) -> None:
    made, _ = await create_tenant(ports)
    _, other = await create_tenant(ports, "globex")
    with pytest.raises(NotFound):
        await sign_in.issue_code(ports, other.tenant, made.owner.id)


async def test_the_owner_of_a_tenant_is_given_a_code_by_its_slug(ports: Ports) -> None:
    with pytest.raises(NotFound):
        await sign_in.issue_owner_code(ports, tenants.DEFAULT_TENANT_SLUG)
    first = await tenants.bootstrap(ports)
    assert first
    signed_in = await sign_in.redeem_code(
        ports, await sign_in.issue_owner_code(ports, tenants.DEFAULT_TENANT_SLUG)
    )
    assert signed_in.person == first.owner
