"""Invitations: an admin's code, exchanged by the person, told by the audit."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.stores import advance_clock
from tests.support.tenants import add_person, create_tenant

from carrel.actions.accounts import audit, credentials, invitations, keys, people, sign_in
from carrel.actions.accounts.keys import KeySpec
from carrel.core.access import ALL_PERMISSIONS, Actor, CredentialKind, Permission, Role
from carrel.core.accounts import PersonRecord, key_from_record
from carrel.core.errors import Forbidden, NotFound, Unauthenticated
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
HOUR = 3_600_000
DAY = 24 * HOUR


async def owners_key(ports: Ports, owner: Actor, kind: CredentialKind, **options: Any) -> Actor:
    issued = await keys.create(ports, owner, KeySpec("a key", kind, **options))
    return await credentials.authenticate(ports, issued.token)


async def exchange(ports: Ports, code: str) -> tuple[Actor, int]:
    """Exchange a code; return the person as a caller and the end of the key."""
    signed_in = await sign_in.redeem_code(ports, code)
    actor = await credentials.authenticate(ports, signed_in.token)
    return actor, key_from_record(await keys.get(ports, actor, actor.key)).expires


async def test_a_code_is_exchanged_once_for_a_key_of_30_days(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob, _ = await add_person(ports, owner, "bob", Role.ADMIN)
    invitation = await invitations.invite(ports, owner, bob.id)
    person, expires = await exchange(ports, invitation.code)
    assert (person.person, person.role, person.kind) == (bob.id, Role.ADMIN, CredentialKind.PERSON)
    assert expires - ports.clock.now() == pytest.approx(30 * DAY, abs=60_000)
    with pytest.raises(Unauthenticated):
        await exchange(ports, invitation.code)


async def test_the_audit_names_who_invited_and_who_exchanged(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    bob, _ = await add_person(ports, owner, "bob")
    invitation = await invitations.invite(ports, owner, bob.id)
    person, _ = await exchange(ports, invitation.code)
    exchanged, invited = (await audit.list_audit_entries(ports, owner, limit=2)).items
    assert (invited.author, invited.author_name, invited.reason) == (
        created.owner.id,
        "Ada",
        "invite a person",
    )
    assert invited.key is not None
    assert (invited.key.id, invited.key.name) == (owner.key, "owner")
    assert f"person/{bob.id}" in invited.subjects
    assert (exchanged.author, exchanged.author_name) == (bob.id, "Bob")
    assert exchanged.reason == f"sign in, invited by {created.owner.id}"
    assert exchanged.key is not None
    assert (exchanged.key.id, exchanged.key.name) == (person.key, "web sign-in")
    [code] = [subject for subject in invited.subjects if subject.startswith("code/")]
    assert code in exchanged.subjects, "the two entries name the same code"


async def test_only_a_person_who_is_owner_or_admin_invites(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    bob, admin = await add_person(ports, owner, "bob", Role.ADMIN)
    carol, member = await add_person(ports, owner, "carol")
    robot = await owners_key(ports, owner, CredentialKind.SERVICE, scopes=ALL_PERMISSIONS)
    bound = await owners_key(ports, owner, CredentialKind.PERSON, workspace="default")
    for caller in (member, robot, bound):
        with pytest.raises(Forbidden):
            await invitations.invite(ports, caller, carol.id)
    with pytest.raises(Forbidden, match="only an owner may invite an owner"):
        await invitations.invite(ports, admin, created.owner.id)
    for missing in ("per_0", "a\x00"):
        with pytest.raises(NotFound):
            await invitations.invite(ports, admin, missing)
    assert (await invitations.invite(ports, admin, bob.id)).code


async def test_an_invited_key_is_worth_no_more_than_the_inviters(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob, _ = await add_person(ports, owner, "bob")
    end = ports.clock.now() + HOUR
    narrow = frozenset({Permission.TENANT_ADMIN, Permission.TENANT_READ})
    for scopes in (narrow, ALL_PERMISSIONS):
        caller = await owners_key(ports, owner, CredentialKind.PERSON, scopes=scopes, expires=end)
        if scopes is narrow:
            with pytest.raises(Forbidden, match="does not carry"):
                await invitations.invite(ports, caller, bob.id)
            continue
        invitation = await invitations.invite(ports, caller, bob.id)
        assert invitation.expires == end
        person, expires = await exchange(ports, invitation.code)
        assert expires == end
        await people.patch(ports, owner, bob.id, {"role": Role.ADMIN})
        now_admin = await credentials.reload_actor(ports, person)
        assert Permission.TENANT_ADMIN not in now_admin.permissions


async def test_a_code_ends_after_a_day_and_with_the_next_invitation(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob, _ = await add_person(ports, owner, "bob")
    first = await invitations.invite(ports, owner, bob.id)
    second = await invitations.invite(ports, owner, bob.id)
    operators = await sign_in.issue_code(ports, owner.tenant, bob.id)
    with pytest.raises(Unauthenticated):
        await exchange(ports, first.code)
    advance_clock(ports, DAY)
    with pytest.raises(Unauthenticated):
        await exchange(ports, second.code)
    with pytest.raises(Unauthenticated):
        await exchange(ports, operators)


@pytest.mark.parametrize("change", ["promoted", "demoted", "removed"])
async def test_a_code_ends_when_its_inviter_may_no_longer_invite(ports: Ports, change: str) -> None:
    _, owner = await create_tenant(ports)
    bob, _ = await add_person(ports, owner, "bob")
    carol, admin = await add_person(ports, owner, "carol", Role.ADMIN)
    invitation = await invitations.invite(ports, admin, bob.id)
    if change == "promoted":
        await people.patch(ports, owner, bob.id, {"role": Role.OWNER})
    elif change == "demoted":
        await people.patch(ports, owner, carol.id, {"role": Role.MEMBER})
    else:
        await people.delete(ports, owner, carol.id)
    with pytest.raises(Unauthenticated):
        await exchange(ports, invitation.code)


async def test_a_service_neither_makes_admins_nor_redirects_a_persons_sign_in(ports: Ports) -> None:
    """An issuer's tokens name a person by e-mail address: changing it is a way to sign in."""
    _, owner = await create_tenant(ports)
    bob, admin = await add_person(ports, owner, "bob", Role.ADMIN)
    carol, member = await add_person(ports, owner, "carol")
    robot = await owners_key(ports, owner, CredentialKind.SERVICE, scopes=ALL_PERMISSIONS)
    mallory = PersonRecord("Mallory", "mallory@example.com", Role.ADMIN)
    for person in (bob, carol):
        with pytest.raises(Forbidden, match="e-mail"):
            await people.patch(ports, robot, person.id, {"email": "mallory@example.com"})
    with pytest.raises(Forbidden, match="make a person an admin"):
        await people.patch(ports, robot, carol.id, {"role": Role.ADMIN})
    with pytest.raises(Forbidden, match="make a person an admin"):
        await people.create(ports, robot, mallory)
    await people.patch(ports, robot, carol.id, {"title": "Tester", "role": Role.MEMBER})
    await people.create(ports, robot, replace(mallory, role=Role.MEMBER))
    await people.patch(ports, member, carol.id, {"email": "carol@example.org"})
    await people.patch(ports, admin, carol.id, {"email": "c@example.org", "role": Role.ADMIN})
