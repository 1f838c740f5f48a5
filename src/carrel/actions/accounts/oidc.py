"""Authentication with tokens of an OpenID Connect issuer."""

from __future__ import annotations

import re
from typing import Final, Protocol

from msgspec.structs import replace

from carrel.actions.accounts import people
from carrel.actions.accounts.credentials import INVALID_CREDENTIAL
from carrel.actions.records import commit_changes
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor, CredentialKind, effective_permissions
from carrel.core.accounts import person_from_record
from carrel.core.errors import Busy, Conflict, Unauthenticated, ValidationError
from carrel.core.store.record import Record, RecordType, unique_key
from carrel.core.text_validation import email_key, parse_email
from carrel.ports import Ports

AMBIGUOUS_EMAIL: Final = (
    "people of several tenants have this e-mail address: use a key of the tenant instead"
)
_BATCH_SIZE: Final = 500
_JWT: Final = re.compile(r"eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")


class Claims(Protocol):
    """Claims of a verified token."""

    @property
    def sub(self) -> str: ...

    @property
    def email(self) -> str | None: ...

    @property
    def email_verified(self) -> bool: ...


class Issuer(Protocol):
    """Verifies the tokens of one issuer."""

    @property
    def name(self) -> str:
        """Issuer URL, as in the `iss` claim."""

    async def claims(self, token: str) -> Claims:
        """Verify a token and return its claims.

        Raises Unauthenticated without a reason, and ConnectionError if the issuer is unreachable.
        """


def is_jwt(token: str) -> bool:
    """Return whether a token has the shape of a JWT; API keys never do."""
    return _JWT.fullmatch(token) is not None


async def authenticate_person(ports: Ports, issuer: Issuer, token: str) -> Actor:
    """Find the person of a token by subject, else by verified e-mail address.

    Tenant and role are the stored ones, whatever the token says. Raises Unauthenticated, and
    ConnectionError if the issuer is unreachable.
    """
    claims = await issuer.claims(token)
    address = _verified_email(claims)
    revision = await ports.records.revision()
    cache_key = ("oidc", issuer.name, claims.sub, address)
    cached: Actor | None = ports.record_cache.get(revision, cache_key)
    if cached is None:
        subject = f"{issuer.name}|{claims.sub}"
        cached = _actor(await _find_or_link_person(ports, subject, address))
        ports.record_cache.put(revision, cache_key, cached)
    return cached


def _actor(person: Record) -> Actor:
    role = person_from_record(person).role
    return Actor(
        tenant=person.tenant,
        name=person.id,
        permissions=effective_permissions(CredentialKind.PERSON, role, None),
        role=role,
        person=person.id,
    )


def _verified_email(claims: Claims) -> str | None:
    """Return the address as the issuer spells it, or None if it is not verified."""
    if claims.email is None or not claims.email_verified:
        return None
    try:
        parse_email(claims.email)
    except ValidationError:
        return None
    return claims.email


@retry_on_conflict()
async def _find_or_link_person(ports: Ports, subject: str, address: str | None) -> Record:
    [linked] = await ports.records.get_by_unique_key([people.subject_unique_key(subject)])
    if linked is not None:
        return linked
    if address is None:
        raise Unauthenticated(INVALID_CREDENTIAL)
    person = await _find_person_by_email(ports, address)
    await _link_subject(ports, person, subject)
    return person


async def _find_person_by_email(ports: Ports, address: str) -> Record:
    """Find the only person with this address in any tenant. Raises Unauthenticated."""
    matches: list[Record] = []
    after, key = "", email_key(address)
    while tenants := await ports.records.list(
        "", RecordType.TENANT, after=after, limit=_BATCH_SIZE
    ):
        unique_keys = [unique_key(tenant.id, RecordType.PERSON, "email", key) for tenant in tenants]
        people_by_key = await ports.records.get_by_unique_key(unique_keys)
        matches += [
            person
            for person in people_by_key
            if person and _is_same_address(person_from_record(person).email, address)
        ]
        after = tenants[-1].id
    if len(matches) > 1:
        raise Unauthenticated(AMBIGUOUS_EMAIL)
    if not matches:
        raise Unauthenticated(INVALID_CREDENTIAL)
    return matches[0]


def _is_same_address(stored: str, claimed: str) -> bool:
    """Compare addresses, ignoring the case of ASCII letters only.

    Unique keys fold more, so that no person is stored twice. Here that would admit the holder of a
    look-alike address (long s, Kelvin sign) as another person.
    """
    return stored.encode().lower() == claimed.encode().lower()


async def _link_subject(ports: Ports, person: Record, subject: str) -> None:
    """Link the subject to the person, unless another subject is linked already.

    Only one subject is linked: two accounts with one address would otherwise replace each other's
    link forever.
    """
    index_key = people.by_oidc_subject_index(person.id)
    if await ports.records.list(person.tenant, RecordType.PERSON, index_key=index_key, limit=1):
        return
    linked = replace(person_from_record(person), subject=subject)
    change = people.person_change(person.tenant, person.id, linked, person)
    try:
        await commit_changes(ports, person.id, "link a sign-in", [change])
    except Conflict:
        raise Busy("the same account is signing in concurrently") from None
