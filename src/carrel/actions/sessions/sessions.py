"""Sessions: what is said in them is kept as it was said, and can be read, exported and found."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from carrel.actions.approvals import approvals
from carrel.actions.overlay import stacks
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.progress import ProgressCounter, Watch, no_progress
from carrel.actions.records import Page
from carrel.core import sessions
from carrel.core.access import Actor
from carrel.core.errors import Conflict, NotFound, PayloadTooLarge, ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.redaction.redactor import Redactor
from carrel.core.runs import Audience, mode_of
from carrel.core.search.full_text import query_terms, ranked
from carrel.core.sessions import (
    LONGEST_CONTENT,
    LONGEST_NAME,
    Session,
    SessionAppend,
    SpeakerRole,
    TranscriptEntry,
    TranscriptHit,
    session_id,
)
from carrel.core.store.record import RecordType
from carrel.core.store.tree import IdempotencyKey
from carrel.ports import Ports

MOST_AT_ONCE: Final = 100
"""Entries that one call may add."""
_CANDIDATES: Final = 200
"""Texts that are looked at to find those which answer a query best."""
_PAGE: Final = 500
_SLOW: Final = 256 * 1024
"""Characters from which on ranking is done in a thread."""
_NAME: Final = re.compile(rf"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{{0,{LONGEST_NAME}}}")
_CURSOR: Final = re.compile(r"([0-9]{1,18})\.([0-9a-f-]{36})")


@dataclass(frozen=True, slots=True)
class NewEntry:
    """What is to be kept of one thing that was said."""

    role: str
    content: str
    message: str | None = None
    plugin: str = ""
    sender: str | None = None


async def start(
    ports: Ports,
    actor: Actor,
    agent: str,
    *,
    id: str | None = None,
    plugin: str = "",
    scope: str | None = None,
) -> Session:
    """Begin a session, or return the one of that id as `begin` does."""
    session, _ = await begin(ports, actor, agent, id=id, plugin=plugin, scope=scope)
    return session


async def begin(
    ports: Ports, actor: Actor, agent: str, *, id: str | None, plugin: str, scope: str | None
) -> tuple[Session, bool]:
    """Begin a session; one that is there already is returned as it is.

    Also whether it is new. Raises Malformed, Missing, and Taken where another agent has a session
    of that id, or where others are listening and it began as a private one: who says so would
    take it for one in which nothing private is told.
    """
    owner = await _agent(ports, actor, agent)
    given = session_id(id) if id is not None else sessions.drawn_id(ports.clock.new_token("ses"))
    redactor = (await load_rules(ports, actor.tenant)).redactor
    now = ports.clock.now()
    new = Session(
        tenant=actor.tenant,
        id=given,
        agent=owner,
        mode=mode_of(scope),
        plugin=_name(redactor, plugin, "sourcePlugin"),
        started=now,
        last_entry_at=now,
    )
    [found] = await ports.sessions.start([new])
    if found.agent != owner:
        raise Conflict("there already is a session of that id")
    if new.mode is Audience.SHARED and found.mode is not Audience.SHARED:
        raise Conflict(
            "the session began as a main one, and its scope never changes", scope=Audience.MAIN
        )
    return found, found == new


async def append(
    ports: Ports,
    actor: Actor,
    agent: str,
    id: str,
    said: Sequence[NewEntry],
    receipt: IdempotencyKey | None = None,
) -> tuple[TranscriptEntry, ...]:
    """Keep what was said, all of it or nothing, and return it as it is kept.

    It stands whatever becomes of the turn it belongs to. Where a user says something, calls that
    wait there for an approval are cancelled. Raises Malformed, Missing, BodyTooLarge,
    and Taken where the session is closed.
    """
    session = await get(ports, actor, agent, id)
    if not 1 <= len(said) <= MOST_AT_ONCE:
        raise ValidationError(f"1 to {MOST_AT_ONCE} entries can be added at a time")
    redactor = (await load_rules(ports, actor.tenant)).redactor
    now = ports.clock.now()
    kept = tuple(_kept(redactor, one, now) for one in said)
    addition = SessionAppend(session.tenant, session.id, session.agent, kept, receipt)
    [became] = await ports.sessions.append([addition])
    if became is None:
        await get(ports, actor, agent, id)
        raise Conflict("the session is closed")
    if any(one.role is SpeakerRole.USER for one in kept):
        await approvals.supersede(ports, session.tenant, session.id)
    first = became.entries - len(kept) + 1
    return tuple(
        TranscriptEntry(first + n, now, one.role, one.content, one.message, one.plugin, one.sender)
        for n, one in enumerate(kept)
    )


async def close(ports: Ports, actor: Actor, agent: str, id: str) -> Session:
    """End a session: nothing more is said in it. What has ended stays as it ended."""
    session = await get(ports, actor, agent, id)
    now = ports.clock.now()
    [closed] = await ports.sessions.close(session.tenant, session.agent, [session.id], now)
    if closed is None:
        raise NotFound("there is no such session")
    return closed


async def get(ports: Ports, actor: Actor, agent: str, id: str) -> Session:
    """A session of this agent. Raises Missing, also for what could be no id."""
    owner = await _agent(ports, actor, agent)
    try:
        [found] = await ports.sessions.get(actor.tenant, [session_id(id)])
    except ValidationError:
        found = None
    if found is None or found.agent != owner:
        raise NotFound("there is no such session")
    return found


async def listing(
    ports: Ports,
    actor: Actor,
    agent: str,
    *,
    mode: Audience | None = None,
    cursor: str = "",
    limit: int = 100,
) -> Page[Session]:
    """An agent's sessions, that in which something was said last first; of one mode if asked."""
    owner = await _agent(ports, actor, agent)
    found = await ports.sessions.list(
        actor.tenant, owner, mode=mode, before=_place(cursor), limit=limit + 1
    )
    if len(found) <= limit:
        return Page(found, None)
    last = found[limit - 1]
    return Page(found[:limit], f"{last.last_entry_at}.{last.id}")


async def entries(
    ports: Ports, actor: Actor, agent: str, id: str, *, after: int = 0, limit: int = 100
) -> tuple[Session, tuple[TranscriptEntry, ...]]:
    """A session, and what was said in it past a number, in order.

    Where much was said at a time fewer may come than asked for; there are more until the last has
    the number of ``session.entries``.
    """
    session = await get(ports, actor, agent, id)
    said = await ports.sessions.read(session.tenant, session.id, after=after, limit=limit)
    return session, said


async def recent(
    ports: Ports, actor: Actor, agent: str, id: str, *, limit: int = 10
) -> tuple[Session, tuple[TranscriptEntry, ...]]:
    """A session, and what was said last in it, in order."""
    session = await get(ports, actor, agent, id)
    said: list[TranscriptEntry] = []
    at = max(0, session.entries - limit)
    while some := await ports.sessions.read(session.tenant, session.id, after=at, limit=limit):
        said += some
        at = some[-1].sequence
    return session, tuple(said[-limit:]) if limit else ()


async def search(
    ports: Ports,
    actor: Actor,
    agent: str,
    query: str,
    *,
    mode: Audience | None = None,
    limit: int = 50,
) -> tuple[TranscriptHit, ...]:
    """What was said that answers a query best: by its words and by how they begin.

    With a mode only what was said in sessions of that mode.
    """
    owner = await _agent(ports, actor, agent)
    wanted = query_terms(query)
    found: dict[tuple[str, int], TranscriptHit] = {}
    for every in (True, False):
        if len(found) < limit:
            hits = await ports.sessions.search(
                actor.tenant, owner, wanted, every=every, mode=mode, limit=max(limit, _CANDIDATES)
            )
            found |= {(hit.session, hit.utterance.sequence): hit for hit in hits}
    told = [(key, hit.utterance.content, hit.utterance.at) for key, hit in found.items()]
    slow = sum(len(content) for _, content, _ in told) > _SLOW
    order = await asyncio.to_thread(ranked, query, told) if slow else ranked(query, told)
    return tuple(found[key] for key in order[:limit])


async def jsonl(ports: Ports, session: Session) -> AsyncIterator[bytes]:
    """The lines of a session's transcript, as far as it went when it was asked for."""
    [agent] = await ports.records.get(session.tenant, RecordType.AGENT, [session.agent])
    yield sessions.heading(session, agent.body["slug"] if agent else session.agent)
    at = 0
    while at < session.entries:
        limit = min(_PAGE, session.entries - at)
        said = await ports.sessions.read(session.tenant, session.id, after=at, limit=limit)
        if not said:
            return
        yield sessions.lines(said)
        at = said[-1].sequence


async def reindex(ports: Ports, watch: Watch = no_progress) -> int:
    """Make the full text of everything that was said again, and say how much there was.

    Until this has reached something, it is not found.
    """
    tally = ProgressCounter(watch, "indexing entries")
    total = await ports.sessions.unindex()
    tally.expect(total)
    place, done = None, 0
    while True:
        place, count = await ports.sessions.index(place, limit=_PAGE)
        if not count:
            return done
        if done < total:  # more may have been said meanwhile
            tally.add(min(count, total - done))
        done += count


async def _agent(ports: Ports, actor: Actor, name: str) -> str:
    """The id of an agent that this caller may know of. Raises Missing."""
    return (await stacks.agent_stack(ports, actor, name))[0].name


def _kept(redactor: Redactor, said: NewEntry, at: TimestampMs) -> TranscriptEntry:
    """As it may be kept: without secrets, wherever they stand."""
    try:
        role = SpeakerRole(said.role)
    except ValueError:
        raise ValidationError(f"a role is one of {', '.join(SpeakerRole)}") from None
    try:
        content = said.content.encode()
    except UnicodeEncodeError:
        raise ValidationError("content is text that UTF-8 can write") from None
    if len(content) > LONGEST_CONTENT:
        raise PayloadTooLarge(f"what is said at a time has at most {LONGEST_CONTENT} bytes")
    return TranscriptEntry(
        sequence=0,
        at=at,
        role=role,
        content=redactor.redact(content).content.decode(),
        message=_name(redactor, said.message or "", "messageId") or None,
        plugin=_name(redactor, said.plugin, "sourcePlugin"),
        sender=_name(redactor, said.sender or "", "senderId") or None,
    )


def _name(redactor: Redactor, text: str, what: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValidationError(f"{what} has at most {LONGEST_NAME} characters, none of control")
    return redactor.redact(text.encode()).content.decode() if redactor.finds_in(text) else text


def _place(cursor: str) -> tuple[TimestampMs, str] | None:
    if not cursor:
        return None
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise ValidationError("cursor is not one that a page has given")
    return int(found[1]), found[2]
