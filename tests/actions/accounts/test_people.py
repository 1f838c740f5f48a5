"""People come and go, and there is always an owner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.tenants import add_person, create_tenant, race, start_after_yields

from carrel.actions.accounts import audit, credentials, keys, people, sign_in
from carrel.actions.accounts.keys import KeySpec
from carrel.actions.accounts.people import Profile
from carrel.core.access import Actor, CredentialKind, Permission, Role
from carrel.core.errors import Conflict, Forbidden, NotFound, Unauthenticated, ValidationError
from carrel.core.store.record import RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
BOB = Profile("Bob", "bob@example.org", Role.MEMBER)


async def test_a_person_is_kept_as_they_were_introduced(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    profile = Profile(
        "Zoë", "zoe@example.org", Role.ADMIN, "Librarian", "America/New_York", "they/them"
    )
    zoe = await people.create(ports, owner, profile)
    assert zoe == await people.get(ports, owner, zoe.id)
    assert Profile(**zoe.body) == profile
    assert await people.get_by_email(ports, owner, "ZOE@example.org") == zoe


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "a\nb"},
        {"name": "a\n"},
        {"name": "a\x00"},
        {"name": "\udc80"},
        {"name": "a" * 201},
        {"title": ""},
        {"title": "a\tb"},
        {"pronouns": "a\x9fb"},
        {"email": "bob"},
        {"email": "bob@"},
        {"email": "b b@example.org"},
        {"email": "bob@example.org\n"},
        {"email": "a@b@c"},
        {"email": "a" * 250 + "@example.org"},
        {"email": "\ud800@example.org"},
        {"timezone": "Mars/Olympus"},
        {"timezone": "../../etc/passwd"},
        {"timezone": "/etc/localtime"},
        {"timezone": "localtime"},
        {"timezone": "America"},
        {"timezone": ""},
        {"timezone": "a\x00"},
        {"timezone": "U" * 5000},
    ],
)
async def test_what_is_no_profile_is_refused(ports: Ports, wrong: dict[str, Any]) -> None:
    _, owner = await create_tenant(ports)
    with pytest.raises(ValidationError):
        await people.create(ports, owner, replace(BOB, **wrong))
    bob = await people.create(ports, owner, BOB)
    with pytest.raises(ValidationError):
        await people.patch(ports, owner, bob.id, wrong)


async def test_an_address_belongs_to_one_person_whatever_its_letter_case(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await people.create(ports, owner, BOB)
    with pytest.raises(Conflict) as refused:
        await people.create(ports, owner, replace(BOB, email="BOB@Example.org"))
    assert refused.value.details == {"email": "bob@example.org"}
    carol = await people.create(ports, owner, replace(BOB, email="carol@example.org"))
    with pytest.raises(Conflict):
        await people.patch(ports, owner, carol.id, {"email": "Bob@example.org"})
    await people.patch(ports, owner, carol.id, {"email": "CAROL@example.org"})


async def test_an_address_with_a_slash_is_refused_to_another_all_the_same(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await people.create(ports, owner, replace(BOB, email="a/message@example.org"))
    with pytest.raises(Conflict) as refused:
        await people.create(ports, owner, replace(BOB, email="a/message@example.org"))
    assert refused.value.details == {"email": "a/message@example.org"}


async def test_an_address_may_be_used_again_once_it_is_free(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob = await people.create(ports, owner, BOB)
    await people.patch(ports, owner, bob.id, {"email": "robert@example.org"})
    other = await people.create(ports, owner, BOB)
    await people.delete(ports, owner, other.id)
    await people.create(ports, owner, BOB)


async def test_two_tenants_may_know_the_same_address_and_never_each_other(ports: Ports) -> None:
    _, acme = await create_tenant(ports)
    _, globex = await create_tenant(ports, "globex")
    ours, theirs = await people.create(ports, acme, BOB), await people.create(ports, globex, BOB)
    for attempt in (
        people.get(ports, acme, theirs.id),
        people.patch(ports, acme, theirs.id, {"name": "Mine"}),
        people.delete(ports, acme, theirs.id),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert ours.id in [person.id for person in (await people.list_people(ports, acme)).items]
    assert theirs.id not in [person.id for person in (await people.list_people(ports, acme)).items]


async def test_of_rivals_for_one_address_exactly_one_gets_it(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    made, refused = await race(*(people.create(ports, owner, BOB) for _ in range(4)))
    assert len(made) == 1
    assert {type(reason) for reason in refused} == {Conflict}


async def test_a_patch_changes_what_it_names_and_clears_with_none(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob = await people.create(ports, owner, replace(BOB, title="Cook", pronouns="he/him"))
    changed = await people.patch(ports, owner, bob.id, {"title": None, "timezone": "UTC"})
    expected = replace(BOB, pronouns="he/him", timezone="UTC")
    assert Profile(**changed.body) == expected
    assert changed == await people.get(ports, owner, bob.id)
    assert await people.patch(ports, owner, bob.id, {}) == changed


async def test_rivals_who_patch_different_fields_lose_nothing(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob = await people.create(ports, owner, BOB)
    fields = {"title": "Cook", "timezone": "UTC", "pronouns": "he/him", "name": "Robert"}
    _, failed = await race(
        *(people.patch(ports, owner, bob.id, {name: value}) for name, value in fields.items())
    )
    assert not failed
    assert fields.items() <= (await people.get(ports, owner, bob.id)).body.items()


@pytest.mark.parametrize("id", ["per_0", "", "\x00", "a/b", "é", "\ud800", "x" * 5000])
async def test_what_could_be_no_id_is_as_missing_as_any(ports: Ports, id: str) -> None:
    _, owner = await create_tenant(ports)
    with pytest.raises(NotFound):
        await people.get(ports, owner, id)


async def test_pages_cover_everybody_once(ports: Ports) -> None:
    made, owner = await create_tenant(ports)
    for number in range(6):
        await people.create(ports, owner, replace(BOB, email=f"bob{number}@example.org"))
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        found = await people.list_people(ports, owner, cursor=cursor, limit=3)
        seen += [person.id for person in found.items]
        cursor = found.next
        assert len(seen) <= 7, "a page came again"
    assert len(seen) == 7
    assert seen == sorted(set(seen))
    assert made.owner.id in seen


async def test_the_last_owner_can_be_neither_demoted_nor_removed(ports: Ports) -> None:
    made, owner = await create_tenant(ports)
    for attempt in (
        people.patch(ports, owner, made.owner.id, {"role": Role.ADMIN}),
        people.delete(ports, owner, made.owner.id),
    ):
        with pytest.raises(Conflict, match="a tenant must keep at least one owner"):
            await attempt
    await add_person(ports, owner, "bob", Role.OWNER)
    await people.patch(ports, owner, made.owner.id, {"role": Role.MEMBER})


async def test_of_two_owners_who_step_down_at_once_one_stays(ports: Ports) -> None:
    made, ada = await create_tenant(ports)
    bob, bobs = await add_person(ports, ada, "bob", Role.OWNER)
    done, refused = await race(
        people.patch(ports, ada, made.owner.id, {"role": Role.MEMBER}),
        people.patch(ports, bobs, bob.id, {"role": Role.MEMBER}),
    )
    assert len(done) == 1
    assert [type(reason) for reason in refused] == [Conflict]
    assert await owners(ports, ada) == 1


async def test_of_two_owners_who_demote_or_remove_each_other_one_stays(ports: Ports) -> None:
    made, ada = await create_tenant(ports)
    bob, bobs = await add_person(ports, ada, "bob", Role.OWNER)
    done, refused = await race(
        people.patch(ports, ada, bob.id, {"role": Role.MEMBER}),
        people.delete(ports, bobs, made.owner.id),
    )
    assert len(done) == 1
    assert [type(reason) for reason in refused] == [Forbidden], "the loser is an owner no more"
    assert await owners(ports, ada) == 1


async def owners(ports: Ports, actor: Actor) -> int:
    found = await ports.records.list(actor.tenant, RecordType.PERSON, index_key=people.OWNERS_INDEX)
    assert {person.body["role"] for person in found} == {Role.OWNER}
    return len(found)


async def test_only_an_owner_makes_changes_or_removes_owners(ports: Ports) -> None:
    made, ada = await create_tenant(ports)
    bob, admin = await add_person(ports, ada, "bob", Role.ADMIN)
    service = await keys.create(
        ports, ada, KeySpec("robot", CredentialKind.SERVICE, scopes=frozenset(Permission))
    )
    robot = await credentials.authenticate(ports, service.token)
    for caller in (admin, robot):
        for attempt in (
            people.create(ports, caller, replace(BOB, email="eve@example.org", role=Role.OWNER)),
            people.patch(ports, caller, bob.id, {"role": Role.OWNER}),
            people.patch(ports, caller, made.owner.id, {"name": "Nobody"}),
            people.delete(ports, caller, made.owner.id),
        ):
            with pytest.raises(Forbidden):
                await attempt
        await people.patch(ports, caller, bob.id, {"title": f"Told by {caller.kind}"})


async def test_an_owner_who_was_demoted_since_makes_no_owners(ports: Ports) -> None:
    made, ada = await create_tenant(ports)
    _, bobs = await add_person(ports, ada, "bob", Role.OWNER)
    await people.patch(ports, bobs, made.owner.id, {"role": Role.ADMIN})
    with pytest.raises(Forbidden):
        await people.create(ports, ada, replace(BOB, email="eve@example.org", role=Role.OWNER))


async def test_a_role_holds_from_the_next_request_on(ports: Ports) -> None:
    _, ada = await create_tenant(ports)
    bob, before = await add_person(ports, ada, "bob")
    issued = await keys.create(ports, ada, KeySpec("x", CredentialKind.PERSON, person=bob.id))
    await people.patch(ports, ada, bob.id, {"role": Role.ADMIN})
    after = await credentials.authenticate(ports, issued.token)
    assert Permission.TENANT_ADMIN in after.permissions - before.permissions


async def test_a_person_who_leaves_takes_their_keys_and_codes_along(ports: Ports) -> None:
    _, ada = await create_tenant(ports)
    bob, _ = await add_person(ports, ada, "bob")
    issued = await keys.create(ports, ada, KeySpec("second", CredentialKind.PERSON, person=bob.id))
    code = await sign_in.issue_code(ports, ada.tenant, bob.id)
    await people.delete(ports, ada, bob.id)
    [entry] = (await audit.list_audit_entries(ports, ada, limit=1)).items
    record_types = [subject.split("/")[0] for subject in entry.subjects]
    assert record_types == ["person", "key", "key", "code"], "all in one commit"
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(ports, issued.token)
    with pytest.raises(Unauthenticated):
        await sign_in.redeem_code(ports, code)
    with pytest.raises(NotFound):
        await people.get(ports, ada, bob.id)


async def test_no_key_outlives_a_person_who_leaves_while_it_is_made(ports: Ports) -> None:
    _, ada = await create_tenant(ports)
    for turns in range(12):
        bob, _ = await add_person(ports, ada, f"bob{turns}")
        holding = KeySpec("late", CredentialKind.PERSON, person=bob.id)
        await race(
            people.delete(ports, ada, bob.id),
            start_after_yields(turns, keys.create(ports, ada, holding)),
            start_after_yields(turns, sign_in.issue_code(ports, ada.tenant, bob.id)),
        )
        for record_type in (RecordType.KEY, RecordType.CODE):
            assert not await ports.records.list(
                ada.tenant, record_type, index_key=people.by_person_index(bob.id)
            )


async def test_rivals_who_remove_one_person_are_told_apart(ports: Ports) -> None:
    _, ada = await create_tenant(ports)
    bob, _ = await add_person(ports, ada, "bob")
    done, refused = await race(*(people.delete(ports, ada, bob.id) for _ in range(3)))
    assert len(done) == 1
    assert {type(reason) for reason in refused} == {NotFound}
