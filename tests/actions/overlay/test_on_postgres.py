"""Tenants on PostgreSQL: races between processes and characters it cannot store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from tests.support.stores import ports_over
from tests.support.tenants import add_person, create_tenant, race

from carrel.actions.accounts import credentials, keys, people, secrets, sign_in, tenants
from carrel.actions.accounts.keys import KeySpec
from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.adapters.postgres import open_store
from carrel.core.access import CredentialKind, Role
from carrel.core.accounts import PersonRecord
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


async def test_of_concurrent_requests_in_two_processes_exactly_one_wins(
    stores: list[Ports],
) -> None:
    first, second = stores
    bootstrapped, failed = await race(*(tenants.bootstrap(ports, "chosen") for ports in stores * 2))
    assert not failed
    assert len([created for created in bootstrapped if created]) == 1
    owner = await credentials.authenticate(second, "chosen")

    arguments = ("acme", "Acme", "Ada", "ada@example.org")
    succeeded, refused = await race(*(tenants.create(ports, *arguments) for ports in stores * 2))
    assert (len(succeeded), {type(reason) for reason in refused}) == (1, {Conflict})

    code = await sign_in.issue_owner_code(first, tenants.DEFAULT_TENANT_SLUG)
    signed_in, refused = await race(*(sign_in.redeem_code(ports, code) for ports in stores * 2))
    assert (len(signed_in), {type(reason) for reason in refused}) == (1, {Unauthenticated})

    bob = PersonRecord("Bob", "bob@example.org", Role.MEMBER)
    succeeded, refused = await race(*(people.create(ports, owner, bob) for ports in stores * 2))
    assert (len(succeeded), {type(reason) for reason in refused}) == (1, {Conflict})


async def test_of_two_owners_demoting_each_other_one_stays(stores: list[Ports]) -> None:
    first, second = stores
    created, ada = await create_tenant(first)
    bob, bob_actor = await add_person(first, ada, "bob", Role.OWNER)
    done, refused = await race(
        people.patch(first, ada, bob.id, {"role": Role.MEMBER}),
        people.patch(second, bob_actor, created.owner.id, {"role": Role.MEMBER}),
    )
    assert len(done) == 1
    assert [type(reason) for reason in refused] == [Forbidden]
    owners = await first.records.list(ada.tenant, RecordType.PERSON, index_key=people.OWNERS_INDEX)
    assert len(owners) == 1


async def test_a_revoked_key_is_refused_in_every_process(stores: list[Ports]) -> None:
    first, second = stores
    _, owner = await create_tenant(first)
    issued = await keys.create(first, owner, KeySpec("robot", CredentialKind.SERVICE))
    await credentials.authenticate(second, issued.token)
    await keys.revoke(first, owner, issued.key.id)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(second, issued.token)


async def test_characters_that_postgresql_cannot_store_are_refused_before_the_query(
    stores: list[Ports],
) -> None:
    ports = stores[0]
    _, owner = await create_tenant(ports)
    for text in ODD:
        for request in (
            people.get(ports, owner, text),
            keys.get(ports, owner, text),
            secrets.get(ports, owner, text),
            agents.get(ports, owner, text),
            templates.delete(ports, owner, text),
            agents.create(ports, owner, NewAgent("marco", "Marco", text)),
        ):
            with pytest.raises(NotFound):
                await request
    for text in set(ODD) - {"é", "a/b"}:
        for write in (
            people.create(ports, owner, PersonRecord(text, "bob@example.org", Role.MEMBER)),
            tenants.rename(ports, owner, text),
            templates.create(ports, owner, "sales", text),
            keys.create(ports, owner, KeySpec(text, CredentialKind.SERVICE)),
        ):
            with pytest.raises(ValidationError):
                await write
    await secrets.put(ports, owner, "token", "hunter2\x00hunter2")
