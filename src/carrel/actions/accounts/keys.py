"""Keys: what a person, a service or an agent shows to be let in. Only their hashes are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from carrel.actions.accounts.credentials import hash_of, key_handle
from carrel.actions.accounts.people import of_person
from carrel.actions.records import (
    PREFIXES,
    Page,
    became,
    commit_changes,
    find,
    find_named,
    insist,
    issued,
    page,
    shelves,
)
from carrel.core.access import MACHINE, Actor, KeyKind, Permission, Role, granted
from carrel.core.errors import Forbidden, Malformed, Missing
from carrel.core.identifiers import Moment, identifier
from carrel.core.store.record import Change, Noun, Record, Shelf
from carrel.core.store.tree import ReceiptKey
from carrel.core.text_validation import line
from carrel.ports import World

LONGEST_LIFE: Final = 100 * 366 * 86_400_000
_SHOWN: Final = 12
"""Characters of a token that are kept in the clear, to recognise it by."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What a key is: whose, confined to what, good for what and how long."""

    name: str
    kind: KeyKind
    person: str | None = None
    agent: str | None = None
    workspace: str | None = None
    scopes: frozenset[Permission] | None = None
    """None: all that its holder may do."""
    expires: Moment | None = None

    @property
    def bound(self) -> bool:
        return self.agent is not None or self.workspace is not None


@dataclass(frozen=True, slots=True)
class Made:
    change: Change
    token: str


@dataclass(frozen=True, slots=True)
class Issued:
    key: Record
    token: str
    """Shown this once."""


def of_agent(id: str) -> str:
    """The link under which an agent's keys are listed."""
    return f"agent:{id}"


def made(world: World, tenant: str, holding: Holding, token: str | None = None) -> Made:
    """A key on its way into the store, for a commit that makes it and perhaps more."""
    token = token or world.clock.token("carrel")
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
    links = [of_person(holding.person)] if holding.person else []
    links += [of_agent(holding.agent)] if holding.agent else []
    change = Change(
        tenant,
        Noun.KEY,
        world.clock.fresh("key"),
        body,
        expected=0,
        handles=(key_handle(hashed),),
        links=tuple(links),
    )
    return Made(change, token)


async def create(
    world: World, actor: Actor, wanted: Holding, receipt: ReceiptKey | None = None
) -> Issued:
    """Issue a key that is worth no more than the caller's own.

    Raises Malformed for what does not go together, Forbidden for more than the caller may give,
    Missing for a person or an agent that is not there.
    """
    if actor.bound:
        raise Forbidden("a credential that is confined to one workspace cannot make keys")
    asked = _checked(world, actor, wanted)
    if asked.person is None or asked.person != actor.person:
        actor.must(Permission.TENANT_ADMIN)

    async def attempt() -> Issued:
        holding, rests = await _settled(world, actor, asked)
        key = made(world, actor.tenant, holding)
        at = await commit_changes(
            world, actor.name, "make a key", [key.change], shelves=rests, receipt=receipt
        )
        return Issued(became(key.change, at), key.token)

    return await insist(attempt)


def _checked(world: World, actor: Actor, wanted: Holding) -> Holding:
    """What is asked for, complete and in itself sound."""
    person = wanted.person
    if wanted.kind is KeyKind.PERSON:
        person = person or actor.person
        if person is None:
            raise Malformed("a person's key needs a personId")
    elif person is not None:
        raise Malformed(f"a key of kind {wanted.kind} has no personId")
    if wanted.kind is KeyKind.AGENT and wanted.agent is None:
        raise Malformed("an agent's key needs an agentId")
    if wanted.agent is not None and wanted.workspace is not None:
        raise Malformed("a key is bound to an agent or to a workspace, not to both")
    now = world.clock.now()
    if wanted.expires is not None and not now < wanted.expires <= now + LONGEST_LIFE:
        raise Malformed("expiresAt must be in the future, and at most a hundred years ahead")
    if wanted.workspace is not None:
        identifier(wanted.workspace)
    return replace(wanted, name=line(wanted.name, "name"), person=person, scopes=_confined(wanted))


def _confined(wanted: Holding) -> frozenset[Permission] | None:
    """A key that is bound to one workspace has no say in the tenant's affairs."""
    if wanted.scopes is not None and not wanted.scopes:
        raise Malformed("scopes, where given, names at least one")
    if not wanted.bound:
        return wanted.scopes
    if wanted.scopes is None:
        return MACHINE
    if beyond := wanted.scopes - MACHINE:
        raise Malformed(f"a bound key cannot carry {', '.join(sorted(beyond))}")
    return wanted.scopes


async def _settled(world: World, actor: Actor, asked: Holding) -> tuple[Holding, list[Shelf]]:
    """The key with its holder found and its worth weighed, and what that rests on."""
    nouns = [noun for noun, id in ((Noun.PERSON, asked.person), (Noun.AGENT, asked.agent)) if id]
    rests = await shelves(world, actor.tenant, nouns)
    role, agent = None, None
    if asked.person is not None:
        role = Role((await find(world, actor.tenant, Noun.PERSON, asked.person)).body["role"])
    if asked.agent is not None:
        agent = (await find_named(world, actor.tenant, Noun.AGENT, asked.agent)).id
    _weigh(actor, asked, role)
    return replace(asked, agent=agent), rests


def _weigh(actor: Actor, asked: Holding, role: Role | None) -> None:
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


async def get(world: World, actor: Actor, id: str) -> Record:
    """One of the caller's own keys, or any for who may administer the tenant."""
    key = await find(world, actor.tenant, Noun.KEY, id)
    if Permission.TENANT_ADMIN not in actor.permissions and not _own(actor, key):
        raise Missing(f"there is no {Noun.KEY} {id}")
    return key


async def listing(
    world: World, actor: Actor, *, cursor: str = "", limit: int = 100
) -> Page[Record]:
    """The caller's own keys, or all of them for who may administer the tenant."""
    if Permission.TENANT_ADMIN in actor.permissions:
        return await page(world, actor.tenant, Noun.KEY, cursor=cursor, limit=limit)
    if actor.person is None:
        issued(cursor, PREFIXES[Noun.KEY])
        own = await world.records.get(actor.tenant, Noun.KEY, [actor.key] if actor.key else [])
        return Page(tuple(key for key in own if key and key.id > cursor), None)
    link = of_person(actor.person)
    return await page(world, actor.tenant, Noun.KEY, link=link, cursor=cursor, limit=limit)


async def last_used(world: World, keys: tuple[Record, ...]) -> tuple[Moment | None, ...]:
    """When each was last used: as written down, or as noted since by this process."""
    written = await world.records.last_used([key.id for key in keys])
    noted = [world.marks.get(key.id) for key in keys]
    return tuple(max(filter(None, both), default=None) for both in zip(written, noted, strict=True))


async def revoke(world: World, actor: Actor, id: str, receipt: ReceiptKey | None = None) -> None:
    """From the next request on it opens nothing."""

    async def attempt() -> None:
        key = await get(world, actor, id)
        change = Change(key.tenant, Noun.KEY, key.id, None, key.revision)
        await commit_changes(world, actor.name, "revoke a key", [change], receipt=receipt)

    await insist(attempt)


def _own(actor: Actor, key: Record) -> bool:
    return key.id == actor.key or (
        actor.person is not None and key.body["personId"] == actor.person
    )
