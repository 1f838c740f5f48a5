"""Sign-in: single-use codes, valid for 1 hour, exchanged for a browser's key."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from carrel.actions.accounts import keys, tenants
from carrel.actions.accounts.credentials import INVALID_CREDENTIAL, authenticate, hash_token
from carrel.actions.accounts.people import by_person_index
from carrel.actions.records import (
    commit_changes,
    get_record,
    iter_records,
    load_collection_revision,
    load_collection_revisions,
)
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import PLATFORM, Actor, CredentialKind, Role
from carrel.core.accounts import (
    KeyRecord,
    SignInCodeRecord,
    key_from_record,
    person_from_record,
)
from carrel.core.errors import Forbidden, NotFound, Unauthenticated
from carrel.core.identifiers import TimestampMs
from carrel.core.store.record import (
    CollectionRevision,
    Record,
    RecordChange,
    RecordType,
    decode_body,
    deletion,
    encode_body,
    global_unique_key,
)
from carrel.ports import Ports

CODE_LIFETIME_MS: Final = 3_600_000
KEY_LIFETIME_MS: Final = 30 * 86_400_000
BROWSER_KEY_NAME: Final = "browser"
"""Name of the keys created for browser sessions."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    token: str
    tenant: Record
    person: Record


@dataclass(frozen=True, slots=True)
class CredentialDetails:
    """Tenant, person and expiry of the current credential."""

    tenant: Record
    person: Record | None
    expires: TimestampMs
    """0 if it does not expire."""


@retry_on_conflict()
async def issue_code(ports: Ports, tenant: str, person: str) -> str:
    """Create a sign-in code for the operator of the server to pass on; delete expired ones.

    Its author is the platform, not the person. Raises NotFound.
    """
    code = ports.clock.new_token("code")
    expected_revision = await load_collection_revision(ports, tenant, RecordType.PERSON)
    await get_record(ports, tenant, RecordType.PERSON, person)
    now = ports.clock.now()
    changes = [
        deletion(stored)
        for stored, sign_in_code in await load_codes(ports, tenant, person)
        if sign_in_code.expires <= now
    ]
    new_code = SignInCodeRecord(person, now + CODE_LIFETIME_MS)
    changes.append(code_creation(ports, tenant, new_code, code))
    await commit_changes(
        ports,
        PLATFORM.name,
        "issue a sign-in code",
        changes,
        collection_revisions=[expected_revision],
        audit_subjects=(f"{RecordType.PERSON}/{person}",),
    )
    return code


async def issue_owner_code(ports: Ports, slug: str) -> str:
    """Create a sign-in code for the tenant's first owner. Raises NotFound."""
    owner = await tenants.get_first_owner(ports, slug)
    return await issue_code(ports, owner.tenant, owner.id)


async def redeem_code(ports: Ports, code: str, name: str = "web sign-in") -> SignedIn:
    """Exchange a code for a key valid for 30 days.

    Of concurrent attempts with one code, one succeeds. Failed attempts are limited per client
    address. Raises TooManyAttempts, and Unauthenticated for an unknown, used or expired code,
    without saying which.
    """
    return await ports.attempts.limit(code, lambda: _exchange_code(ports, code, name))


@retry_on_conflict()
async def _exchange_code(ports: Ports, code: str, name: str) -> SignedIn:
    [stored_code] = await ports.records.get_by_unique_key([_code_unique_key(hash_token(code))])
    now = ports.clock.now()
    if stored_code is None:
        raise Unauthenticated(INVALID_CREDENTIAL)
    code_record = decode_body(stored_code, SignInCodeRecord)
    if now >= code_record.expires:
        subject = f"{RecordType.PERSON}/{code_record.person_id}"
        ports.credential_uses.add(stored_code.tenant, subject, name, "", now)
        raise Unauthenticated(INVALID_CREDENTIAL)
    expected_revision, person = await _load_holder(ports, stored_code.tenant, code_record)
    key = keys.new_key(ports, stored_code.tenant, _spec_from_code(code_record, name, now))
    changes = [deletion(stored_code), key.change]
    reason = (
        f"sign in, invited by {code_record.invited_by}" if code_record.invited_by else "sign in"
    )
    await commit_changes(
        ports,
        _holder_of(person, key, name),
        reason,
        changes,
        collection_revisions=[expected_revision],
    )
    tenant = await get_record(ports, stored_code.tenant, RecordType.TENANT, stored_code.tenant)
    return SignedIn(key.token, tenant, person)


async def create_session(ports: Ports, token: str) -> str:
    """Create a browser key from a person's key: same permissions, no longer lifetime.

    Failed attempts are limited per client address. Raises TooManyAttempts, Unauthenticated, and
    Forbidden for the key of a service or an agent.
    """
    return await ports.attempts.limit(token, lambda: _create_browser_key(ports, token))


@retry_on_conflict()
async def _create_browser_key(ports: Ports, token: str) -> str:
    actor = await authenticate(ports, token)
    if actor.kind is not CredentialKind.PERSON:
        raise Forbidden(f"sessions are for people: this is the key of {_with_article(actor.kind)}")
    expected_revisions = await load_collection_revisions(
        ports, actor.tenant, (RecordType.PERSON, RecordType.KEY)
    )
    current_key = key_from_record(
        await _find_or_unauthenticated(ports, actor.tenant, RecordType.KEY, actor.key)
    )
    await _find_or_unauthenticated(
        ports, actor.tenant, RecordType.PERSON, current_key.person_id or ""
    )
    key = keys.new_key(ports, actor.tenant, _session_spec(actor, current_key, ports.clock.now()))
    await commit_changes(
        ports, actor, "sign in", [key.change], collection_revisions=expected_revisions
    )
    return key.token


@retry_on_conflict()
async def sign_in_person(ports: Ports, actor: Actor) -> str:
    """Create a browser key for an authenticated person. Raises Unauthenticated."""
    expected_revision = await load_collection_revision(ports, actor.tenant, RecordType.PERSON)
    person = await _find_or_unauthenticated(
        ports, actor.tenant, RecordType.PERSON, actor.person or ""
    )
    expires = ports.clock.now() + KEY_LIFETIME_MS
    spec = keys.KeySpec(BROWSER_KEY_NAME, CredentialKind.PERSON, person=person.id, expires=expires)
    key = keys.new_key(ports, actor.tenant, spec)
    await commit_changes(
        ports,
        _holder_of(person, key, BROWSER_KEY_NAME),
        "sign in",
        [key.change],
        collection_revisions=[expected_revision],
    )
    return key.token


def _with_article(kind: CredentialKind) -> str:
    return {CredentialKind.AGENT: "an agent"}.get(kind, f"a {kind}")


def _session_spec(actor: Actor, key: KeyRecord, now: TimestampMs) -> keys.KeySpec:
    """Return a session key with the holder, confinement and scopes of the caller's key."""
    max_expires = now + KEY_LIFETIME_MS
    return keys.KeySpec(
        BROWSER_KEY_NAME,
        CredentialKind.PERSON,
        person=key.person_id,
        agent=key.agent_id,
        workspace=key.workspace,
        scopes=None if key.scopes is None else frozenset(key.scopes),
        expires=min(key.expires or max_expires, max_expires),
        creators=(*key.creators, actor.key),
    )


async def end_session(ports: Ports, actor: Actor) -> None:
    """Revoke the caller's key."""
    with suppress(NotFound):  # Revoked concurrently.
        await keys.revoke(ports, actor, actor.key)


async def current_credential(ports: Ports, actor: Actor) -> CredentialDetails:
    """Describe the caller's credential.

    Raises Unauthenticated if the key, person or tenant was deleted since authentication.
    """
    tenant = await _find_or_unauthenticated(ports, actor.tenant, RecordType.TENANT, actor.tenant)
    person, expires = None, 0
    if actor.person is not None:
        person = await _find_or_unauthenticated(
            ports, actor.tenant, RecordType.PERSON, actor.person
        )
    if actor.key:
        key = await _find_or_unauthenticated(ports, actor.tenant, RecordType.KEY, actor.key)
        expires = key_from_record(key).expires
    return CredentialDetails(tenant, person, expires)


async def _find_or_unauthenticated(
    ports: Ports, tenant: str, record_type: RecordType, id: str
) -> Record:
    try:
        return await get_record(ports, tenant, record_type, id)
    except NotFound:
        raise Unauthenticated(INVALID_CREDENTIAL) from None


def _holder_of(person: Record, key: keys.NewKey, name: str) -> Actor:
    """Author of a sign-in: the person, through the key that it creates."""
    return Actor(person.tenant, person.id, person=person.id, key=key.change.id, key_name=name)


def _spec_from_code(code: SignInCodeRecord, name: str, now: TimestampMs) -> keys.KeySpec:
    max_expires = now + KEY_LIFETIME_MS
    return keys.KeySpec(
        name,
        CredentialKind.PERSON,
        person=code.person_id,
        scopes=None if code.scopes is None else frozenset(code.scopes),
        expires=min(code.key_expires or max_expires, max_expires),
        creators=tuple(code.creators),
    )


async def _load_holder(
    ports: Ports, tenant: str, code: SignInCodeRecord
) -> tuple[CollectionRevision, Record]:
    """Load the person of a code. Raises Unauthenticated if the inviter may not invite them now."""
    expected_revision = await load_collection_revision(ports, tenant, RecordType.PERSON)
    person = await _find_or_unauthenticated(ports, tenant, RecordType.PERSON, code.person_id)
    if code.invited_by:
        inviter = await _find_or_unauthenticated(ports, tenant, RecordType.PERSON, code.invited_by)
        if not can_invite(person_from_record(inviter).role, person_from_record(person).role):
            raise Unauthenticated(INVALID_CREDENTIAL)
    return expected_revision, person


def can_invite(inviter: Role | None, person: Role) -> bool:
    """Return whether one role may invite another: admins may, but not an owner."""
    return inviter is Role.OWNER or (inviter is Role.ADMIN and person is not Role.OWNER)


async def load_codes(
    ports: Ports, tenant: str, person: str
) -> list[tuple[Record, SignInCodeRecord]]:
    """Load the sign-in codes of a person, expired ones included."""
    index_key = by_person_index(person)
    return [
        (record, decode_body(record, SignInCodeRecord))
        async for record in iter_records(ports, tenant, RecordType.CODE, index_key)
    ]


def code_creation(
    ports: Ports, tenant: str, sign_in_code: SignInCodeRecord, code: str
) -> RecordChange:
    return RecordChange(
        tenant,
        RecordType.CODE,
        ports.clock.new_id("cod"),
        encode_body(sign_in_code),
        expected=0,
        unique_keys=(_code_unique_key(hash_token(code)),),
        index_keys=(
            by_person_index(sign_in_code.person_id),
            *map(keys.by_creator_index, sign_in_code.creators),
        ),
    )


def _code_unique_key(hash: str) -> str:
    return global_unique_key(RecordType.CODE, "hash", hash)
