"""People are added, changed and removed, and a tenant always has an owner."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.tenants import add_person, create_tenant, race, start_after_yields

from carrel.actions.accounts import audit, credentials, keys, people, sign_in
from carrel.actions.accounts.keys import KeySpec
from carrel.core.access import Actor, CredentialKind, Permission, Role
from carrel.core.accounts import PersonRecord
from carrel.core.errors import Conflict, Forbidden, NotFound, Unauthenticated, ValidationError
from carrel.core.store.record import RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
BOB = PersonRecord("Bob", "bob@example.org", Role.MEMBER)


async def test_a_person_is_stored_with_the_profile(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    profile = PersonRecord(
        "Zoë", "zoe@example.org", Role.ADMIN, "Librarian", "America/New_York", "they/them"
    )
    zoe = await people.create(ports, owner, profile)
    assert zoe == await people.get(ports, owner, zoe.id)
    assert PersonRecord(**zoe.body) == profile
    assert await people.get_by_email(ports, owner, "ZOE@example.org") == zoe


@pytest.mark.parametrize(
    "invalid",
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
async def test_an_invalid_profile_is_refused(ports: Ports, invalid: dict[str, Any]) -> None:
    _, owner = await create_tenant(ports)
    with pytest.raises(ValidationError):
        await people.create(ports, owner, replace(BOB, **invalid))
    bob = await people.create(ports, owner, BOB)
    with pytest.raises(ValidationError):
        await people.patch(ports, owner, bob.id, invalid)


async def test_an_email_belongs_to_one_person_in_any_letter_case(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await people.create(ports, owner, BOB)
    with pytest.raises(Conflict) as refused:
        await people.create(ports, owner, replace(BOB, email="BOB@Example.org"))
    assert refused.value.details == {"email": "bob@example.org"}
    carol = await people.create(ports, owner, replace(BOB, email="carol@example.org"))
    with pytest.raises(Conflict):
        await people.patch(ports, owner, carol.id, {"email": "Bob@example.org"})
    await people.patch(ports, owner, carol.id, {"email": "CAROL@example.org"})


async def test_an_email_with_a_slash_is_refused_to_another_person(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await people.create(ports, owner, replace(BOB, email="a/message@example.org"))
    with pytest.raises(Conflict) as refused:
        await people.create(ports, owner, replace(BOB, email="a/message@example.org"))
    assert refused.value.details == {"email": "a/message@example.org"}


async def test_an_email_can_be_used_again_once_it_is_free(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob = await people.create(ports, owner, BOB)
    await people.patch(ports, owner, bob.id, {"email": "robert@example.org"})
    other = await people.create(ports, owner, BOB)
    await people.delete(ports, owner, other.id)
    await people.create(ports, owner, BOB)


async def test_two_tenants_may_have_the_same_email_separately(ports: Ports) -> None:
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


async def test_of_concurrent_creates_with_one_email_exactly_one_succeeds(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    created, refused = await race(*(people.create(ports, owner, BOB) for _ in range(4)))
    assert len(created) == 1
    assert {type(reason) for reason in refused} == {Conflict}


async def test_a_patch_changes_its_fields_and_clears_with_none(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob = await people.create(ports, owner, replace(BOB, title="Cook", pronouns="he/him"))
    changed = await people.patch(ports, owner, bob.id, {"title": None, "timezone": "UTC"})
    expected = replace(BOB, pronouns="he/him", timezone="UTC")
    assert PersonRecord(**changed.body) == expected
    assert changed == await people.get(ports, owner, bob.id)
    assert await people.patch(ports, owner, bob.id, {}) == changed


async def test_concurrent_patches_of_different_fields_all_apply(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob = await people.create(ports, owner, BOB)
    fields = {"title": "Cook", "timezone": "UTC", "pronouns": "he/him", "name": "Robert"}
    _, failed = await race(
        *(people.patch(ports, owner, bob.id, {name: value}) for name, value in fields.items())
    )
    assert not failed
    assert fields.items() <= (await people.get(ports, owner, bob.id)).body.items()


@pytest.mark.parametrize("id", ["per_0", "", "\x00", "a/b", "é", "\ud800", "x" * 5000])
async def test_an_invalid_id_is_not_found(ports: Ports, id: str) -> None:
    _, owner = await create_tenant(ports)
    with pytest.raises(NotFound):
        await people.get(ports, owner, id)


async def test_pages_list_everyone_once(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    for number in range(6):
        await people.create(ports, owner, replace(BOB, email=f"bob{number}@example.org"))
    ids: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await people.list_people(ports, owner, cursor=cursor, limit=3)
        ids += [person.id for person in page.items]
        cursor = page.next
        assert len(ids) <= 7, "a page was repeated"
    assert len(ids) == 7
    assert ids == sorted(set(ids))
    assert created.owner.id in ids


async def test_the_last_owner_can_be_neither_demoted_nor_removed(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    for attempt in (
        people.patch(ports, owner, created.owner.id, {"role": Role.ADMIN}),
        people.delete(ports, owner, created.owner.id),
    ):
        with pytest.raises(Conflict, match="a tenant must keep at least one owner"):
            await attempt
    await add_person(ports, owner, "bob", Role.OWNER)
    await people.patch(ports, owner, created.owner.id, {"role": Role.MEMBER})


async def test_of_two_owners_stepping_down_at_once_one_stays(ports: Ports) -> None:
    created, ada = await create_tenant(ports)
    bob, bob_actor = await add_person(ports, ada, "bob", Role.OWNER)
    done, refused = await race(
        people.patch(ports, ada, created.owner.id, {"role": Role.MEMBER}),
        people.patch(ports, bob_actor, bob.id, {"role": Role.MEMBER}),
    )
    assert len(done) == 1
    assert [type(reason) for reason in refused] == [Conflict]
    assert await count_owners(ports, ada) == 1


async def test_of_two_owners_demoting_and_removing_each_other_one_stays(ports: Ports) -> None:
    created, ada = await create_tenant(ports)
    bob, bob_actor = await add_person(ports, ada, "bob", Role.OWNER)
    done, refused = await race(
        people.patch(ports, ada, bob.id, {"role": Role.MEMBER}),
        people.delete(ports, bob_actor, created.owner.id),
    )
    assert len(done) == 1
    assert [type(reason) for reason in refused] == [Forbidden], "the loser is no longer an owner"
    assert await count_owners(ports, ada) == 1


async def count_owners(ports: Ports, actor: Actor) -> int:
    owner_records = await ports.records.list(
        actor.tenant, RecordType.PERSON, index_key=people.OWNERS_INDEX
    )
    assert {person.body["role"] for person in owner_records} == {Role.OWNER}
    return len(owner_records)


async def test_only_an_owner_creates_changes_or_removes_owners(ports: Ports) -> None:
    created, ada = await create_tenant(ports)
    bob, admin = await add_person(ports, ada, "bob", Role.ADMIN)
    service = await keys.create(
        ports, ada, KeySpec("robot", CredentialKind.SERVICE, scopes=frozenset(Permission))
    )
    robot = await credentials.authenticate(ports, service.token)
    for caller in (admin, robot):
        for attempt in (
            people.create(ports, caller, replace(BOB, email="eve@example.org", role=Role.OWNER)),
            people.patch(ports, caller, bob.id, {"role": Role.OWNER}),
            people.patch(ports, caller, created.owner.id, {"name": "Changed"}),
            people.delete(ports, caller, created.owner.id),
        ):
            with pytest.raises(Forbidden):
                await attempt
        await people.patch(ports, caller, bob.id, {"title": f"Changed by {caller.kind}"})


async def test_a_demoted_owner_creates_no_owners(ports: Ports) -> None:
    created, ada = await create_tenant(ports)
    _, bob_actor = await add_person(ports, ada, "bob", Role.OWNER)
    await people.patch(ports, bob_actor, created.owner.id, {"role": Role.ADMIN})
    with pytest.raises(Forbidden):
        await people.create(ports, ada, replace(BOB, email="eve@example.org", role=Role.OWNER))


async def test_a_role_change_applies_from_the_next_request(ports: Ports) -> None:
    _, ada = await create_tenant(ports)
    bob, before = await add_person(ports, ada, "bob")
    issued = await keys.create(ports, before, KeySpec("x", CredentialKind.PERSON))
    await people.patch(ports, ada, bob.id, {"role": Role.ADMIN})
    after = await credentials.authenticate(ports, issued.token)
    assert Permission.TENANT_ADMIN in after.permissions - before.permissions


async def test_deleting_a_person_deletes_their_keys_and_codes(ports: Ports) -> None:
    _, ada = await create_tenant(ports)
    bob, his = await add_person(ports, ada, "bob")
    issued = await keys.create(ports, his, KeySpec("second", CredentialKind.PERSON))
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


async def test_no_key_survives_a_person_deleted_while_it_is_created(ports: Ports) -> None:
    _, ada = await create_tenant(ports)
    for turns in range(12):
        bob, his = await add_person(ports, ada, f"bob{turns}")
        spec = KeySpec("late", CredentialKind.PERSON, person=bob.id)
        await race(
            people.delete(ports, ada, bob.id),
            start_after_yields(turns, keys.create(ports, his, spec)),
            start_after_yields(turns, sign_in.issue_code(ports, ada.tenant, bob.id)),
        )
        for record_type in (RecordType.KEY, RecordType.CODE):
            assert not await ports.records.list(
                ada.tenant, record_type, index_key=people.by_person_index(bob.id)
            )


async def test_of_concurrent_deletes_of_a_person_one_succeeds(ports: Ports) -> None:
    _, ada = await create_tenant(ports)
    bob, _ = await add_person(ports, ada, "bob")
    done, refused = await race(*(people.delete(ports, ada, bob.id) for _ in range(3)))
    assert len(done) == 1
    assert {type(reason) for reason in refused} == {NotFound}
