"""Sign-in codes work once and for an hour."""

from __future__ import annotations

import pytest
from tests.support.stores import advance_clock
from tests.support.tenants import add_person, create_tenant, race

from carrel.actions.accounts import audit, credentials, keys, sign_in, tenants
from carrel.core.access import Role
from carrel.core.errors import NotFound, Unauthenticated
from carrel.core.store.record import RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
HOUR, DAY = 3_600_000, 86_400_000


async def test_a_code_is_exchanged_for_a_key_of_its_person(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    code = await sign_in.issue_code(ports, owner.tenant, created.owner.id)
    signed_in = await sign_in.redeem_code(ports, code)
    assert (signed_in.tenant, signed_in.person) == (created.tenant, created.owner)
    actor = await credentials.authenticate(ports, signed_in.token)
    assert (actor.person, actor.role) == (created.owner.id, Role.OWNER)
    key = await keys.get(ports, owner, actor.key or "")
    assert key.body["name"] == "web sign-in"
    advance_clock(ports, 30 * DAY)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(ports, signed_in.token)


async def test_the_audit_names_the_platform_for_a_code_that_the_server_issues(
    ports: Ports,
) -> None:
    created, owner = await create_tenant(ports)
    await sign_in.issue_code(ports, owner.tenant, created.owner.id)
    [entry] = (await audit.list_audit_entries(ports, owner, limit=1)).items
    assert (entry.author, entry.key) == ("platform", None)
    assert f"person/{created.owner.id}" in entry.subjects


async def test_a_code_works_once(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    code = await sign_in.issue_code(ports, owner.tenant, created.owner.id)
    await sign_in.redeem_code(ports, code)
    with pytest.raises(Unauthenticated):
        await sign_in.redeem_code(ports, code)


async def test_of_concurrent_redemptions_of_a_code_exactly_one_succeeds(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    code = await sign_in.issue_code(ports, owner.tenant, created.owner.id)
    done, refused = await race(*(sign_in.redeem_code(ports, code) for _ in range(4)))
    assert len(done) == 1
    assert {type(reason) for reason in refused} == {Unauthenticated}
    assert len((await keys.list_keys(ports, owner)).items) == 2


async def test_a_code_expires_after_an_hour(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    code = await sign_in.issue_code(ports, owner.tenant, created.owner.id)
    advance_clock(ports, HOUR)
    with pytest.raises(Unauthenticated):
        await sign_in.redeem_code(ports, code)


async def test_issuing_a_code_removes_the_persons_expired_codes_only(
    ports: Ports,
) -> None:
    created, owner = await create_tenant(ports)
    bob, _ = await add_person(ports, owner, "bob")
    await sign_in.issue_code(ports, owner.tenant, created.owner.id)
    await sign_in.issue_code(ports, owner.tenant, bob.id)
    advance_clock(ports, HOUR)
    young = await sign_in.issue_code(ports, owner.tenant, created.owner.id)
    await sign_in.issue_code(ports, owner.tenant, created.owner.id)
    assert len(await ports.records.list(owner.tenant, RecordType.CODE)) == 3
    await sign_in.redeem_code(ports, young)


@pytest.mark.parametrize("code", ["", "code_x", "\x00", "é" * 100])
async def test_an_invalid_code_is_refused(ports: Ports, code: str) -> None:
    await create_tenant(ports)
    with pytest.raises(Unauthenticated):
        await sign_in.redeem_code(ports, code)


async def test_a_code_is_stored_as_a_hash(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    code = await sign_in.issue_code(ports, owner.tenant, created.owner.id)
    [record] = await ports.records.list(owner.tenant, RecordType.CODE)
    assert code not in str(record)


async def test_a_code_is_no_token_and_a_token_is_no_code(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    code = await sign_in.issue_code(ports, owner.tenant, created.owner.id)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(ports, code)
    with pytest.raises(Unauthenticated):
        await sign_in.redeem_code(ports, created.token)


async def test_a_code_needs_a_person_of_its_tenant(ports: Ports) -> None:
    created, _ = await create_tenant(ports)
    _, other = await create_tenant(ports, "globex")
    with pytest.raises(NotFound):
        await sign_in.issue_code(ports, other.tenant, created.owner.id)


async def test_an_owner_code_is_issued_by_tenant_slug(ports: Ports) -> None:
    with pytest.raises(NotFound):
        await sign_in.issue_owner_code(ports, tenants.DEFAULT_TENANT_SLUG)
    first = await tenants.bootstrap(ports)
    assert first
    signed_in = await sign_in.redeem_code(
        ports, await sign_in.issue_owner_code(ports, tenants.DEFAULT_TENANT_SLUG)
    )
    assert signed_in.person == first.owner
