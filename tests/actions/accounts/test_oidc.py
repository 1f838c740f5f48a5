"""A token of an issuer makes its bearer the person they are here, and nobody else."""

from __future__ import annotations

from dataclasses import dataclass, field
from dataclasses import replace as other
from pathlib import Path as File
from typing import Any

import pytest
from tests.support.tenants import add_person, create_tenant, race

from carrel.actions.accounts import audit, credentials, people
from carrel.actions.accounts.oidc import AMBIGUOUS_EMAIL, authenticate_person, is_jwt
from carrel.actions.accounts.people import Profile
from carrel.actions.files import files
from carrel.core.access import MEMBER_PERMISSIONS, CredentialKind, Role
from carrel.core.errors import Unauthenticated
from carrel.core.identifiers import Path
from carrel.core.store.record import RecordType
from carrel.ports import Ports
from carrel.settings import SettingsError, load
from carrel.wiring.oidc import create_issuer

pytestmark = pytest.mark.anyio
ISSUER = "https://issuer.example"


@dataclass(frozen=True)
class Bearer:
    sub: str
    email: str | None = None
    email_verified: bool = True


@dataclass
class Known:
    """An issuer that knows its tokens by heart."""

    bearers: dict[str, Bearer]
    name: str = ISSUER
    down: bool = False
    asked: list[str] = field(default_factory=list)

    async def claims(self, token: str) -> Bearer:
        self.asked.append(token)
        if self.down:
            raise ConnectionError
        if token not in self.bearers:
            raise Unauthenticated(credentials.INVALID_CREDENTIAL)
        return self.bearers[token]


def of(*bearers: Bearer) -> Known:
    return Known({bearer.sub: bearer for bearer in bearers})


ADA = Bearer("ada-1", "ada@acme.example")
BARE = other(ADA, email=None)


async def refused(
    ports: Ports, bearer: Bearer, reason: str = credentials.INVALID_CREDENTIAL
) -> None:
    with pytest.raises(Unauthenticated) as refusal:
        await authenticate_person(ports, of(bearer), bearer.sub)
    assert str(refusal.value) == reason


async def test_a_verified_address_makes_the_bearer_that_person(ports: Ports) -> None:
    made, owner = await create_tenant(ports)
    actor = await authenticate_person(ports, of(ADA), ADA.sub)
    assert (actor.tenant, actor.person, actor.name) == (owner.tenant, made.owner.id, made.owner.id)
    assert (actor.role, actor.kind) == (Role.OWNER, CredentialKind.PERSON)
    assert actor.permissions == owner.permissions
    assert actor.scope == owner.scope
    await files.put(ports, (actor.scope,), Path("a.md"), b"hello", actor)


async def test_roles_come_from_here_and_change_with_the_next_request(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob, _ = await add_person(ports, owner, "bob")
    issuer = of(Bearer("bob-1", "bob@example.org"))
    actor = await authenticate_person(ports, issuer, "bob-1")
    assert (actor.role, actor.permissions) == (Role.MEMBER, MEMBER_PERMISSIONS)
    await people.patch(ports, owner, bob.id, {"role": Role.ADMIN})
    assert (await authenticate_person(ports, issuer, "bob-1")).role is Role.ADMIN
    await people.delete(ports, owner, bob.id)
    with pytest.raises(Unauthenticated):
        await authenticate_person(ports, issuer, "bob-1")


async def test_what_was_once_seen_with_an_address_is_known_by_its_subject(ports: Ports) -> None:
    made, _ = await create_tenant(ports)
    await refused(ports, BARE)
    await authenticate_person(ports, of(ADA), ADA.sub)
    for later in (BARE, other(ADA, email_verified=False), other(ADA, email="new@acme.example")):
        assert (await authenticate_person(ports, of(later), later.sub)).person == made.owner.id
    elsewhere = Known({BARE.sub: BARE}, name="https://elsewhere.example")
    with pytest.raises(Unauthenticated):
        await authenticate_person(ports, elsewhere, BARE.sub)


async def test_the_link_is_made_once_and_leaves_the_person_as_they_were(ports: Ports) -> None:
    made, owner = await create_tenant(ports)
    for _ in range(3):
        await authenticate_person(ports, of(ADA), ADA.sub)
    linked = await people.get(ports, owner, made.owner.id)
    signed_in = {**made.owner.body, people.SUBJECT_FIELD: f"{ISSUER}|{ADA.sub}"}
    assert (linked.body, linked.revision) == (signed_in, made.owner.revision + 1)
    assert await people.get_by_email(ports, owner, "ada@acme.example") == linked
    [entry, *_] = (await audit.list_audit_entries(ports, owner)).items
    assert (entry.author, entry.reason) == (made.owner.id, "link a sign-in")
    assert ADA.sub not in str(entry)
    owners = await ports.records.list(
        owner.tenant, RecordType.PERSON, index_key=people.OWNERS_INDEX
    )
    assert owners == (linked,)
    await people.patch(ports, owner, made.owner.id, {"title": "Countess"})
    assert (await authenticate_person(ports, of(ADA), ADA.sub)).person == made.owner.id


async def test_a_change_of_a_person_leaves_them_signed_in_by_their_subject(ports: Ports) -> None:
    made, owner = await create_tenant(ports)
    bob, _ = await add_person(ports, owner, "bob")
    bearer = Bearer("bob-1", "bob@example.org")
    await authenticate_person(ports, of(bearer), bearer.sub)
    changes: list[dict[str, Any]] = [
        {"title": "Builder"},
        {"role": Role.OWNER},
        {"role": Role.MEMBER},
        {"email": "robert@example.org"},
    ]
    for given in changes:
        await people.patch(ports, owner, bob.id, given)
        bare = other(bearer, email=None)
        assert (await authenticate_person(ports, of(bare), bare.sub)).person == bob.id, given
    await refused(ports, other(bearer, sub="bob-2"))
    await people.delete(ports, owner, bob.id)
    await refused(ports, other(bearer, email=None))
    assert (await people.get(ports, owner, made.owner.id)).revision == 1


async def test_two_accounts_of_one_address_do_not_take_the_link_from_each_other(
    ports: Ports,
) -> None:
    made, owner = await create_tenant(ports)
    issuer = of(ADA, Bearer("ada-2", ADA.email))
    for _ in range(3):
        for subject in ("ada-1", "ada-2"):
            assert (await authenticate_person(ports, issuer, subject)).person == made.owner.id
    linked = await people.get(ports, owner, made.owner.id)
    assert linked.revision == made.owner.revision + 1


async def test_all_who_come_first_at_once_are_let_in(ports: Ports) -> None:
    made, owner = await create_tenant(ports)
    done, lost = await race(*(authenticate_person(ports, of(ADA), ADA.sub) for _ in range(8)))
    assert not lost
    assert {actor.person for actor in done} == {made.owner.id}
    linked = await people.get(ports, owner, made.owner.id)
    assert linked.revision == made.owner.revision + 1


async def test_one_subject_is_one_person_though_it_comes_with_two_addresses(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await add_person(ports, owner, "bob")
    both = (ADA, other(ADA, email="bob@example.org"))
    done, lost = await race(
        *(authenticate_person(ports, of(bearer), bearer.sub) for bearer in both)
    )
    assert not lost
    assert len({actor.person for actor in done}) == 1


@pytest.mark.parametrize(
    "bearer",
    [
        other(ADA, email_verified=False),
        other(ADA, email=None),
        *(other(ADA, email=odd) for odd in ("", "ada", "ada@other.example", "a\x00@acme.example")),
        *(other(ADA, email=odd) for odd in ("ada@acme.example\n", "\ud800@acme.example")),
    ],
    ids=str,
)
async def test_nobody_is_let_in_without_a_verified_address_that_is_known(
    ports: Ports, bearer: Bearer
) -> None:
    await create_tenant(ports)
    await refused(ports, bearer)


async def test_letter_case_does_not_matter_but_looking_alike_is_not_enough(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    kis = await people.create(ports, owner, Profile("Kis", "kiss@example.org", Role.MEMBER))
    for alike in ("\u212aiss@example.org", "ki\u017f\u017f@example.org", "ki\xdf@example.org"):
        await refused(ports, Bearer("eve", alike))
    assert (
        await authenticate_person(ports, of(Bearer("k", "KISS@Example.org")), "k")
    ).person == kis.id


async def test_an_address_in_several_tenants_does_not_say_which_is_meant(ports: Ports) -> None:
    _, acme = await create_tenant(ports)
    _, globex = await create_tenant(ports, "globex")
    bob, _ = await add_person(ports, acme, "bob")
    bearer = Bearer("bob-1", "bob@example.org")
    await authenticate_person(ports, of(bearer), bearer.sub)
    await add_person(ports, globex, "bob")
    assert (await authenticate_person(ports, of(bearer), bearer.sub)).person == bob.id
    await refused(ports, other(bearer, sub="bob-2"), AMBIGUOUS_EMAIL)


async def test_the_one_person_is_found_among_many_tenants(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.actions.accounts.oidc._BATCH_SIZE", 2)
    for number in range(5):
        await create_tenant(ports, f"tenant-{number}")
    for number in range(5):
        bearer = Bearer(f"{number}", f"ada@tenant-{number}.example")
        actor = await authenticate_person(ports, of(bearer), bearer.sub)
        assert (await people.get(ports, actor, actor.name)).body["email"] == bearer.email


async def test_each_request_asks_the_issuer_and_only_the_first_the_store(ports: Ports) -> None:
    await create_tenant(ports)
    issuer = of(ADA)
    await authenticate_person(ports, issuer, ADA.sub)
    await authenticate_person(ports, issuer, ADA.sub)
    hits = ports.record_cache.hits
    actor = await authenticate_person(ports, issuer, ADA.sub)
    assert ports.record_cache.hits == hits + 1
    del issuer.bearers[ADA.sub]
    with pytest.raises(Unauthenticated):
        await authenticate_person(ports, issuer, ADA.sub)
    assert len(issuer.asked) == 4
    assert actor.person


async def test_an_issuer_that_cannot_be_reached_is_an_outage_and_no_refusal(ports: Ports) -> None:
    await create_tenant(ports)
    issuer = of(ADA)
    issuer.down = True
    with pytest.raises(ConnectionError):
        await authenticate_person(ports, issuer, ADA.sub)


async def test_a_key_never_looks_like_a_token_of_an_issuer(ports: Ports) -> None:
    made, _ = await create_tenant(ports)
    assert not is_jwt(made.token)
    assert is_jwt("eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln")
    assert is_jwt("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.")
    for text in ("", "eyJ", "eyJ.a", "eyJ.a.b.c", "eyJ.a.b\n", "eyJ.é.b", "x.a.b", "eyJ.a b.c"):
        assert not is_jwt(text)


def set_to(**given: Any) -> Any:
    return load(given, environ={}, file=File("absent.toml"))


def test_there_is_no_issuer_unless_one_is_set() -> None:
    assert create_issuer(set_to()) is None
    issuer = create_issuer(set_to(oidc_issuer=ISSUER, oidc_audience="web, phone"))
    assert issuer is not None
    assert issuer.name == ISSUER


@pytest.mark.parametrize(
    "wrong",
    [
        {"oidc_audience": ""},
        {"oidc_audience": " , "},
        {"oidc_issuer": ""},
        {"oidc_issuer": "issuer.example"},
        {"oidc_issuer": "http://issuer.example"},
        {"oidc_issuer": "http://localhost.example"},
        {"oidc_issuer": "https://[issuer"},
        {"oidc_jwks_url": "http://issuer.example/keys"},
        {"oidc_jwks_url": "file:///keys"},
        {"oidc_algorithms": ""},
        {"oidc_algorithms": "none"},
        {"oidc_algorithms": "RS256,HS256"},
        {"oidc_algorithms": "RS256,,ES256"},
        {"oidc_skew_seconds": -1},
    ],
    ids=str,
)
def test_settings_that_would_let_strangers_in_are_not_used(wrong: dict[str, Any]) -> None:
    good = {"oidc_issuer": ISSUER, "oidc_audience": "web", "oidc_algorithms": "RS256, ES384"}
    assert create_issuer(set_to(**good, oidc_jwks_url="http://127.0.0.1:9/keys"))
    [name] = wrong
    with pytest.raises(SettingsError, match=f"(?i){name}"):
        create_issuer(set_to(**good | wrong))
