"""Keys: their permissions never exceed their creator's, and they can be revoked."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.stores import advance_clock
from tests.support.tenants import add_person, create_tenant, race, start_after_yields

from carrel.actions.accounts import credentials, keys, people
from carrel.actions.accounts.keys import KeySpec
from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.overlay import stacks
from carrel.core.access import (
    ALL_PERMISSIONS,
    MACHINE_PERMISSIONS,
    Actor,
    CredentialKind,
    Permission,
    Role,
)
from carrel.core.accounts import key_from_record
from carrel.core.errors import Forbidden, NotFound, Unauthenticated, ValidationError
from carrel.core.identifiers import Scope, ScopeKind
from carrel.core.store.record import RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
ADMIN, READ, WRITE = (
    Permission.TENANT_ADMIN,
    Permission.WORKSPACE_READ,
    Permission.WORKSPACE_WRITE,
)
TENANT = frozenset({ADMIN, Permission.TENANT_READ})


async def actor_with_new_key(
    ports: Ports, creator: Actor, kind: CredentialKind, **options: Any
) -> Actor:
    """The actor that authenticates with a key made by the creator."""
    issued = await keys.create(ports, creator, KeySpec("a key", kind, **options))
    return await credentials.authenticate(ports, issued.token)


async def test_a_person_key_without_a_person_belongs_to_the_caller(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    me = await actor_with_new_key(ports, owner, CredentialKind.PERSON)
    assert (me.person, me.role, me.permissions, me.is_confined) == (
        created.owner.id,
        Role.OWNER,
        ALL_PERMISSIONS,
        False,
    )


async def test_a_key_is_stored_as_a_hash_with_a_readable_prefix(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    issued = await keys.create(ports, owner, KeySpec("laptop", CredentialKind.PERSON))
    stored = await keys.get(ports, owner, issued.key.id)
    assert stored == issued.key
    assert stored.body["prefix"] == issued.token[:12]
    assert issued.token not in str(stored)
    assert stored.body["hash"] == credentials.hash_token(issued.token)


async def test_a_service_key_has_machine_permissions_by_default(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    plain = await actor_with_new_key(ports, owner, CredentialKind.SERVICE)
    assert (plain.permissions, plain.person, plain.role) == (MACHINE_PERMISSIONS, None, None)
    narrow = await actor_with_new_key(
        ports, owner, CredentialKind.SERVICE, scopes=frozenset({READ, ADMIN})
    )
    assert narrow.permissions == {READ, ADMIN}


async def test_a_key_bound_to_a_workspace_has_no_tenant_permissions(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    for kind in (CredentialKind.PERSON, CredentialKind.SERVICE):
        bound = await actor_with_new_key(ports, owner, kind, workspace="ws_1")
        assert bound.scope == Scope(owner.tenant, ScopeKind.WORKSPACE, "ws_1")
        assert bound.permissions == MACHINE_PERMISSIONS
        for beyond in TENANT:
            with pytest.raises(ValidationError):
                await actor_with_new_key(
                    ports, owner, kind, workspace="ws_1", scopes=frozenset({beyond})
                )


async def test_an_agent_key_works_on_the_agents_stack(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    marco = await agents.create(ports, owner, NewAgent("marco", "Marco"))
    for name in (marco.id, "marco"):
        actor = await actor_with_new_key(ports, owner, CredentialKind.AGENT, agent=name)
        assert (actor.agent, actor.permissions) == (marco.id, MACHINE_PERMISSIONS)
        assert (await stacks.default_stack(ports, actor))[0] == Scope(
            owner.tenant, ScopeKind.AGENT, marco.id
        )


@pytest.mark.parametrize(
    "invalid",
    [
        {"kind": CredentialKind.AGENT},
        {"kind": CredentialKind.SERVICE, "person": "per_1"},
        {"kind": CredentialKind.AGENT, "agent": "marco", "person": "per_1"},
        {"kind": CredentialKind.SERVICE, "agent": "marco", "workspace": "ws_1"},
        {"kind": CredentialKind.SERVICE, "workspace": ""},
        {"kind": CredentialKind.SERVICE, "workspace": "a/b"},
        {"kind": CredentialKind.SERVICE, "workspace": "a\x00"},
        {"kind": CredentialKind.SERVICE, "scopes": frozenset()},
        {"kind": CredentialKind.SERVICE, "expires": -1},
        {"kind": CredentialKind.SERVICE, "expires": 0},
        {"kind": CredentialKind.SERVICE, "expires": 1},
        {"kind": CredentialKind.SERVICE, "expires": 253_402_387_139_000},
        {"kind": CredentialKind.SERVICE, "name": "a\nb"},
        {"kind": CredentialKind.AGENT, "agent": "marco", "scopes": TENANT},
    ],
)
async def test_an_inconsistent_key_spec_is_refused(ports: Ports, invalid: dict[str, Any]) -> None:
    _, owner = await create_tenant(ports)
    await agents.create(ports, owner, NewAgent("marco", "Marco"))
    with pytest.raises(ValidationError):
        await keys.create(ports, owner, KeySpec(**{"name": "a key", **invalid}))


async def test_a_key_needs_an_existing_holder_of_its_tenant(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, other = await create_tenant(ports, "globex")
    theirs = await agents.create(ports, other, NewAgent("marco", "Marco"))
    for spec in (
        KeySpec("x", CredentialKind.AGENT, agent="missing"),
        KeySpec("x", CredentialKind.AGENT, agent=theirs.id),
        KeySpec("x", CredentialKind.AGENT, agent="marco"),
        KeySpec("x", CredentialKind.AGENT, agent="a\x00"),
    ):
        with pytest.raises(NotFound):
            await keys.create(ports, owner, spec)


async def test_a_key_of_a_person_is_created_only_by_that_person(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob, his = await add_person(ports, owner, "bob", Role.ADMIN)
    carol, _ = await add_person(ports, owner, "carol", Role.OWNER)
    robot = await actor_with_new_key(ports, owner, CredentialKind.SERVICE, scopes=ALL_PERMISSIONS)
    strangers = [(owner, bob.id), (his, carol.id), (owner, carol.id), (robot, bob.id)]
    for caller, person in [*strangers, (robot, None), (owner, "per_0"), (owner, "a\x00")]:
        with pytest.raises(Forbidden):
            await actor_with_new_key(ports, caller, CredentialKind.PERSON, person=person)
    assert (await actor_with_new_key(ports, his, CredentialKind.PERSON)).person == bob.id


async def test_a_key_lives_no_longer_than_the_key_that_creates_it(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    end = ports.clock.now() + 3_600_000
    for kind in (CredentialKind.PERSON, CredentialKind.SERVICE):
        issued = await keys.create(
            ports, owner, KeySpec("short", kind, scopes=ALL_PERMISSIONS, expires=end)
        )
        short = await credentials.authenticate(ports, issued.token)
        for expires, expected in ((None, end), (end, end), (end - 1, end - 1)):
            issued = await keys.create(
                ports, short, KeySpec("x", CredentialKind.SERVICE, expires=expires)
            )
            assert key_from_record(issued.key).expires == expected
        with pytest.raises(Forbidden, match="outlive"):
            await keys.create(ports, short, KeySpec("x", CredentialKind.SERVICE, expires=end + 1))


async def test_a_key_created_by_a_key_with_scopes_does_not_grow_with_the_role(
    ports: Ports,
) -> None:
    _, owner = await create_tenant(ports)
    bob, his = await add_person(ports, owner, "bob")
    narrow = await actor_with_new_key(
        ports, his, CredentialKind.PERSON, scopes=frozenset(his.permissions)
    )
    issued = await keys.create(ports, narrow, KeySpec("x", CredentialKind.PERSON))
    await people.patch(ports, owner, bob.id, {"role": Role.ADMIN})
    assert ADMIN not in (await credentials.authenticate(ports, issued.token)).permissions


async def test_a_member_creates_keys_only_for_themselves(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    _, member = await add_person(ports, owner, "bob")
    await agents.create(ports, owner, NewAgent("marco", "Marco"))
    mine = await actor_with_new_key(ports, member, CredentialKind.PERSON)
    assert (mine.person, mine.permissions) == (member.person, member.permissions)
    for spec in (
        KeySpec("x", CredentialKind.PERSON, person=created.owner.id),
        KeySpec("x", CredentialKind.PERSON, person="per_0"),
        KeySpec("x", CredentialKind.SERVICE),
        KeySpec("x", CredentialKind.AGENT, agent="marco"),
        KeySpec("x", CredentialKind.PERSON, scopes=frozenset({ADMIN})),
    ):
        with pytest.raises(Forbidden):
            await keys.create(ports, member, spec)


async def test_a_key_never_has_more_permissions_than_its_creator(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob, _ = await add_person(ports, owner, "bob")
    narrow = await actor_with_new_key(
        ports, owner, CredentialKind.SERVICE, scopes=frozenset({ADMIN, READ})
    )
    for spec in (
        KeySpec("x", CredentialKind.SERVICE),
        KeySpec("x", CredentialKind.SERVICE, scopes=frozenset({READ, WRITE})),
        KeySpec("x", CredentialKind.PERSON, person=bob.id),
        KeySpec("x", CredentialKind.SERVICE, workspace="ws_1"),
    ):
        with pytest.raises(Forbidden):
            await keys.create(ports, narrow, spec)
    assert (
        await actor_with_new_key(ports, narrow, CredentialKind.SERVICE, scopes=frozenset({READ}))
    ).permissions == {READ}
    own = await actor_with_new_key(
        ports, owner, CredentialKind.PERSON, scopes=frozenset({Permission.TENANT_READ})
    )
    with pytest.raises(Forbidden):
        await actor_with_new_key(ports, own, CredentialKind.PERSON)


async def test_a_bound_credential_creates_no_keys(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await agents.create(ports, owner, NewAgent("marco", "Marco"))
    for bound in (
        await actor_with_new_key(ports, owner, CredentialKind.PERSON, workspace="ws_1"),
        await actor_with_new_key(ports, owner, CredentialKind.AGENT, agent="marco"),
    ):
        with pytest.raises(Forbidden):
            await actor_with_new_key(ports, bound, CredentialKind.PERSON, workspace="ws_1")


async def test_a_key_is_valid_until_it_expires(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    hour = 3_600_000
    spec = KeySpec("short", CredentialKind.SERVICE, expires=ports.clock.now() + hour)
    issued = await keys.create(ports, owner, spec)
    await credentials.authenticate(ports, issued.token)
    advance_clock(ports, hour)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(ports, issued.token)


async def test_a_revoked_key_is_refused_from_the_next_request(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    issued = await keys.create(ports, owner, KeySpec("lost", CredentialKind.SERVICE))
    await credentials.authenticate(ports, issued.token)
    done, refused = await race(*(keys.revoke(ports, owner, issued.key.id) for _ in range(3)))
    assert len(done) == 1
    assert {type(reason) for reason in refused} == {NotFound}
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(ports, issued.token)
    with pytest.raises(NotFound):
        await keys.get(ports, owner, issued.key.id)


async def test_members_list_and_revoke_their_own_keys_and_admins_all_keys(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, member = await add_person(ports, owner, "bob")
    own = await keys.create(ports, member, KeySpec("mine", CredentialKind.PERSON))
    other = await keys.create(ports, owner, KeySpec("not mine", CredentialKind.SERVICE))
    listed = [key.id for key in (await keys.list_keys(ports, member)).items]
    assert listed == [member.key, own.key.id]
    assert len((await keys.list_keys(ports, owner)).items) == 4
    for attempt in (keys.get, keys.revoke):
        with pytest.raises(NotFound):
            await attempt(ports, member, other.key.id)
    await keys.revoke(ports, member, own.key.id)


async def test_a_key_revokes_itself_and_none_that_is_worth_more(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, member = await add_person(ports, owner, "bob")
    for person in (owner, member):
        scopes = frozenset({Permission.TENANT_READ})
        reader = await actor_with_new_key(ports, person, CredentialKind.PERSON, scopes=scopes)
        same = await actor_with_new_key(ports, person, CredentialKind.PERSON, scopes=scopes)
        with pytest.raises(Forbidden, match="does not carry"):
            await keys.revoke(ports, reader, person.key)
        await keys.revoke(ports, reader, same.key)
        await keys.revoke(ports, reader, reader.key)


async def test_a_service_without_tenant_admin_lists_only_its_own_key(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    robot = await actor_with_new_key(
        ports, owner, CredentialKind.SERVICE, scopes=frozenset({Permission.TENANT_READ})
    )
    assert [key.id for key in (await keys.list_keys(ports, robot)).items] == [robot.key]
    assert (await keys.list_keys(ports, robot, cursor=robot.key)).items == ()
    assert (await keys.get(ports, robot, robot.key)).id == robot.key


async def test_keys_of_another_tenant_are_not_found(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, other = await create_tenant(ports, "globex")
    for attempt in (keys.get, keys.revoke):
        with pytest.raises(NotFound):
            await attempt(ports, owner, other.key)
    assert [key.id for key in (await keys.list_keys(ports, owner)).items] == [owner.key]


async def test_last_used_is_the_later_of_the_cached_and_the_stored_time(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    issued = await keys.create(ports, owner, KeySpec("new", CredentialKind.SERVICE))
    both = (await keys.get(ports, owner, owner.key), issued.key)
    ports.key_last_used.clear()
    assert await keys.last_used(ports, both) == (None, None)
    await ports.records.mark_used({owner.key: 5000, issued.key.id: 7000})
    ports.key_last_used.update({owner.key: 6000, issued.key.id: 6000})
    assert await keys.last_used(ports, both) == (6000, 7000)
    await credentials.authenticate(ports, issued.token)
    assert (await keys.last_used(ports, both))[1] == ports.key_last_used[issued.key.id] > 7000


async def test_deleting_an_agent_removes_its_keys_including_concurrent_ones(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    for turns in range(10):
        marco = await agents.create(ports, owner, NewAgent("marco", "Marco"))
        issued = await keys.create(ports, owner, KeySpec("x", CredentialKind.AGENT, agent="marco"))
        late = KeySpec("late", CredentialKind.AGENT, agent=marco.id)
        await race(
            agents.delete(ports, owner, marco.id),
            start_after_yields(turns, keys.create(ports, owner, late)),
        )
        with pytest.raises(Unauthenticated):
            await credentials.authenticate(ports, issued.token)
        assert not await ports.records.list(
            owner.tenant, RecordType.KEY, index_key=keys.by_agent_index(marco.id)
        )


async def test_a_key_created_during_a_demotion_has_no_admin_permission(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob, _ = await add_person(ports, owner, "bob", Role.ADMIN)
    spec = KeySpec("x", CredentialKind.PERSON, person=bob.id, scopes=frozenset({ADMIN}))
    done, _ = await race(
        people.patch(ports, owner, bob.id, {"role": Role.MEMBER}),
        keys.create(ports, owner, spec),
    )
    for issued in (item for item in done if isinstance(item, keys.IssuedKey)):
        assert (await credentials.authenticate(ports, issued.token)).permissions == frozenset()
