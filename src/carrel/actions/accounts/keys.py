"""Keys: what a person, a service or an agent shows to be let in. Only their hashes are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from carrel.actions.accounts.credentials import hash_of, key_handle
from carrel.actions.accounts.people import of_person
from carrel.actions.records import (
    PREFIXES,
    Page,
    collection_revisions,
    commit_changes,
    find,
    find_by_id_or_slug,
    page,
    record_after,
    retry_while_busy,
    validate_cursor,
)
from carrel.core.access import MACHINE, Actor, CredentialKind, Permission, Role, granted
from carrel.core.errors import Forbidden, NotFound, ValidationError
from carrel.core.identifiers import TimestampMs, identifier
from carrel.core.store.record import CollectionRevision, Record, RecordChange, RecordType
from carrel.core.store.tree import IdempotencyKey
from carrel.core.text_validation import single_line
from carrel.ports import Ports

LONGEST_LIFE: Final = 100 * 366 * 86_400_000
_SHOWN: Final = 12
"""Characters of a token that are kept in the clear, to recognise it by."""


@dataclass(frozen=True, slots=True)
class KeySpec:
    """What a key is: whose, confined to what, good for what and how long."""

    name: str
    kind: CredentialKind
    person: str | None = None
    agent: str | None = None
    workspace: str | None = None
    scopes: frozenset[Permission] | None = None
    """None: all that its holder may do."""
    expires: TimestampMs | None = None

    @property
    def bound(self) -> bool:
        return self.agent is not None or self.workspace is not None


@dataclass(frozen=True, slots=True)
class NewKey:
    change: RecordChange
    token: str


@dataclass(frozen=True, slots=True)
class IssuedKey:
    key: Record
    token: str
    """Shown this once."""


def agent_keys_index(id: str) -> str:
    """The link under which an agent's keys are listed."""
    return f"agent:{id}"


def new_key(ports: Ports, tenant: str, holding: KeySpec, token: str | None = None) -> NewKey:
    """A key on its way into the store, for a commit that makes it and perhaps more."""
    token = token or ports.clock.new_token("carrel")
    hashed = hash_of(token)
    scopes = None if holding.scopes is None else sorted(scope.value for scope in holding.scopes)
    body = {
        "name": holding.name,
        "kind": holding.kind.value,
        "personId": holding.person,
        "agentId": holding.agent,
        "workspace": holding.workspace,
        "scopes": scopes,
        "hash": hashed,
        "expires": holding.expires or 0,
        # A token that an operator chose may be short: most of it stays unknown all the same.
        "prefix": token[: min(_SHOWN, len(token) // 4)],
    }
    index_keys = [of_person(holding.person)] if holding.person else []
    index_keys += [agent_keys_index(holding.agent)] if holding.agent else []
    change = RecordChange(
        tenant,
        RecordType.KEY,
        ports.clock.new_id("key"),
        body,
        expected=0,
        unique_keys=(key_handle(hashed),),
        index_keys=tuple(index_keys),
    )
    return NewKey(change, token)


async def create(
    ports: Ports, actor: Actor, wanted: KeySpec, receipt: IdempotencyKey | None = None
) -> IssuedKey:
    """Issue a key that is worth no more than the caller's own.

    Raises Malformed for what does not go together, Forbidden for more than the caller may give,
    Missing for a person or an agent that is not there.
    """
    if actor.is_confined:
        raise Forbidden("a credential that is confined to one workspace cannot make keys")
    asked = _checked(ports, actor, wanted)
    if asked.person is None or asked.person != actor.person:
        actor.require(Permission.TENANT_ADMIN)

    async def attempt() -> IssuedKey:
        holding, rests = await _settled(ports, actor, asked)
        key = new_key(ports, actor.tenant, holding)
        at = await commit_changes(
            ports,
            actor.name,
            "make a key",
            [key.change],
            collection_revisions=rests,
            receipt=receipt,
        )
        return IssuedKey(record_after(key.change, at), key.token)

    return await retry_while_busy(attempt)


def _checked(ports: Ports, actor: Actor, wanted: KeySpec) -> KeySpec:
    """What is asked for, complete and in itself sound."""
    person = wanted.person
    if wanted.kind is CredentialKind.PERSON:
        person = person or actor.person
        if person is None:
            raise ValidationError("a person's key needs a personId")
    elif person is not None:
        raise ValidationError(f"a key of kind {wanted.kind} has no personId")
    if wanted.kind is CredentialKind.AGENT and wanted.agent is None:
        raise ValidationError("an agent's key needs an agentId")
    if wanted.agent is not None and wanted.workspace is not None:
        raise ValidationError("a key is bound to an agent or to a workspace, not to both")
    now = ports.clock.now()
    if wanted.expires is not None and not now < wanted.expires <= now + LONGEST_LIFE:
        raise ValidationError("expiresAt must be in the future, and at most a hundred years ahead")
    if wanted.workspace is not None:
        identifier(wanted.workspace)
    return replace(
        wanted, name=single_line(wanted.name, "name"), person=person, scopes=_confined(wanted)
    )


def _confined(wanted: KeySpec) -> frozenset[Permission] | None:
    """A key that is bound to one workspace has no say in the tenant's affairs."""
    if wanted.scopes is not None and not wanted.scopes:
        raise ValidationError("scopes, where given, names at least one")
    if not wanted.bound:
        return wanted.scopes
    if wanted.scopes is None:
        return MACHINE
    if beyond := wanted.scopes - MACHINE:
        raise ValidationError(f"a bound key cannot carry {', '.join(sorted(beyond))}")
    return wanted.scopes


async def _settled(
    ports: Ports, actor: Actor, asked: KeySpec
) -> tuple[KeySpec, list[CollectionRevision]]:
    """The key with its holder found and its worth weighed, and what that rests on."""
    record_types = [
        record_type
        for record_type, id in ((RecordType.PERSON, asked.person), (RecordType.AGENT, asked.agent))
        if id
    ]
    rests = await collection_revisions(ports, actor.tenant, record_types)
    role, agent = None, None
    if asked.person is not None:
        role = Role((await find(ports, actor.tenant, RecordType.PERSON, asked.person)).body["role"])
    if asked.agent is not None:
        agent = (await find_by_id_or_slug(ports, actor.tenant, RecordType.AGENT, asked.agent)).id
    _weigh(actor, asked, role)
    return replace(asked, agent=agent), rests


def _weigh(actor: Actor, asked: KeySpec, role: Role | None) -> None:
    carried = granted(asked.kind, role, asked.scopes)
    if asked.scopes is not None and (beyond := asked.scopes - carried):
        raise Forbidden(f"its holder does not have {', '.join(sorted(beyond))}")
    if beyond := carried - actor.permissions:
        raise Forbidden(
            f"this credential does not carry {', '.join(sorted(beyond))}: "
            "name fewer scopes, within its own"
        )
    if role is Role.OWNER and actor.role is not Role.OWNER:
        raise Forbidden("only an owner may make a key for an owner")


async def get(ports: Ports, actor: Actor, id: str) -> Record:
    """One of the caller's own keys, or any for who may administer the tenant."""
    key = await find(ports, actor.tenant, RecordType.KEY, id)
    if Permission.TENANT_ADMIN not in actor.permissions and not _own(actor, key):
        raise NotFound(f"there is no {RecordType.KEY} {id}")
    return key


async def listing(
    ports: Ports, actor: Actor, *, cursor: str = "", limit: int = 100
) -> Page[Record]:
    """The caller's own keys, or all of them for who may administer the tenant."""
    if Permission.TENANT_ADMIN in actor.permissions:
        return await page(ports, actor.tenant, RecordType.KEY, cursor=cursor, limit=limit)
    if actor.person is None:
        validate_cursor(cursor, PREFIXES[RecordType.KEY])
        own = await ports.records.get(
            actor.tenant, RecordType.KEY, [actor.key] if actor.key else []
        )
        return Page(tuple(key for key in own if key and key.id > cursor), None)
    link = of_person(actor.person)
    return await page(ports, actor.tenant, RecordType.KEY, link=link, cursor=cursor, limit=limit)


async def last_used(ports: Ports, keys: tuple[Record, ...]) -> tuple[TimestampMs | None, ...]:
    """When each was last used: as written down, or as noted since by this process."""
    written = await ports.records.last_used([key.id for key in keys])
    noted = [ports.key_last_used.get(key.id) for key in keys]
    return tuple(max(filter(None, both), default=None) for both in zip(written, noted, strict=True))


async def revoke(
    ports: Ports, actor: Actor, id: str, receipt: IdempotencyKey | None = None
) -> None:
    """From the next request on it opens nothing."""

    async def attempt() -> None:
        key = await get(ports, actor, id)
        change = RecordChange(key.tenant, RecordType.KEY, key.id, None, key.revision)
        await commit_changes(ports, actor.name, "revoke a key", [change], receipt=receipt)

    await retry_while_busy(attempt)


def _own(actor: Actor, key: Record) -> bool:
    return key.id == actor.key or (
        actor.person is not None and key.body["personId"] == actor.person
    )
