"""Tenants are created completely and once, and an empty store gets one."""

from __future__ import annotations

import pytest
from tests.support.tenants import create_tenant, race

from carrel.actions.accounts import audit, credentials, tenants
from carrel.core.access import ALL_PERMISSIONS, Role
from carrel.core.errors import Conflict, Unauthenticated, ValidationError
from carrel.core.store.record import RecordType
from carrel.core.text_validation import RESERVED_SLUGS
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


async def test_a_new_tenant_has_an_owner_who_can_authenticate(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    assert created.tenant.body == {"slug": "acme", "name": "Acme"}
    assert created.tenant.tenant == created.tenant.id == owner.tenant
    assert (owner.person, owner.role, owner.permissions) == (
        created.owner.id,
        Role.OWNER,
        ALL_PERMISSIONS,
    )
    assert (await tenants.get_current(ports, owner)) == created.tenant


async def test_a_tenant_is_created_in_one_commit(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    [entry] = (await audit.list_audit_entries(ports, owner)).items
    record_types = [subject.split("/")[0] for subject in entry.subjects]
    assert record_types == ["tenant", "person", "key", "defaults"]


@pytest.mark.parametrize(
    "slug", ["", "Acme", "a b", "-a", "a\n", "é", "_catalog", *sorted(RESERVED_SLUGS)]
)
async def test_an_invalid_or_reserved_slug_is_refused(ports: Ports, slug: str) -> None:
    with pytest.raises(ValidationError):
        await tenants.create(ports, slug, "Acme", "Ada", "ada@example.org")


@pytest.mark.parametrize("name", ["", " ", " a", "a\n", "a\x00b", "a\u2028b", "\ud800", "a" * 201])
async def test_a_name_of_more_than_one_line_is_refused(ports: Ports, name: str) -> None:
    with pytest.raises(ValidationError):
        await tenants.create(ports, "acme", name, "Ada", "ada@example.org")


async def test_of_concurrent_creates_with_one_slug_exactly_one_succeeds(ports: Ports) -> None:
    arguments = ("acme", "Acme", "Ada", "ada@example.org")
    created, refused = await race(*(tenants.create(ports, *arguments) for _ in range(4)))
    assert len(created) == 1
    assert [type(reason) for reason in refused] == [Conflict] * 3
    people = await ports.records.list("", RecordType.PERSON)
    assert [person.id for person in people] == [created[0].owner.id], "the losers stored nothing"


async def test_an_empty_store_gets_a_tenant_once(ports: Ports) -> None:
    first = await tenants.bootstrap(ports)
    assert first
    assert first.tenant.body["slug"] == tenants.DEFAULT_TENANT_SLUG == "default"
    assert (await credentials.authenticate(ports, first.token)).role is Role.OWNER
    assert await tenants.bootstrap(ports) is None


async def test_of_several_processes_starting_at_once_one_creates_the_tenant(ports: Ports) -> None:
    token = "chosen-by-the-operator"
    outcomes, failed = await race(*(tenants.bootstrap(ports, token) for _ in range(4)))
    assert not failed
    assert len([outcome for outcome in outcomes if outcome]) == 1
    assert len(await ports.records.list("", RecordType.TENANT)) == 1
    assert len(await ports.records.list("", RecordType.KEY)) == 1
    assert (await credentials.authenticate(ports, token)).role is Role.OWNER


async def test_the_operators_token_works_in_an_existing_store(ports: Ports) -> None:
    first = await tenants.bootstrap(ports)
    assert first
    for _ in range(2):
        outcomes, failed = await race(*(tenants.bootstrap(ports, "late-token") for _ in range(3)))
        assert (outcomes, failed) == ([None] * 3, [])
    late = await credentials.authenticate(ports, "late-token")
    assert (late.tenant, late.person) == (first.tenant.id, first.owner.id)
    assert len(await ports.records.list("", RecordType.KEY)) == 2


async def test_only_a_short_prefix_of_a_chosen_token_is_readable(ports: Ports) -> None:
    await tenants.bootstrap(ports, "chosen-token")
    [key] = await ports.records.list("", RecordType.KEY)
    assert key.body["prefix"] == "cho"
    assert "chosen-token" not in str(key.body)


async def test_a_renamed_tenant_keeps_its_slug(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    renamed = await tenants.rename(ports, owner, "Acme & Sons")
    assert renamed == await tenants.get_current(ports, owner)
    assert renamed.body == {"slug": "acme", "name": "Acme & Sons"}
    assert (renamed.revision, renamed.created_at) == (2, created.tenant.created_at)
    assert await tenants.rename(ports, owner, "Acme & Sons") == renamed
    with pytest.raises(Conflict):
        await create_tenant(ports)


async def test_concurrent_renames_all_succeed(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    names = ["One", "Two", "Three"]
    done, failed = await race(*(tenants.rename(ports, owner, name) for name in names))
    assert not failed
    assert sorted(record.revision for record in done) == [2, 3, 4]


async def test_an_unknown_token_is_refused(ports: Ports) -> None:
    await create_tenant(ports)
    for token in ("", "carrel_x", "\x00", "é"):
        with pytest.raises(Unauthenticated):
            await credentials.authenticate(ports, token)
