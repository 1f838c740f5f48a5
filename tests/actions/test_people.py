"""People come and go, and there is always an owner."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.actions.cast import founded, joined, later, rivals

from carrel.actions.accounts import audit as audits
from carrel.actions.accounts import credentials, keys, people
from carrel.actions.accounts import sign_in as signins
from carrel.actions.accounts.keys import KeySpec
from carrel.actions.accounts.people import Profile
from carrel.core.access import Actor, CredentialKind, Permission, Role
from carrel.core.errors import Conflict, Forbidden, NotFound, Unauthenticated, ValidationError
from carrel.core.store.record import RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
BOB = Profile("Bob", "bob@example.org", Role.MEMBER)


async def test_a_person_is_kept_as_they_were_introduced(world: Ports) -> None:
    _, owner = await founded(world)
    profile = Profile(
        "Zoë", "zoe@example.org", Role.ADMIN, "Librarian", "America/New_York", "they/them"
    )
    zoe = await people.create(world, owner, profile)
    assert zoe == await people.get(world, owner, zoe.id)
    assert Profile(**zoe.body) == profile
    assert await people.named(world, owner, "ZOE@example.org") == zoe


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
async def test_what_is_no_profile_is_refused(world: Ports, wrong: dict[str, Any]) -> None:
    _, owner = await founded(world)
    with pytest.raises(ValidationError):
        await people.create(world, owner, replace(BOB, **wrong))
    bob = await people.create(world, owner, BOB)
    with pytest.raises(ValidationError):
        await people.patch(world, owner, bob.id, wrong)


async def test_an_address_belongs_to_one_person_whatever_its_letter_case(world: Ports) -> None:
    _, owner = await founded(world)
    await people.create(world, owner, BOB)
    with pytest.raises(Conflict) as refused:
        await people.create(world, owner, replace(BOB, email="BOB@Example.org"))
    assert refused.value.details == {"email": "bob@example.org"}
    carol = await people.create(world, owner, replace(BOB, email="carol@example.org"))
    with pytest.raises(Conflict):
        await people.patch(world, owner, carol.id, {"email": "Bob@example.org"})
    await people.patch(world, owner, carol.id, {"email": "CAROL@example.org"})


async def test_an_address_with_a_slash_is_refused_to_another_all_the_same(world: Ports) -> None:
    _, owner = await founded(world)
    await people.create(world, owner, replace(BOB, email="a/message@example.org"))
    with pytest.raises(Conflict) as refused:
        await people.create(world, owner, replace(BOB, email="a/message@example.org"))
    assert refused.value.details == {"email": "a/message@example.org"}


async def test_an_address_may_be_used_again_once_it_is_free(world: Ports) -> None:
    _, owner = await founded(world)
    bob = await people.create(world, owner, BOB)
    await people.patch(world, owner, bob.id, {"email": "robert@example.org"})
    other = await people.create(world, owner, BOB)
    await people.delete(world, owner, other.id)
    await people.create(world, owner, BOB)


async def test_two_tenants_may_know_the_same_address_and_never_each_other(world: Ports) -> None:
    _, acme = await founded(world)
    _, globex = await founded(world, "globex")
    ours, theirs = await people.create(world, acme, BOB), await people.create(world, globex, BOB)
    for attempt in (
        people.get(world, acme, theirs.id),
        people.patch(world, acme, theirs.id, {"name": "Mine"}),
        people.delete(world, acme, theirs.id),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert ours.id in [person.id for person in (await people.listing(world, acme)).items]
    assert theirs.id not in [person.id for person in (await people.listing(world, acme)).items]


async def test_of_rivals_for_one_address_exactly_one_gets_it(world: Ports) -> None:
    _, owner = await founded(world)
    made, refused = await rivals(*(people.create(world, owner, BOB) for _ in range(4)))
    assert len(made) == 1
    assert {type(why) for why in refused} == {Conflict}


async def test_a_patch_changes_what_it_names_and_clears_with_none(world: Ports) -> None:
    _, owner = await founded(world)
    bob = await people.create(world, owner, replace(BOB, title="Cook", pronouns="he/him"))
    changed = await people.patch(world, owner, bob.id, {"title": None, "timezone": "UTC"})
    expected = replace(BOB, pronouns="he/him", timezone="UTC")
    assert Profile(**changed.body) == expected
    assert changed == await people.get(world, owner, bob.id)
    assert await people.patch(world, owner, bob.id, {}) == changed


async def test_rivals_who_patch_different_fields_lose_nothing(world: Ports) -> None:
    _, owner = await founded(world)
    bob = await people.create(world, owner, BOB)
    fields = {"title": "Cook", "timezone": "UTC", "pronouns": "he/him", "name": "Robert"}
    _, failed = await rivals(
        *(people.patch(world, owner, bob.id, {name: value}) for name, value in fields.items())
    )
    assert not failed
    assert fields.items() <= (await people.get(world, owner, bob.id)).body.items()


@pytest.mark.parametrize("id", ["per_0", "", "\x00", "a/b", "é", "\ud800", "x" * 5000])
async def test_what_could_be_no_id_is_as_missing_as_any(world: Ports, id: str) -> None:
    _, owner = await founded(world)
    with pytest.raises(NotFound):
        await people.get(world, owner, id)


async def test_pages_cover_everybody_once(world: Ports) -> None:
    made, owner = await founded(world)
    for number in range(6):
        await people.create(world, owner, replace(BOB, email=f"bob{number}@example.org"))
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        found = await people.listing(world, owner, cursor=cursor, limit=3)
        seen += [person.id for person in found.items]
        cursor = found.next
        assert len(seen) <= 7, "a page came again"
    assert len(seen) == 7
    assert seen == sorted(set(seen))
    assert made.owner.id in seen


async def test_the_last_owner_can_be_neither_demoted_nor_removed(world: Ports) -> None:
    made, owner = await founded(world)
    for attempt in (
        people.patch(world, owner, made.owner.id, {"role": Role.ADMIN}),
        people.delete(world, owner, made.owner.id),
    ):
        with pytest.raises(Conflict, match="last owner"):
            await attempt
    await joined(world, owner, "bob", Role.OWNER)
    await people.patch(world, owner, made.owner.id, {"role": Role.MEMBER})


async def test_of_two_owners_who_step_down_at_once_one_stays(world: Ports) -> None:
    made, ada = await founded(world)
    bob, bobs = await joined(world, ada, "bob", Role.OWNER)
    done, refused = await rivals(
        people.patch(world, ada, made.owner.id, {"role": Role.MEMBER}),
        people.patch(world, bobs, bob.id, {"role": Role.MEMBER}),
    )
    assert len(done) == 1
    assert [type(why) for why in refused] == [Conflict]
    assert await owners(world, ada) == 1


async def test_of_two_owners_who_demote_or_remove_each_other_one_stays(world: Ports) -> None:
    made, ada = await founded(world)
    bob, bobs = await joined(world, ada, "bob", Role.OWNER)
    done, refused = await rivals(
        people.patch(world, ada, bob.id, {"role": Role.MEMBER}),
        people.delete(world, bobs, made.owner.id),
    )
    assert len(done) == 1
    assert [type(why) for why in refused] == [Forbidden], "the loser is an owner no more"
    assert await owners(world, ada) == 1


async def owners(world: Ports, actor: Actor) -> int:
    found = await world.records.list(actor.tenant, RecordType.PERSON, link=people.OWNERS)
    assert {person.body["role"] for person in found} == {Role.OWNER}
    return len(found)


async def test_only_an_owner_makes_changes_or_removes_owners(world: Ports) -> None:
    made, ada = await founded(world)
    bob, admin = await joined(world, ada, "bob", Role.ADMIN)
    service = await keys.create(
        world, ada, KeySpec("robot", CredentialKind.SERVICE, scopes=frozenset(Permission))
    )
    robot = await credentials.authenticate(world, service.token)
    for caller in (admin, robot):
        for attempt in (
            people.create(world, caller, replace(BOB, email="eve@example.org", role=Role.OWNER)),
            people.patch(world, caller, bob.id, {"role": Role.OWNER}),
            people.patch(world, caller, made.owner.id, {"name": "Nobody"}),
            people.delete(world, caller, made.owner.id),
        ):
            with pytest.raises(Forbidden):
                await attempt
        await people.patch(world, caller, bob.id, {"title": f"Told by {caller.kind}"})


async def test_an_owner_who_was_demoted_since_makes_no_owners(world: Ports) -> None:
    made, ada = await founded(world)
    _, bobs = await joined(world, ada, "bob", Role.OWNER)
    await people.patch(world, bobs, made.owner.id, {"role": Role.ADMIN})
    with pytest.raises(Forbidden):
        await people.create(world, ada, replace(BOB, email="eve@example.org", role=Role.OWNER))


async def test_a_role_holds_from_the_next_request_on(world: Ports) -> None:
    _, ada = await founded(world)
    bob, before = await joined(world, ada, "bob")
    issued = await keys.create(world, ada, KeySpec("x", CredentialKind.PERSON, person=bob.id))
    await people.patch(world, ada, bob.id, {"role": Role.ADMIN})
    after = await credentials.authenticate(world, issued.token)
    assert Permission.TENANT_ADMIN in after.permissions - before.permissions


async def test_a_person_who_leaves_takes_their_keys_and_codes_along(world: Ports) -> None:
    _, ada = await founded(world)
    bob, _ = await joined(world, ada, "bob")
    issued = await keys.create(world, ada, KeySpec("second", CredentialKind.PERSON, person=bob.id))
    code = await signins.issue(world, ada.tenant, bob.id)
    await people.delete(world, ada, bob.id)
    [deed] = (await audits.listing(world, ada, limit=1)).items
    nouns = [subject.split("/")[0] for subject in deed.subjects]
    assert nouns == ["person", "key", "key", "code"], "all in one commit"
    with pytest.raises(Unauthenticated):
        await credentials.authenticate(world, issued.token)
    with pytest.raises(Unauthenticated):
        await signins.redeem(world, code)
    with pytest.raises(NotFound):
        await people.get(world, ada, bob.id)


async def test_no_key_outlives_a_person_who_leaves_while_it_is_made(world: Ports) -> None:
    _, ada = await founded(world)
    for turns in range(12):
        bob, _ = await joined(world, ada, f"bob{turns}")
        holding = KeySpec("late", CredentialKind.PERSON, person=bob.id)
        await rivals(
            people.delete(world, ada, bob.id),
            later(turns, keys.create(world, ada, holding)),
            later(turns, signins.issue(world, ada.tenant, bob.id)),
        )
        for noun in (RecordType.KEY, RecordType.CODE):
            assert not await world.records.list(ada.tenant, noun, link=people.of_person(bob.id))


async def test_rivals_who_remove_one_person_are_told_apart(world: Ports) -> None:
    _, ada = await founded(world)
    bob, _ = await joined(world, ada, "bob")
    done, refused = await rivals(*(people.delete(world, ada, bob.id) for _ in range(3)))
    assert len(done) == 1
    assert {type(why) for why in refused} == {NotFound}
