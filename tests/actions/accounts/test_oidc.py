"""OIDC: a token authenticates the person with its verified email or subject."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path as File
from typing import Any

import pytest
from tests.support.tenants import add_person, create_tenant, race

from carrel.actions.accounts import audit, credentials, people
from carrel.actions.accounts.oidc import AMBIGUOUS_EMAIL, authenticate_person, is_jwt
from carrel.actions.files import files
from carrel.core.access import MEMBER_PERMISSIONS, CredentialKind, Role
from carrel.core.accounts import PersonRecord
from carrel.core.errors import Unauthenticated
from carrel.core.identifiers import Path
from carrel.core.store.record import RecordType
from carrel.ports import Ports
from carrel.settings import SettingsError, load
from carrel.wiring.oidc import create_issuer

pytestmark = pytest.mark.anyio
ISSUER = "https://issuer.example"


@dataclass(frozen=True)
class TokenClaims:
    sub: str
    email: str | None = None
    email_verified: bool = True


@dataclass
class FakeIssuer:
    """An issuer with a fixed set of tokens."""

    claims_by_token: dict[str, TokenClaims]
    name: str = ISSUER
    down: bool = False
    requests: list[str] = field(default_factory=list)

    async def claims(self, token: str) -> TokenClaims:
        self.requests.append(token)
        if self.down:
            raise ConnectionError
        if token not in self.claims_by_token:
            raise Unauthenticated(credentials.INVALID_CREDENTIAL)
        return self.claims_by_token[token]


def issuer_of(*all_claims: TokenClaims) -> FakeIssuer:
    return FakeIssuer({item.sub: item for item in all_claims})


ADA = TokenClaims("ada-1", "ada@acme.example")
ADA_WITHOUT_EMAIL = replace(ADA, email=None)


async def assert_refused(
    ports: Ports, claims: TokenClaims, reason: str = credentials.INVALID_CREDENTIAL
) -> None:
    with pytest.raises(Unauthenticated) as refusal:
        await authenticate_person(ports, issuer_of(claims), claims.sub)
    assert str(refusal.value) == reason


async def test_a_verified_email_authenticates_that_person(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    actor = await authenticate_person(ports, issuer_of(ADA), ADA.sub)
    assert (actor.tenant, actor.person, actor.name) == (
        owner.tenant,
        created.owner.id,
        created.owner.id,
    )
    assert (actor.role, actor.kind) == (Role.OWNER, CredentialKind.PERSON)
    assert actor.permissions == owner.permissions
    assert actor.scope == owner.scope
    await files.put(ports, (actor.scope,), Path("a.md"), b"hello", actor)


async def test_roles_are_those_of_the_tenant_and_change_with_the_next_request(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob, _ = await add_person(ports, owner, "bob")
    issuer = issuer_of(TokenClaims("bob-1", "bob@example.org"))
    actor = await authenticate_person(ports, issuer, "bob-1")
    assert (actor.role, actor.permissions) == (Role.MEMBER, MEMBER_PERMISSIONS)
    await people.patch(ports, owner, bob.id, {"role": Role.ADMIN})
    assert (await authenticate_person(ports, issuer, "bob-1")).role is Role.ADMIN
    await people.delete(ports, owner, bob.id)
    with pytest.raises(Unauthenticated):
        await authenticate_person(ports, issuer, "bob-1")


async def test_a_person_linked_by_email_is_later_authenticated_by_subject(ports: Ports) -> None:
    created, _ = await create_tenant(ports)
    await assert_refused(ports, ADA_WITHOUT_EMAIL)
    await authenticate_person(ports, issuer_of(ADA), ADA.sub)
    for claims in (
        ADA_WITHOUT_EMAIL,
        replace(ADA, email_verified=False),
        replace(ADA, email="new@acme.example"),
    ):
        assert (
            await authenticate_person(ports, issuer_of(claims), claims.sub)
        ).person == created.owner.id
    elsewhere = FakeIssuer(
        {ADA_WITHOUT_EMAIL.sub: ADA_WITHOUT_EMAIL}, name="https://elsewhere.example"
    )
    with pytest.raises(Unauthenticated):
        await authenticate_person(ports, elsewhere, ADA_WITHOUT_EMAIL.sub)


async def test_the_link_is_created_once_and_leaves_the_profile(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    for _ in range(3):
        await authenticate_person(ports, issuer_of(ADA), ADA.sub)
    linked = await people.get(ports, owner, created.owner.id)
    signed_in = {**created.owner.body, "subject": f"{ISSUER}|{ADA.sub}"}
    assert (linked.body, linked.revision) == (signed_in, created.owner.revision + 1)
    assert await people.get_by_email(ports, owner, "ada@acme.example") == linked
    [entry, *_] = (await audit.list_audit_entries(ports, owner)).items
    assert (entry.author, entry.reason) == (created.owner.id, "link a sign-in")
    assert ADA.sub not in str(entry)
    owners = await ports.records.list(
        owner.tenant, RecordType.PERSON, index_key=people.OWNERS_INDEX
    )
    assert owners == (linked,)
    await people.patch(ports, owner, created.owner.id, {"title": "Countess"})
    assert (await authenticate_person(ports, issuer_of(ADA), ADA.sub)).person == created.owner.id


async def test_a_changed_person_stays_linked_to_their_subject(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    bob, _ = await add_person(ports, owner, "bob")
    claims = TokenClaims("bob-1", "bob@example.org")
    await authenticate_person(ports, issuer_of(claims), claims.sub)
    changes: list[dict[str, Any]] = [
        {"title": "Builder"},
        {"role": Role.OWNER},
        {"role": Role.MEMBER},
        {"email": "robert@example.org"},
    ]
    for change in changes:
        await people.patch(ports, owner, bob.id, change)
        bare = replace(claims, email=None)
        assert (await authenticate_person(ports, issuer_of(bare), bare.sub)).person == bob.id, (
            change
        )
    await assert_refused(ports, replace(claims, sub="bob-2"))
    await people.delete(ports, owner, bob.id)
    await assert_refused(ports, replace(claims, email=None))
    assert (await people.get(ports, owner, created.owner.id)).revision == 1


async def test_two_subjects_with_one_email_do_not_take_over_the_link(
    ports: Ports,
) -> None:
    created, owner = await create_tenant(ports)
    issuer = issuer_of(ADA, TokenClaims("ada-2", ADA.email))
    for _ in range(3):
        for subject in ("ada-1", "ada-2"):
            assert (await authenticate_person(ports, issuer, subject)).person == created.owner.id
    linked = await people.get(ports, owner, created.owner.id)
    assert linked.revision == created.owner.revision + 1


async def test_concurrent_first_sign_ins_all_succeed(ports: Ports) -> None:
    created, owner = await create_tenant(ports)
    done, lost = await race(
        *(authenticate_person(ports, issuer_of(ADA), ADA.sub) for _ in range(8))
    )
    assert not lost
    assert {actor.person for actor in done} == {created.owner.id}
    linked = await people.get(ports, owner, created.owner.id)
    assert linked.revision == created.owner.revision + 1


async def test_one_subject_with_two_emails_is_one_person(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await add_person(ports, owner, "bob")
    both = (ADA, replace(ADA, email="bob@example.org"))
    done, lost = await race(
        *(authenticate_person(ports, issuer_of(claims), claims.sub) for claims in both)
    )
    assert not lost
    assert len({actor.person for actor in done}) == 1


@pytest.mark.parametrize(
    "claims",
    [
        replace(ADA, email_verified=False),
        replace(ADA, email=None),
        *(
            replace(ADA, email=invalid)
            for invalid in ("", "ada", "ada@other.example", "a\x00@acme.example")
        ),
        *(replace(ADA, email=invalid) for invalid in ("ada@acme.example\n", "\ud800@acme.example")),
    ],
    ids=str,
)
async def test_a_sign_in_without_a_verified_existing_email_is_refused(
    ports: Ports, claims: TokenClaims
) -> None:
    await create_tenant(ports)
    await assert_refused(ports, claims)


async def test_email_case_is_ignored_and_look_alike_emails_are_refused(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    kis = await people.create(ports, owner, PersonRecord("Kis", "kiss@example.org", Role.MEMBER))
    for alike in ("\u212aiss@example.org", "ki\u017f\u017f@example.org", "ki\xdf@example.org"):
        await assert_refused(ports, TokenClaims("eve", alike))
    assert (
        await authenticate_person(ports, issuer_of(TokenClaims("k", "KISS@Example.org")), "k")
    ).person == kis.id


async def test_an_email_in_several_tenants_is_refused_as_ambiguous(ports: Ports) -> None:
    _, acme = await create_tenant(ports)
    _, globex = await create_tenant(ports, "globex")
    bob, _ = await add_person(ports, acme, "bob")
    claims = TokenClaims("bob-1", "bob@example.org")
    await authenticate_person(ports, issuer_of(claims), claims.sub)
    await add_person(ports, globex, "bob")
    assert (await authenticate_person(ports, issuer_of(claims), claims.sub)).person == bob.id
    await assert_refused(ports, replace(claims, sub="bob-2"), AMBIGUOUS_EMAIL)


async def test_the_person_is_found_among_many_tenants(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.actions.accounts.oidc._BATCH_SIZE", 2)
    for number in range(5):
        await create_tenant(ports, f"tenant-{number}")
    for number in range(5):
        claims = TokenClaims(f"{number}", f"ada@tenant-{number}.example")
        actor = await authenticate_person(ports, issuer_of(claims), claims.sub)
        assert (await people.get(ports, actor, actor.name)).body["email"] == claims.email


async def test_each_request_asks_the_issuer_and_only_the_first_reads_the_store(
    ports: Ports,
) -> None:
    await create_tenant(ports)
    issuer = issuer_of(ADA)
    await authenticate_person(ports, issuer, ADA.sub)
    await authenticate_person(ports, issuer, ADA.sub)
    hits = ports.record_cache.hits
    actor = await authenticate_person(ports, issuer, ADA.sub)
    assert ports.record_cache.hits == hits + 1
    del issuer.claims_by_token[ADA.sub]
    with pytest.raises(Unauthenticated):
        await authenticate_person(ports, issuer, ADA.sub)
    assert len(issuer.requests) == 4
    assert actor.person


async def test_an_unreachable_issuer_is_an_outage_and_not_a_refusal(ports: Ports) -> None:
    await create_tenant(ports)
    issuer = issuer_of(ADA)
    issuer.down = True
    with pytest.raises(ConnectionError):
        await authenticate_person(ports, issuer, ADA.sub)


async def test_a_key_is_never_a_jwt(ports: Ports) -> None:
    created, _ = await create_tenant(ports)
    assert not is_jwt(created.token)
    assert is_jwt("eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln")
    assert is_jwt("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.")
    for text in ("", "eyJ", "eyJ.a", "eyJ.a.b.c", "eyJ.a.b\n", "eyJ.é.b", "x.a.b", "eyJ.a b.c"):
        assert not is_jwt(text)


def load_settings(**values: Any) -> Any:
    return load(values, environ={}, file=File("absent.toml"))


def test_without_settings_there_is_no_issuer() -> None:
    assert create_issuer(load_settings()) is None
    issuer = create_issuer(load_settings(oidc_issuer=ISSUER, oidc_audience="web, phone"))
    assert issuer is not None
    assert issuer.name == ISSUER


@pytest.mark.parametrize(
    "invalid",
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
def test_unsafe_oidc_settings_are_refused(invalid: dict[str, Any]) -> None:
    valid = {"oidc_issuer": ISSUER, "oidc_audience": "web", "oidc_algorithms": "RS256, ES384"}
    assert create_issuer(load_settings(**valid, oidc_jwks_url="http://127.0.0.1:9/keys"))
    [name] = invalid
    with pytest.raises(SettingsError, match=f"(?i){name}"):
        create_issuer(load_settings(**valid | invalid))
