"""Invitations: one-time sign-in codes for other people, issued by owners and admins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from carrel.actions.accounts import keys, sign_in
from carrel.actions.records import commit_changes, get_record, load_collection_revisions
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor, CredentialKind
from carrel.core.accounts import SignInCodeRecord, person_from_record
from carrel.core.errors import Forbidden
from carrel.core.identifiers import TimestampMs
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import RecordType, deletion
from carrel.ports import Ports

INVITATION_LIFETIME_MS: Final = 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class Invitation:
    code: str
    """Returned only here; the server stores its hash."""
    expires: TimestampMs


@retry_on_conflict()
async def invite(
    ports: Ports, actor: Actor, id: str, idempotency_key: IdempotencyKey | None = None
) -> Invitation:
    """Issue a code that the person exchanges for a key; earlier invitations end.

    The person's key has no more permissions and lives no longer than the inviter's own. Raises
    Forbidden unless the caller is a person who is owner or admin, or an owner for an owner, and
    NotFound.
    """
    actor.require_person_admin("invite a person")
    keys.require_unconfined(actor)
    revisions = await load_collection_revisions(
        ports, actor.tenant, (RecordType.PERSON, RecordType.KEY, RecordType.CODE)
    )
    person = await get_record(ports, actor.tenant, RecordType.PERSON, id)
    role = person_from_record(person).role
    if not sign_in.can_invite(actor.role, role):
        raise Forbidden("only an owner may invite an owner")
    spec = await keys.limit_to_callers_key(
        ports, actor, keys.KeySpec("invited", CredentialKind.PERSON, person=id), role
    )
    now, code = ports.clock.now(), ports.clock.new_token("code")
    ends = now + INVITATION_LIFETIME_MS
    invitation = SignInCodeRecord(
        person.id,
        min(spec.expires or ends, ends),
        invited_by=actor.person or actor.name,
        key_expires=spec.expires or 0,
        scopes=None if spec.scopes is None else sorted(spec.scopes),
        creators=list(spec.creators),
    )
    replaced = [
        deletion(stored)
        for stored, earlier in await sign_in.load_codes(ports, actor.tenant, person.id)
        if earlier.invited_by or earlier.expires <= now
    ]
    await commit_changes(
        ports,
        actor,
        "invite a person",
        [*replaced, sign_in.code_creation(ports, actor.tenant, invitation, code)],
        collection_revisions=revisions,
        idempotency_key=idempotency_key,
        audit_subjects=(f"{RecordType.PERSON}/{person.id}",),
    )
    return Invitation(code, invitation.expires)
