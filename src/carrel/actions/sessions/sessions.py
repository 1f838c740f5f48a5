"""Sessions: append, read, export and search transcript entries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from carrel.actions.agent_access import authorize_agent_read
from carrel.actions.approvals import approvals
from carrel.actions.overlay import stacks
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import Page
from carrel.actions.run_reports import report_runs
from carrel.actions.search_candidates import MAX_CANDIDATES, find_entries
from carrel.actions.sessions.cursors import encode_cursor, parse_cursor
from carrel.actions.sessions.new_entries import NewEntry, clean_name, redact_entries
from carrel.core.access import Actor
from carrel.core.agents.private_access import PrivateResource
from carrel.core.errors import Conflict, NotFound, ValidationError
from carrel.core.identifiers import Scope, ScopeKind
from carrel.core.redaction.redactor import Redactor
from carrel.core.runs import Audience, parse_audience
from carrel.core.search.bm25 import rank_texts
from carrel.core.search.full_text import parse_query
from carrel.core.search.passages import Passage, find_passage
from carrel.core.sessions.session import (
    MAX_READ_BYTES,
    LastEntryChanged,
    Session,
    SessionAppend,
    SpeakerRole,
    TranscriptEntry,
)
from carrel.core.sessions.session_ids import (
    new_session_id,
    parse_session_id,
    session_id_from_number,
)
from carrel.core.store.idempotency import IdempotencyKey
from carrel.ports import Ports

MAX_ENTRIES_PER_APPEND: Final = 1000
PASSAGE_LENGTH: Final = 200
"""Characters of the passage of a search match, by default."""
_PAGE_SIZE: Final = 500
_MAX_UTF8_BYTES: Final = 4
"""Bytes of a character."""
_INLINE_RANKING_CHARS: Final = 256 * 1024
"""More characters are ranked in a thread."""


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """Request for a session."""

    id: str | None = None
    """None for a new id."""
    plugin: str = ""
    scope: str | None = None
    run: str | None = None
    """Run that the session belongs to from now on."""


@dataclass(frozen=True, slots=True)
class EntryMatch:
    """An entry found by a search, and its passage that matches best."""

    session: str
    entry: TranscriptEntry
    passage: Passage

    @property
    def is_whole(self) -> bool:
        """Whether the passage is the whole entry."""
        return len(self.passage.text) == len(self.entry.content)


async def start(
    ports: Ports,
    actor: Actor,
    agent: str,
    *,
    id: str | None = None,
    plugin: str = "",
    scope: str | None = None,
) -> Session:
    """Start a session, or return the existing one, like `start_or_get`."""
    session, _ = await start_or_get(ports, actor, agent, SessionRequest(id, plugin, scope))
    return session


async def start_or_get(
    ports: Ports,
    actor: Actor,
    agent: str,
    request: SessionRequest,
    idempotency_key: IdempotencyKey | None = None,
) -> tuple[Session, bool]:
    """Start a session or return the existing one; also whether it is new.

    With a run, the session belongs to it from now on. Raises ValidationError, NotFound, and
    Conflict if a shared session is requested and the existing one is private: the caller would
    otherwise treat private content as shared.
    """
    owner = await resolve_agent_id(ports, actor, agent)
    rules = await load_rules(ports, actor.tenant)
    now = ports.clock.now()
    new = Session(
        tenant=actor.tenant,
        id=_choose_id(ports, rules.redactor, request.id),
        agent=owner,
        mode=parse_audience(request.scope),
        plugin=clean_name(rules, request.plugin, "sourcePlugin"),
        started_at=now,
        last_entry_at=now,
        run=request.run,
    )
    if request.run is not None:
        [existing] = await ports.sessions.get(new.tenant, new.agent, [new.id])
        await require_runs(ports, existing or new, [request.run])
    [session] = await ports.sessions.start([new], idempotency_key)
    session = await _adapt(ports, session, new)
    return session, session == new


async def get_started(
    ports: Ports, actor: Actor, agent: str, number: int, request: SessionRequest
) -> Session:
    """Get the session whose start marked an idempotency key.

    Raises NotFound if it was deleted, and Conflict like `start_or_get`.
    """
    owner = await resolve_agent_id(ports, actor, agent)
    id = session_id_from_number(number) if request.id is None else parse_session_id(request.id)
    [session] = await ports.sessions.get(actor.tenant, owner, [id])
    if session is None:
        raise NotFound("no such session")
    mode = parse_audience(request.scope)
    return await _adapt(ports, session, replace(session, mode=mode, run=request.run))


async def _adapt(ports: Ports, session: Session, new: Session) -> Session:
    """Give a session the requested run. Raises Conflict if it is private and shared is asked."""
    if new.mode is Audience.SHARED and session.mode is not Audience.SHARED:
        raise Conflict(
            "the session has scope main, and a session's scope cannot change", scope=Audience.MAIN
        )
    if new.run is not None and session.run != new.run:
        session = replace(session, run=new.run)
        await ports.sessions.set_run([session])
    return session


def _choose_id(ports: Ports, redactor: Redactor, id: str | None) -> str:
    """Return the requested id, or a new one. Raises ValidationError."""
    if id is None:
        return new_session_id(ports.clock.new_token("ses"))
    if redactor.find_in_text(parse_session_id(id)):
        raise ValidationError("a session id must not contain a secret")
    return id


async def require_runs(ports: Ports, session: Session, ids: Sequence[str | None]) -> None:
    """Raise NotFound unless all of these are runs of the session's agent.

    Raises Conflict if one has another scope: who may open a shared run would read entries of a
    private session.
    """
    run_ids = sorted({id for id in ids if id is not None})
    scope = Scope(session.tenant, ScopeKind.AGENT, session.agent)
    runs = await ports.runs.get(session.tenant, run_ids) if run_ids else ()
    for id, run in zip(run_ids, runs, strict=True):
        if run is None or run.scope != scope:
            raise NotFound(f"no such run of this agent: {id}")
        if run.mode is not session.mode:
            raise Conflict(f"the run has scope {run.mode}, the session {session.mode}", run=id)


async def append(  # noqa: PLR0913 - the session, its entries and two conditions
    ports: Ports,
    actor: Actor,
    agent: str,
    id: str,
    new_entries: Sequence[NewEntry],
    idempotency_key: IdempotencyKey | None = None,
    *,
    after: int | None = None,
) -> tuple[TranscriptEntry, ...]:
    """Append entries in one transaction, all or none, and return them as stored.

    Entries stay even if the turn fails. A user entry cancels pending approvals of the session.
    Raises ValidationError, NotFound, PayloadTooLarge, and Conflict if the session is closed or if
    `after` is given and not the number of its last entry.
    """
    session = await get(ports, actor, agent, id)
    if not 1 <= len(new_entries) <= MAX_ENTRIES_PER_APPEND:
        raise ValidationError(f"1 to {MAX_ENTRIES_PER_APPEND} entries can be added at a time")
    await require_runs(ports, session, [entry.run for entry in new_entries])
    redacted = await redact_entries(ports, actor.tenant, new_entries)
    addition = SessionAppend(
        session.tenant, session.id, session.agent, redacted, idempotency_key, after
    )
    [updated] = await ports.sessions.append([addition])
    if isinstance(updated, LastEntryChanged):
        raise Conflict(
            f"the last entry of the session is {updated.last}, not {after}",
            lastNumber=updated.last,
        )
    if updated is None:
        await get(ports, actor, agent, id)
        raise Conflict("the session is closed")
    if any(entry.role is SpeakerRole.USER for entry in redacted):
        await approvals.supersede(ports, session.tenant, session.agent, session.id)
    first = updated.last_sequence - len(redacted) + 1
    run_ids = {run for entry in redacted if (run := entry.run or updated.run)}
    await report_runs(ports, session.tenant, run_ids)
    return tuple(
        replace(entry, sequence=first + n, run=entry.run or updated.run)
        for n, entry in enumerate(redacted)
    )


async def close(ports: Ports, actor: Actor, agent: str, id: str) -> Session:
    """Close a session; no entries can be added. A closed session stays unchanged."""
    session = await get(ports, actor, agent, id)
    now = ports.clock.now()
    [closed] = await ports.sessions.close(session.tenant, session.agent, [session.id], now)
    if closed is None:
        raise NotFound("no such session")
    return closed


async def get(ports: Ports, actor: Actor, agent: str, id: str) -> Session:
    """Get a session of this agent. Raises NotFound, also for a malformed id."""
    owner = await resolve_agent_id(ports, actor, agent)
    try:
        [session] = await ports.sessions.get(actor.tenant, owner, [parse_session_id(id)])
    except ValidationError:
        session = None
    if session is None:
        raise NotFound("no such session")
    return session


async def get_many(
    ports: Ports, actor: Actor, agent: str, ids: Sequence[str]
) -> tuple[Session, ...]:
    """Get sessions of an agent by their ids; omits missing ones."""
    owner = await resolve_agent_id(ports, actor, agent)
    rows = await ports.sessions.get(actor.tenant, owner, ids)
    return tuple(session for session in rows if session)


async def get_transcript(ports: Ports, actor: Actor, agent: str, id: str) -> Session:
    """Get a session like `get`, to read its entries; the audit names some readers."""
    session = await get(ports, actor, agent, id)
    await authorize_agent_read(ports, actor, PrivateResource.SESSIONS, session.agent)
    return session


async def list_sessions(
    ports: Ports,
    actor: Actor,
    agent: str,
    *,
    mode: Audience | None = None,
    cursor: str = "",
    limit: int = 100,
) -> Page[Session]:
    """List an agent's sessions, last active first, optionally of one audience.

    The first page has their number.
    """
    owner = await resolve_agent_id(ports, actor, agent)
    rows = await ports.sessions.list(
        actor.tenant, owner, mode=mode, before=parse_cursor(cursor), limit=limit + 1
    )
    if len(rows) <= limit:
        return Page(rows, None, None if cursor else len(rows))
    total: int | None = None
    if not cursor:
        [total] = await ports.sessions.count(actor.tenant, [owner], mode=mode)
    return Page(rows[:limit], encode_cursor(rows[limit - 1]), total)


async def list_entries(
    ports: Ports, actor: Actor, agent: str, id: str, *, after: int = 0, limit: int = 100
) -> tuple[Session, tuple[TranscriptEntry, ...]]:
    """Return a session and its entries after a sequence number.

    May return fewer than `limit`: nothing follows if the last one has `session.last_sequence`.
    """
    session = await get_transcript(ports, actor, agent, id)
    rows = await ports.sessions.read(*session_key(session), after=after, limit=limit)
    return session, rows


def cut_page(
    rows: Sequence[TranscriptEntry], limit: int, end: int
) -> tuple[Sequence[TranscriptEntry], bool]:
    """Return at most `limit` of the entries that were read, and whether others may follow.

    One entry more than the limit must have been requested. Nothing follows entry `end`.
    """
    may_be_cut = sum(entry.size for entry in rows) * _MAX_UTF8_BYTES >= MAX_READ_BYTES
    page = rows[:limit]
    has_others = bool(page) and page[-1].sequence != end
    return page, has_others and (len(rows) > limit or may_be_cut)


async def list_latest_entries(
    ports: Ports,
    actor: Actor,
    agent: str,
    id: str,
    *,
    before: int | None = None,
    limit: int = 100,
) -> tuple[Session, tuple[TranscriptEntry, ...]]:
    """Return a session and its entries before a sequence number, newest first."""
    session = await get_transcript(ports, actor, agent, id)
    rows = await ports.sessions.read_latest(*session_key(session), before=before, limit=limit)
    return session, rows


async def list_recent_entries(
    ports: Ports, actor: Actor, agent: str, id: str, *, limit: int = 10
) -> tuple[Session, tuple[TranscriptEntry, ...]]:
    """Return a session and its latest entries, in order."""
    session = await get_transcript(ports, actor, agent, id)
    rows: list[TranscriptEntry] = []
    before: int | None = None
    while len(rows) < limit and (
        batch := await ports.sessions.read_latest(
            *session_key(session), before=before, limit=limit - len(rows)
        )
    ):
        rows += batch
        before = batch[-1].sequence
    return session, tuple(reversed(rows))


async def get_entry(
    ports: Ports, actor: Actor, agent: str, id: str, number: int
) -> tuple[Session, TranscriptEntry]:
    """Return a session and one of its entries. Raises NotFound, also if it was removed."""
    session, rows = await list_entries(ports, actor, agent, id, after=number - 1, limit=1)
    if not rows or rows[0].sequence != number:
        raise NotFound(f"the session has no entry {number}")
    return session, rows[0]


async def search(  # noqa: PLR0913 - keyword options of one search
    ports: Ports,
    actor: Actor,
    agent: str,
    query: str,
    *,
    mode: Audience | None = None,
    limit: int = 50,
    max_chars: int = PASSAGE_LENGTH,
) -> tuple[EntryMatch, ...]:
    """Search entries by words and prefixes, best first, optionally of one audience.

    Each match has the passage of at most `max_chars` characters that matches best.
    """
    owner = await resolve_agent_id(ports, actor, agent)
    await authorize_agent_read(ports, actor, PrivateResource.SESSIONS, owner)
    statistics, hits = await find_entries(
        ports, actor.tenant, owner, query, mode=mode, limit=max(limit, MAX_CANDIDATES)
    )

    def rank() -> tuple[EntryMatch, ...]:
        texts = [(hit, hit.entry.content, hit.entry.at) for hit in hits]
        terms = parse_query(query).searched_terms
        return tuple(
            EntryMatch(hit.session, hit.entry, find_passage(terms, hit.entry.content, max_chars))
            for hit in [scored.key for scored in rank_texts(query, texts, statistics)[:limit]]
        )

    is_slow = sum(len(hit.entry.content) for hit in hits) > _INLINE_RANKING_CHARS
    return await asyncio.to_thread(rank) if is_slow else rank()


async def resolve_agent_id(ports: Ports, actor: Actor, name: str) -> str:
    """Return the id of an agent the caller may see. Raises NotFound."""
    return (await stacks.agent_stack(ports, actor, name))[0].name


def session_key(session: Session) -> tuple[str, str, str]:
    """Tenant, agent and id."""
    return session.tenant, session.agent, session.id
