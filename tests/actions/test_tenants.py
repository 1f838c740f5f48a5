"""Tenants are made whole, once, and an empty store is given one."""

from __future__ import annotations

import pytest
from tests.actions.cast import founded, rivals

from carrel.actions.accounts import audit as audits
from carrel.actions.accounts import credentials, tenants
from carrel.core.access import ALL, Role
from carrel.core.errors import Conflict, Unauthenticated, ValidationError
from carrel.core.store.record import RecordType
from carrel.core.text_validation import RESERVED
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


async def test_a_tenant_begins_with_an_owner_who_can_get_in(world: Ports) -> None:
    made, owner = await founded(world)
    assert made.tenant.body == {"slug": "acme", "name": "Acme"}
    assert made.tenant.tenant == made.tenant.id == owner.tenant
    assert (owner.person, owner.role, owner.permissions) == (made.owner.id, Role.OWNER, ALL)
    assert (await tenants.me(world, owner)) == made.tenant


async def test_a_tenant_is_made_in_one_commit(world: Ports) -> None:
    _, owner = await founded(world)
    [deed] = (await audits.listing(world, owner)).items
    kinds = [subject.split("/")[0] for subject in deed.subjects]
    assert kinds == ["tenant", "person", "key", "defaults"]


@pytest.mark.parametrize(
    "slug", ["", "Acme", "a b", "-a", "a\n", "é", "_catalog", *sorted(RESERVED)]
)
async def test_a_slug_must_be_one_and_free(world: Ports, slug: str) -> None:
    with pytest.raises(ValidationError):
        await tenants.create(world, slug, "Acme", "Ada", "ada@example.org")


@pytest.mark.parametrize("name", ["", " ", " a", "a\n", "a\x00b", "a\u2028b", "\ud800", "a" * 201])
async def test_a_name_must_be_one_line(world: Ports, name: str) -> None:
    with pytest.raises(ValidationError):
        await tenants.create(world, "acme", name, "Ada", "ada@example.org")


async def test_of_two_tenants_with_one_slug_exactly_one_is_made(world: Ports) -> None:
    ask = ("acme", "Acme", "Ada", "ada@example.org")
    made, refused = await rivals(*(tenants.create(world, *ask) for _ in range(4)))
    assert len(made) == 1
    assert [type(why) for why in refused] == [Conflict] * 3
    people = await world.records.list("", RecordType.PERSON)
    assert [person.id for person in people] == [made[0].owner.id], "the losers left nothing behind"


async def test_an_empty_store_is_given_a_tenant_and_only_once(world: Ports) -> None:
    first = await tenants.bootstrap(world)
    assert first
    assert first.tenant.body["slug"] == tenants.FIRST == "default"
    assert (await credentials.authenticate(world, first.token)).role is Role.OWNER
    assert await tenants.bootstrap(world) is None


async def test_of_several_processes_that_start_at_once_one_makes_the_tenant(world: Ports) -> None:
    token = "chosen-by-the-operator"
    outcomes, failed = await rivals(*(tenants.bootstrap(world, token) for _ in range(4)))
    assert not failed
    assert len([one for one in outcomes if one]) == 1
    assert len(await world.records.list("", RecordType.TENANT)) == 1
    assert len(await world.records.list("", RecordType.KEY)) == 1
    assert (await credentials.authenticate(world, token)).role is Role.OWNER


async def test_the_operators_token_opens_a_store_that_exists_already(world: Ports) -> None:
    first = await tenants.bootstrap(world)
    assert first
    for _ in range(2):
        outcomes, failed = await rivals(*(tenants.bootstrap(world, "late-token") for _ in range(3)))
        assert (outcomes, failed) == ([None] * 3, [])
    late = await credentials.authenticate(world, "late-token")
    assert (late.tenant, late.person) == (first.tenant.id, first.owner.id)
    assert len(await world.records.list("", RecordType.KEY)) == 2


async def test_little_of_a_chosen_token_is_kept_in_the_clear(world: Ports) -> None:
    await tenants.bootstrap(world, "chosen-token")
    [key] = await world.records.list("", RecordType.KEY)
    assert key.body["prefix"] == "cho"
    assert "chosen-token" not in str(key.body)


async def test_a_tenant_is_renamed_and_keeps_its_slug(world: Ports) -> None:
    made, owner = await founded(world)
    renamed = await tenants.rename(world, owner, "Acme & Sons")
    assert renamed == await tenants.me(world, owner)
    assert renamed.body == {"slug": "acme", "name": "Acme & Sons"}
    assert (renamed.revision, renamed.created) == (2, made.tenant.created)
    assert await tenants.rename(world, owner, "Acme & Sons") == renamed
    with pytest.raises(Conflict):
        await founded(world)


async def test_rivals_who_rename_all_succeed_one_after_another(world: Ports) -> None:
    _, owner = await founded(world)
    names = ["One", "Two", "Three"]
    done, failed = await rivals(*(tenants.rename(world, owner, name) for name in names))
    assert not failed
    assert sorted(record.revision for record in done) == [2, 3, 4]


async def test_an_unknown_token_opens_nothing(world: Ports) -> None:
    await founded(world)
    for token in ("", "carrel_x", "\x00", "é"):
        with pytest.raises(Unauthenticated):
            await credentials.authenticate(world, token)
