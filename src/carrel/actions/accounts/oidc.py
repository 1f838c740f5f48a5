"""From a token of an OpenID Connect issuer to who is asking."""

from __future__ import annotations

import re
from typing import Final, Protocol

from carrel.actions.accounts import people
from carrel.actions.accounts.credentials import UNKNOWN
from carrel.actions.records import commit_changes, retry_while_busy
from carrel.core.access import Actor, CredentialKind, Role, granted
from carrel.core.errors import Busy, Conflict, Unauthenticated, ValidationError
from carrel.core.store.record import Record, RecordType, unique_key
from carrel.core.text_validation import email, email_key
from carrel.ports import Ports

SEVERAL: Final = (
    "people of several tenants have this e-mail address, so it does not say which is meant: "
    "use a key of the tenant instead"
)
_MANY: Final = 500
_JWT: Final = re.compile(r"eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")


class Claims(Protocol):
    """What an issuer says of the bearer of a token."""

    @property
    def sub(self) -> str: ...

    @property
    def email(self) -> str | None: ...

    @property
    def email_verified(self) -> bool: ...


class Issuer(Protocol):
    """Knows which tokens one issuer has given out."""

    @property
    def name(self) -> str:
        """Its URL, as its tokens say it."""

    async def claims(self, token: str) -> Claims:
        """What a token says, if it is good now.

        Raises Unauthenticated, saying nothing of why; ConnectionError while nobody can tell,
        because the issuer cannot be reached.
        """


def is_jwt(token: str) -> bool:
    """Whether a token has the shape of those that issuers give out, which no key has."""
    return _JWT.fullmatch(token) is not None


async def person_of(ports: Ports, issuer: Issuer, token: str) -> Actor:
    """The person whose token this is: by its subject, else by an address that was verified.

    Tenant and role are those of the person here, whatever the token says. Raises Unauthenticated,
    and ConnectionError as the issuer does.
    """
    claims = await issuer.claims(token)
    address = _address(claims)
    revision = await ports.records.revision()
    bearer = ("oidc", issuer.name, claims.sub, address)
    known: Actor | None = ports.record_cache.get(revision, bearer)
    if known is None:
        subject = f"{issuer.name}|{claims.sub}"
        known = _actor(await retry_while_busy(lambda: _found(ports, subject, address)))
        ports.record_cache.put(revision, bearer, known)
    return known


def _actor(person: Record) -> Actor:
    role = Role(person.body["role"])
    return Actor(
        tenant=person.tenant,
        name=person.id,
        permissions=granted(CredentialKind.PERSON, role, None),
        role=role,
        person=person.id,
    )


def _address(claims: Claims) -> str | None:
    """The bearer's address as the issuer writes it, if it may be relied on."""
    if claims.email is None or not claims.email_verified:
        return None
    try:
        email(claims.email)
    except ValidationError:
        return None
    return claims.email


async def _found(ports: Ports, subject: str, address: str | None) -> Record:
    [linked] = await ports.records.get_by_unique_key([people.subject_handle(subject)])
    if linked is not None:
        return linked
    if address is None:
        raise Unauthenticated(UNKNOWN)
    person = await _only_one(ports, address)
    await _link(ports, person, subject)
    return person


async def _only_one(ports: Ports, address: str) -> Record:
    """The one person of that address, in whatever tenant."""
    found: list[Record] = []
    after, key = "", email_key(address)
    while tenants := await ports.records.list("", RecordType.TENANT, after=after, limit=_MANY):
        unique_keys = [unique_key(tenant.id, RecordType.PERSON, "email", key) for tenant in tenants]
        named = await ports.records.get_by_unique_key(unique_keys)
        found += [person for person in named if person and _same(person.body["email"], address)]
        after = tenants[-1].id
    if len(found) > 1:
        raise Unauthenticated(SEVERAL)
    if not found:
        raise Unauthenticated(UNKNOWN)
    return found[0]


def _same(ours: str, theirs: str) -> bool:
    """Equal but for the case of plain letters.

    Handles fold more than that, so that nobody is entered twice. Here it would let the holder of
    an address that only looks alike, with a long s or a Kelvin sign, in as somebody else.
    """
    return ours.encode().lower() == theirs.encode().lower()


async def _link(ports: Ports, person: Record, subject: str) -> None:
    """Let the subject name the person from now on, unless another subject does already.

    One at a time: two accounts of one address would take the link from each other for ever.
    """
    mark = people.linked(person.id)
    if await ports.records.list(person.tenant, RecordType.PERSON, link=mark, limit=1):
        return
    body = {**person.body, people.SUBJECT: subject}
    change = people.change_of(person.tenant, person.id, person.revision, body)
    try:
        await commit_changes(ports, person.id, "link a sign-in", [change])
    except Conflict:
        raise Busy("the same account signs in elsewhere at the same time") from None
