"""Tenants and what belongs to them in PostgreSQL: rivals in several processes, odd characters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from tests.support.stores import ports_over
from tests.support.tenants import add_person, create_tenant, race

from carrel.actions.accounts import credentials, keys, people, secrets, sign_in, tenants
from carrel.actions.accounts.keys import KeySpec
from carrel.actions.accounts.people import Profile
from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.adapters.postgres import open_store
from carrel.core.access import CredentialKind, Role
from carrel.core.errors import Conflict, Forbidden, NotFound, Unauthenticated, ValidationError
from carrel.core.store.record import RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
ODD = ("\x00", "a\x00b", "\ud800", "\udcff", "é", "a/b", "a\n", "", "x" * 3000)


@pytest.fixture
async def stores(postgres_url: str) -> AsyncIterator[list[Ports]]:
    """Two servers on one database."""
    async with AsyncExitStack() as stack:
        yield [ports_over(await stack.enter_async_context(open_store(postgres_url))) for _ in "12"]


async def test_of_rivals_in_two_processes_exactly_one_wins(stores: list[Ports]) -> None:
    one, other = stores
    begun, failed = await race(*(tenants.bootstrap(ports, "chosen") for ports in stores * 2))
    assert not failed
    assert len([created for created in begun if created]) == 1
    owner = await credentials.authenticate(other, "chosen")

    ask = ("acme", "Acme", "Ada", "ada@example.org")
    made, refused = await race(*(tenants.create(ports, *ask) for ports in stores * 2))
    assert (len(made), {type(reason) for reason in refused}) == (1, {Conflict})

    code = await sign_in.issue_owner_code(one, tenants.DEFAULT_TENANT_SLUG)
    signed_in, refused = await race(*(sign_in.redeem_code(ports, code) for ports in stores * 2))
    assert (len(signed_in), {type(reason) for reason in refused}) == (1, {Unauthenticated})

    bob = Profile("Bob", "bob@example.org", Role.MEMBER)
    made, refused = await race(*(people.create(ports, owner, bob) for ports in stores * 2))
    assert (len(made), {type(reason) for reason in refused}) == (1, {Conflict})


async def test_of_two_owners_who_demote_each_other_one_stays(stores: list[Ports]) -> None:
    one, other = stores
    made, ada = await create_tenant(one)
    bob, bobs = await add_person(one, ada, "bob", Role.OWNER)
    done, refused = await race(
        people.patch(one, ada, bob.id, {"role": Role.MEMBER}),
        people.patch(other, bobs, made.owner.id, {"role": Role.MEMBER}),
    )
    assert len(done) == 1
    assert [type(reason) for reason in refused] == [Forbidden]
    owners = await one.records.list(ada.tenant, RecordType.PERSON, index_key=people.OWNERS_INDEX)
    assert len(owners) == 1


async def test_a_revoked_key_opens_nothing_in_any_process(stores: list[Ports]) -> None:
    one, other = stores
    _, owner = await create_tenant(one)
    issued = await keys.create(one, owner, KeySpec("robot", CredentialKind.SERVICE))
    await credentials.authenticate(other, issued.token)
    await keys.revoke(one, owner, issued.key.id)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(other, issued.token)


async def test_characters_that_postgresql_cannot_store_are_refused_before(
    stores: list[Ports],
) -> None:
    ports = stores[0]
    _, owner = await create_tenant(ports)
    for odd in ODD:
        for asked in (
            people.get(ports, owner, odd),
            keys.get(ports, owner, odd),
            secrets.get(ports, owner, odd),
            agents.get(ports, owner, odd),
            templates.delete(ports, owner, odd),
            agents.create(ports, owner, NewAgent("marco", "Marco", odd)),
        ):
            with pytest.raises(NotFound):
                await asked
    for odd in set(ODD) - {"é", "a/b"}:
        for told in (
            people.create(ports, owner, Profile(odd, "bob@example.org", Role.MEMBER)),
            tenants.rename(ports, owner, odd),
            templates.create(ports, owner, "sales", odd),
            keys.create(ports, owner, KeySpec(odd, CredentialKind.SERVICE)),
        ):
            with pytest.raises(ValidationError):
                await told
    await secrets.put(ports, owner, "token", "hunter2\x00hunter2")
