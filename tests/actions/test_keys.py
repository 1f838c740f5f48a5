"""Keys open what they were made for, are worth no more than who made them, and can be revoked."""

from __future__ import annotations

from typing import Any

import pytest
from tests.actions.cast import founded, joined, later, rivals
from tests.worlds import travel

from carrel.actions.accounts import credentials, keys, people
from carrel.actions.accounts.keys import KeySpec
from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.overlay import stacks
from carrel.core.access import ALL, MACHINE, Actor, CredentialKind, Permission, Role
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


async def opened(world: Ports, maker: Actor, kind: CredentialKind, **more: Any) -> Actor:
    """Who one is with a key that this maker makes."""
    issued = await keys.create(world, maker, KeySpec("a key", kind, **more))
    return await credentials.authenticate(world, issued.token)


async def test_a_persons_key_is_the_callers_own_where_nobody_is_named(world: Ports) -> None:
    made, owner = await founded(world)
    me = await opened(world, owner, CredentialKind.PERSON)
    assert (me.person, me.role, me.permissions, me.bound) == (
        made.owner.id,
        Role.OWNER,
        ALL,
        False,
    )


async def test_a_key_is_stored_as_a_hash_and_recognised_by_its_beginning(world: Ports) -> None:
    _, owner = await founded(world)
    issued = await keys.create(world, owner, KeySpec("laptop", CredentialKind.PERSON))
    kept = await keys.get(world, owner, issued.key.id)
    assert kept == issued.key
    assert kept.body["prefix"] == issued.token[:12]
    assert issued.token not in str(kept)
    assert kept.body["hash"] == credentials.hash_of(issued.token)


async def test_a_service_key_does_a_machines_work_unless_it_is_told_otherwise(world: Ports) -> None:
    _, owner = await founded(world)
    plain = await opened(world, owner, CredentialKind.SERVICE)
    assert (plain.permissions, plain.person, plain.role) == (MACHINE, None, None)
    narrow = await opened(world, owner, CredentialKind.SERVICE, scopes=frozenset({READ, ADMIN}))
    assert narrow.permissions == {READ, ADMIN}


async def test_a_key_bound_to_a_workspace_has_no_say_in_the_tenant(world: Ports) -> None:
    _, owner = await founded(world)
    for kind in (CredentialKind.PERSON, CredentialKind.SERVICE):
        bound = await opened(world, owner, kind, workspace="ws_1")
        assert bound.scope == Scope(owner.tenant, ScopeKind.WORKSPACE, "ws_1")
        assert bound.permissions == MACHINE
        for beyond in TENANT:
            with pytest.raises(ValidationError):
                await opened(world, owner, kind, workspace="ws_1", scopes=frozenset({beyond}))


async def test_an_agents_key_works_on_its_stack(world: Ports) -> None:
    _, owner = await founded(world)
    marco = await agents.create(world, owner, NewAgent("marco", "Marco"))
    for name in (marco.id, "marco"):
        actor = await opened(world, owner, CredentialKind.AGENT, agent=name)
        assert (actor.agent, actor.permissions) == (marco.id, MACHINE)
        assert (await stacks.default_stack(world, actor))[0] == Scope(
            owner.tenant, ScopeKind.AGENT, marco.id
        )


@pytest.mark.parametrize(
    "wrong",
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
async def test_what_does_not_go_together_is_refused(world: Ports, wrong: dict[str, Any]) -> None:
    _, owner = await founded(world)
    await agents.create(world, owner, NewAgent("marco", "Marco"))
    with pytest.raises(ValidationError):
        await keys.create(world, owner, KeySpec(**{"name": "a key", **wrong}))


async def test_a_key_needs_a_holder_who_is_there_and_of_this_tenant(world: Ports) -> None:
    _, owner = await founded(world)
    made, other = await founded(world, "globex")
    theirs = await agents.create(world, other, NewAgent("marco", "Marco"))
    for wrong in (
        KeySpec("x", CredentialKind.AGENT, agent="nobody"),
        KeySpec("x", CredentialKind.AGENT, agent=theirs.id),
        KeySpec("x", CredentialKind.AGENT, agent="marco"),
        KeySpec("x", CredentialKind.AGENT, agent="a\x00"),
        KeySpec("x", CredentialKind.PERSON, person="per_0"),
        KeySpec("x", CredentialKind.PERSON, person=made.owner.id),
    ):
        with pytest.raises(NotFound):
            await keys.create(world, owner, wrong)


async def test_a_service_names_the_person_it_makes_a_key_for(world: Ports) -> None:
    _, owner = await founded(world)
    bob, _ = await joined(world, owner, "bob")
    robot = await opened(world, owner, CredentialKind.SERVICE, scopes=ALL)
    with pytest.raises(ValidationError):
        await opened(world, robot, CredentialKind.PERSON)
    assert (await opened(world, robot, CredentialKind.PERSON, person=bob.id)).person == bob.id


async def test_a_member_makes_keys_for_themselves_and_nobody_else(world: Ports) -> None:
    made, owner = await founded(world)
    _, member = await joined(world, owner, "bob")
    await agents.create(world, owner, NewAgent("marco", "Marco"))
    mine = await opened(world, member, CredentialKind.PERSON)
    assert (mine.person, mine.permissions) == (member.person, member.permissions)
    for more in (
        KeySpec("x", CredentialKind.PERSON, person=made.owner.id),
        KeySpec("x", CredentialKind.PERSON, person="per_0"),
        KeySpec("x", CredentialKind.SERVICE),
        KeySpec("x", CredentialKind.AGENT, agent="marco"),
        KeySpec("x", CredentialKind.PERSON, scopes=frozenset({ADMIN})),
    ):
        with pytest.raises(Forbidden):
            await keys.create(world, member, more)


async def test_a_key_is_never_worth_more_than_its_maker(world: Ports) -> None:
    _, owner = await founded(world)
    bob, _ = await joined(world, owner, "bob")
    narrow = await opened(world, owner, CredentialKind.SERVICE, scopes=frozenset({ADMIN, READ}))
    for more in (
        KeySpec("x", CredentialKind.SERVICE),
        KeySpec("x", CredentialKind.SERVICE, scopes=frozenset({READ, WRITE})),
        KeySpec("x", CredentialKind.PERSON, person=bob.id),
        KeySpec("x", CredentialKind.SERVICE, workspace="ws_1"),
    ):
        with pytest.raises(Forbidden):
            await keys.create(world, narrow, more)
    assert (
        await opened(world, narrow, CredentialKind.SERVICE, scopes=frozenset({READ}))
    ).permissions == {READ}
    own = await opened(
        world, owner, CredentialKind.PERSON, scopes=frozenset({Permission.TENANT_READ})
    )
    with pytest.raises(Forbidden):
        await opened(world, own, CredentialKind.PERSON)


async def test_an_admin_cannot_become_owner_by_a_key(world: Ports) -> None:
    made, owner = await founded(world)
    _, admin = await joined(world, owner, "bob", Role.ADMIN)
    robot = await opened(world, owner, CredentialKind.SERVICE, scopes=ALL)
    for caller in (admin, robot):
        with pytest.raises(Forbidden):
            await opened(world, caller, CredentialKind.PERSON, person=made.owner.id)
    carol, _ = await joined(world, owner, "carol", Role.OWNER)
    assert (await opened(world, owner, CredentialKind.PERSON, person=carol.id)).role is Role.OWNER


async def test_a_bound_credential_makes_no_keys(world: Ports) -> None:
    _, owner = await founded(world)
    await agents.create(world, owner, NewAgent("marco", "Marco"))
    for bound in (
        await opened(world, owner, CredentialKind.PERSON, workspace="ws_1"),
        await opened(world, owner, CredentialKind.AGENT, agent="marco"),
    ):
        with pytest.raises(Forbidden):
            await opened(world, bound, CredentialKind.PERSON, workspace="ws_1")


async def test_a_key_is_good_until_it_expires(world: Ports) -> None:
    _, owner = await founded(world)
    hour = 3_600_000
    holding = KeySpec("short", CredentialKind.SERVICE, expires=world.clock.now() + hour)
    issued = await keys.create(world, owner, holding)
    await credentials.authenticate(world, issued.token)
    travel(world, hour)
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(world, issued.token)


async def test_a_revoked_key_opens_nothing_from_the_next_request_on(world: Ports) -> None:
    _, owner = await founded(world)
    issued = await keys.create(world, owner, KeySpec("lost", CredentialKind.SERVICE))
    await credentials.authenticate(world, issued.token)
    done, refused = await rivals(*(keys.revoke(world, owner, issued.key.id) for _ in range(3)))
    assert len(done) == 1
    assert {type(why) for why in refused} == {NotFound}
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(world, issued.token)
    with pytest.raises(NotFound):
        await keys.get(world, owner, issued.key.id)


async def test_everybody_sees_and_revokes_their_own_keys_and_admins_all(world: Ports) -> None:
    _, owner = await founded(world)
    _, member = await joined(world, owner, "bob")
    own = await keys.create(world, member, KeySpec("mine", CredentialKind.PERSON))
    other = await keys.create(world, owner, KeySpec("not mine", CredentialKind.SERVICE))
    seen = [key.id for key in (await keys.listing(world, member)).items]
    assert seen == [member.key, own.key.id]
    assert len((await keys.listing(world, owner)).items) == 4
    for attempt in (keys.get, keys.revoke):
        with pytest.raises(NotFound):
            await attempt(world, member, other.key.id)
    await keys.revoke(world, member, own.key.id)


async def test_a_service_without_tenant_admin_sees_itself_alone(world: Ports) -> None:
    _, owner = await founded(world)
    robot = await opened(
        world, owner, CredentialKind.SERVICE, scopes=frozenset({Permission.TENANT_READ})
    )
    assert [key.id for key in (await keys.listing(world, robot)).items] == [robot.key]
    assert (await keys.listing(world, robot, cursor=robot.key)).items == ()
    assert (await keys.get(world, robot, robot.key)).id == robot.key


async def test_keys_of_another_tenant_are_not_there(world: Ports) -> None:
    _, owner = await founded(world)
    _, other = await founded(world, "globex")
    for attempt in (keys.get, keys.revoke):
        with pytest.raises(NotFound):
            await attempt(world, owner, other.key)
    assert [key.id for key in (await keys.listing(world, owner)).items] == [owner.key]


async def test_when_a_key_was_last_used_is_the_later_of_noted_and_written(world: Ports) -> None:
    _, owner = await founded(world)
    issued = await keys.create(world, owner, KeySpec("new", CredentialKind.SERVICE))
    both = (await keys.get(world, owner, owner.key), issued.key)
    world.marks.clear()
    assert await keys.last_used(world, both) == (None, None)
    await world.records.used({owner.key: 5000, issued.key.id: 7000})
    world.marks.update({owner.key: 6000, issued.key.id: 6000})
    assert await keys.last_used(world, both) == (6000, 7000)
    await credentials.authenticate(world, issued.token)
    assert (await keys.last_used(world, both))[1] == world.marks[issued.key.id] > 7000


async def test_an_agents_keys_go_with_it_even_one_that_is_just_being_made(world: Ports) -> None:
    _, owner = await founded(world)
    for turns in range(10):
        marco = await agents.create(world, owner, NewAgent("marco", "Marco"))
        issued = await keys.create(world, owner, KeySpec("x", CredentialKind.AGENT, agent="marco"))
        late = KeySpec("late", CredentialKind.AGENT, agent=marco.id)
        await rivals(
            agents.delete(world, owner, marco.id),
            later(turns, keys.create(world, owner, late)),
        )
        with pytest.raises(Unauthenticated):
            await credentials.authenticate(world, issued.token)
        assert not await world.records.list(
            owner.tenant, RecordType.KEY, link=keys.agent_keys_index(marco.id)
        )


async def test_a_key_is_not_worth_a_role_that_was_lost_while_it_was_made(world: Ports) -> None:
    _, owner = await founded(world)
    bob, _ = await joined(world, owner, "bob", Role.ADMIN)
    holding = KeySpec("x", CredentialKind.PERSON, person=bob.id, scopes=frozenset({ADMIN}))
    done, _ = await rivals(
        people.patch(world, owner, bob.id, {"role": Role.MEMBER}),
        keys.create(world, owner, holding),
    )
    for issued in (one for one in done if isinstance(one, keys.IssuedKey)):
        assert (await credentials.authenticate(world, issued.token)).permissions == frozenset()
