"""API keys of people, services and agents; only their hashes are stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from carrel.actions.accounts.credentials import INVALID_CREDENTIAL, hash_token, key_unique_key
from carrel.actions.accounts.people import by_person_index
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import (
    ID_PREFIXES,
    Page,
    commit_changes,
    get_by_id_or_slug,
    get_record,
    iter_records,
    list_page,
    load_collection_revisions,
    record_after,
    validate_cursor,
)
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import (
    MACHINE_PERMISSIONS,
    Actor,
    CredentialKind,
    Permission,
    Role,
    effective_permissions,
)
from carrel.core.accounts import KeyRecord, key_from_record, person_from_record
from carrel.core.errors import Forbidden, NotFound, Unauthenticated, ValidationError
from carrel.core.identifiers import TimestampMs, parse_identifier
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import (
    CollectionRevision,
    Record,
    RecordChange,
    RecordFilter,
    RecordType,
    deletion,
    encode_body,
)
from carrel.core.text_validation import single_line
from carrel.ports import Ports

MAX_KEY_LIFETIME_MS: Final = 100 * 366 * 86_400_000
_PREFIX_LENGTH: Final = 12
"""Characters of a token that are stored in the clear, to recognise it."""
_MAX_CREATORS: Final = 100
"""A key that rotates itself has one more creator each time."""

_CREATED_TYPES: Final = (RecordType.KEY, RecordType.CODE)


@dataclass(frozen=True, slots=True)
class KeySpec:
    """Properties of a key: holder, confinement, scopes and expiry."""

    name: str
    kind: CredentialKind
    person: str | None = None
    agent: str | None = None
    workspace: str | None = None
    scopes: frozenset[Permission] | None = None
    """None grants everything the holder may do."""
    expires: TimestampMs | None = None
    creators: tuple[str, ...] = ()
    """Keys that led to it, first to last."""

    @property
    def is_bound(self) -> bool:
        return self.agent is not None or self.workspace is not None


@dataclass(frozen=True, slots=True)
class NewKey:
    change: RecordChange
    token: str


@dataclass(frozen=True, slots=True)
class IssuedKey:
    key: Record
    token: str
    """Returned only here; the server stores its hash."""


def by_agent_index(id: str) -> str:
    """Index key of the API keys bound to an agent."""
    return f"agent:{id}"


def by_creator_index(id: str) -> str:
    """Index key of the keys and codes that a key created, directly or through others."""
    return f"creator:{id}"


def new_key(ports: Ports, tenant: str, spec: KeySpec, token: str | None = None) -> NewKey:
    """Build a key and its record change, for the caller to commit."""
    token = token or ports.clock.new_token("carrel")
    token_hash = hash_token(token)
    key = KeyRecord(
        name=spec.name,
        kind=spec.kind,
        person_id=spec.person,
        agent_id=spec.agent,
        workspace=spec.workspace,
        scopes=None if spec.scopes is None else sorted(spec.scopes),
        hash=token_hash,
        expires=spec.expires or 0,
        # An operator may choose a short token: store at most a quarter of it in the clear.
        prefix=token[: min(_PREFIX_LENGTH, len(token) // 4)],
        creators=list(spec.creators[-_MAX_CREATORS:]),
    )
    return NewKey(key_change(tenant, ports.clock.new_id("key"), key), token)


def key_change(
    tenant: str, id: str, key: KeyRecord, existing: Record | None = None
) -> RecordChange:
    index_keys = [by_person_index(key.person_id)] if key.person_id else []
    index_keys += [by_agent_index(key.agent_id)] if key.agent_id else []
    index_keys += map(by_creator_index, key.creators)
    return RecordChange(
        tenant,
        RecordType.KEY,
        id,
        encode_body(key, existing),
        existing.revision if existing else 0,
        unique_keys=(key_unique_key(key.hash),),
        index_keys=tuple(index_keys),
    )


@retry_on_conflict()
async def create(
    ports: Ports, actor: Actor, spec: KeySpec, idempotency_key: IdempotencyKey | None = None
) -> IssuedKey:
    """Issue a key that is worth no more and lives no longer than the caller's own.

    Raises ValidationError for an inconsistent spec, Forbidden for more than the caller has and for
    a key of another person, and NotFound for an unknown agent.
    """
    require_unconfined(actor)
    rules = await load_rules(ports, actor.tenant)
    requested = _validate_spec(ports, actor, rules.redact_fields(spec))
    if requested.kind is not CredentialKind.PERSON:
        actor.require(Permission.TENANT_ADMIN)
    key_spec, expected_revisions = await _resolve_holder(ports, actor, requested)
    key = new_key(ports, actor.tenant, key_spec)
    committed_at = await commit_changes(
        ports,
        actor,
        "create a key",
        [key.change],
        collection_revisions=expected_revisions,
        idempotency_key=idempotency_key,
    )
    return IssuedKey(record_after(key.change, committed_at), key.token)


def _validate_spec(ports: Ports, actor: Actor, spec: KeySpec) -> KeySpec:
    """Validate the spec and fill in its defaults."""
    person = spec.person
    if spec.kind is CredentialKind.PERSON:
        person = person or actor.person
        if person is None or person != actor.person:
            raise Forbidden("a person's key is created only by that person: invite the person")
    elif person is not None:
        raise ValidationError(f"a key of kind {spec.kind} has no personId")
    if spec.kind is CredentialKind.AGENT and spec.agent is None:
        raise ValidationError("an agent's key needs an agentId")
    if spec.agent is not None and spec.workspace is not None:
        raise ValidationError("a key is bound to an agent or to a workspace, not to both")
    now = ports.clock.now()
    if spec.expires is not None and not now < spec.expires <= now + MAX_KEY_LIFETIME_MS:
        raise ValidationError("expiresAt must be in the future and at most 100 years ahead")
    if spec.workspace is not None:
        parse_identifier(spec.workspace)
    return replace(
        spec, name=single_line(spec.name, "name"), person=person, scopes=_allowed_scopes(spec)
    )


def _allowed_scopes(spec: KeySpec) -> frozenset[Permission] | None:
    """Validate the scopes; a key bound to one workspace gets no tenant permissions."""
    if spec.scopes is not None and not spec.scopes:
        raise ValidationError("scopes must name at least one scope")
    if not spec.is_bound:
        return spec.scopes
    if spec.scopes is None:
        return MACHINE_PERMISSIONS
    if excess := spec.scopes - MACHINE_PERMISSIONS:
        raise ValidationError(f"a bound key cannot carry {', '.join(sorted(excess))}")
    return spec.scopes


async def _resolve_holder(
    ports: Ports, actor: Actor, spec: KeySpec
) -> tuple[KeySpec, list[CollectionRevision]]:
    """Resolve the holder, check its permissions, and return the revisions read."""
    record_types = [RecordType.KEY]
    record_types += [RecordType.PERSON] if spec.person else []
    record_types += [RecordType.AGENT] if spec.agent else []
    expected_revisions = await load_collection_revisions(ports, actor.tenant, record_types)
    role, agent = None, None
    if spec.person is not None:
        person = await get_record(ports, actor.tenant, RecordType.PERSON, spec.person)
        role = person_from_record(person).role
    if spec.agent is not None:
        agent = (await get_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, spec.agent)).id
    spec = await limit_to_callers_key(ports, actor, spec, role)
    return replace(spec, agent=agent), expected_revisions


def require_unconfined(actor: Actor) -> None:
    if actor.is_confined:
        raise Forbidden("a credential that is confined to one workspace cannot create keys")


async def limit_to_callers_key(
    ports: Ports, actor: Actor, spec: KeySpec, role: Role | None
) -> KeySpec:
    """Return the spec with the creators, and the end and scopes of the caller's key if it has any.

    Raises Forbidden for a spec with more permissions or a later end. A key without scopes grows
    with its holder's role; one created by a key with scopes must not.
    """
    permissions = _require_grantable(actor, spec, role)
    if not actor.key:
        return spec
    [record] = await ports.records.get(actor.tenant, RecordType.KEY, [actor.key])
    if record is None:
        raise Unauthenticated(INVALID_CREDENTIAL)
    callers_key = key_from_record(record)
    spec = replace(spec, creators=(*callers_key.creators, actor.key))
    if callers_key.scopes is not None:
        spec = replace(spec, scopes=permissions)
    if not callers_key.expires:
        return spec
    if spec.expires is not None and spec.expires > callers_key.expires:
        raise Forbidden("a key cannot outlive the key that creates it")
    return replace(spec, expires=spec.expires or callers_key.expires)


def _require_grantable(actor: Actor, spec: KeySpec, role: Role | None) -> frozenset[Permission]:
    """Return the permissions of the key. Raises Forbidden if the caller lacks one."""
    permissions = effective_permissions(spec.kind, role, spec.scopes)
    if spec.scopes is not None and (excess := spec.scopes - permissions):
        raise Forbidden(f"the key's holder does not have {', '.join(sorted(excess))}")
    _require_carried(actor, permissions)
    return permissions


def _require_carried(actor: Actor, permissions: frozenset[Permission]) -> None:
    if excess := permissions - actor.permissions:
        raise Forbidden(
            f"this credential does not carry {', '.join(sorted(excess))}, which the key has"
        )


async def get(ports: Ports, actor: Actor, id: str) -> Record:
    """Get a key: one of the caller's own, or any if the caller is a tenant admin."""
    key = await get_record(ports, actor.tenant, RecordType.KEY, id)
    if not _is_visible(actor, key):
        raise NotFound(f"no such {RecordType.KEY}: {id}")
    return key


async def list_keys(
    ports: Ports, actor: Actor, *, cursor: str = "", limit: int = 100
) -> Page[Record]:
    """List the caller's own keys, or all keys if the caller administers the tenant."""
    if Permission.TENANT_ADMIN in actor.permissions:
        return await list_page(ports, actor.tenant, RecordType.KEY, cursor=cursor, limit=limit)
    if actor.person is None:
        validate_cursor(cursor, ID_PREFIXES[RecordType.KEY])
        callers_keys = await ports.records.get(
            actor.tenant, RecordType.KEY, [actor.key] if actor.key else []
        )
        own_keys = tuple(key for key in callers_keys if key and key.id > cursor)
        return Page(own_keys, None, None if cursor else len(own_keys))
    matching = RecordFilter((by_person_index(actor.person),))
    return await list_page(
        ports, actor.tenant, RecordType.KEY, matching=matching, cursor=cursor, limit=limit
    )


async def last_used(ports: Ports, keys: tuple[Record, ...]) -> tuple[TimestampMs | None, ...]:
    """Return when each key was last used: the later of the stored and in-memory times."""
    stored = await ports.records.last_used([key.id for key in keys])
    in_memory = [ports.key_last_used.get(key.id) for key in keys]
    return tuple(
        max(filter(None, timestamps), default=None)
        for timestamps in zip(stored, in_memory, strict=True)
    )


@retry_on_conflict()
async def revoke(
    ports: Ports,
    actor: Actor,
    id: str,
    idempotency_key: IdempotencyKey | None = None,
    *,
    with_created: bool = False,
) -> None:
    """Delete a key; it stops working with the next request.

    `with_created` also deletes the keys and invitations that it led to: those that it created or
    rotated, and theirs, even if the key itself is gone. Raises NotFound, and Forbidden for another
    key that is worth more than the caller's own.
    """
    expected_revisions, revoked = list[CollectionRevision](), list[Record]()
    if with_created:
        expected_revisions = await load_collection_revisions(ports, actor.tenant, _CREATED_TYPES)
        revoked = await _load_created(ports, actor.tenant, id)
    try:
        revoked.append(await get(ports, actor, id))
    except NotFound:
        if not any(_is_visible(actor, record) for record in revoked):
            raise
    for record in revoked:
        _require_revocable(actor, record)
    await commit_changes(
        ports,
        actor,
        "revoke a key and those that it created" if with_created else "revoke a key",
        [deletion(record) for record in revoked],
        collection_revisions=expected_revisions,
        idempotency_key=idempotency_key,
    )


async def _load_created(ports: Ports, tenant: str, id: str) -> list[Record]:
    """Load the keys and sign-in codes that a key led to."""
    return [
        record
        for record_type in _CREATED_TYPES
        async for record in iter_records(ports, tenant, record_type, by_creator_index(id))
    ]


def _require_revocable(actor: Actor, record: Record) -> None:
    """Raise Forbidden for what is neither the caller's nor worth as little, unless they are admin.

    Only admins issue invitations.
    """
    if record.id == actor.key or Permission.TENANT_ADMIN in actor.permissions:
        return
    if record.type is not RecordType.KEY or not is_callers_key(actor, record):
        raise Forbidden(f"only an owner or admin may revoke {record.id}, which the key created")
    key = key_from_record(record)
    scopes = None if key.scopes is None else frozenset(key.scopes)
    _require_carried(actor, effective_permissions(key.kind, actor.role, scopes))


def _is_visible(actor: Actor, record: Record) -> bool:
    """Whether the caller may know of a key or an invitation."""
    is_own = record.type is RecordType.KEY and is_callers_key(actor, record)
    return is_own or Permission.TENANT_ADMIN in actor.permissions


def is_callers_key(actor: Actor, key: Record) -> bool:
    return key.id == actor.key or (
        actor.person is not None and key_from_record(key).person_id == actor.person
    )
