"""Sessions: append, read, export and search transcript entries."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from carrel.actions.agent_access_audit import audit_agent_read
from carrel.actions.approvals import approvals
from carrel.actions.candidates import MAX_CANDIDATES, find_entries
from carrel.actions.overlay import stacks
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.progress import ProgressCallback, ProgressCounter, no_progress
from carrel.actions.records import Page
from carrel.core import sessions
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.private_access import PrivateThing
from carrel.core.errors import Conflict, NotFound, PayloadTooLarge, ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.redaction.redactor import Redactor
from carrel.core.runs import Audience, parse_audience
from carrel.core.search.bm25 import rank_texts
from carrel.core.search.full_text import parse_query
from carrel.core.search.passages import Passage, find_passage
from carrel.core.sessions import (
    MAX_CONTENT_BYTES,
    MAX_NAME_LENGTH,
    Session,
    SessionAppend,
    SpeakerRole,
    TranscriptEntry,
    parse_session_id,
)
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import RecordType
from carrel.ports import Ports

MAX_ENTRIES_PER_APPEND: Final = 100
"""Entries per append."""
PASSAGE_LENGTH: Final = 200
"""Characters of the passage of a search match, by default."""
_PAGE_SIZE: Final = 500
_INLINE_RANKING_CHARS: Final = 256 * 1024
"""More characters are ranked in a thread."""
_NAME_PATTERN: Final = re.compile(rf"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{{0,{MAX_NAME_LENGTH}}}")
_CURSOR_PATTERN: Final = re.compile(r"([0-9]{1,18})\.([0-9a-f-]{36})")


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """Request for a session."""

    id: str | None = None
    """None for a new id."""
    plugin: str = ""
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class NewEntry:
    """Transcript entry to append."""

    role: str
    content: str
    message: str | None = None
    plugin: str = ""
    sender: str | None = None


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

    Raises ValidationError, NotFound, and Conflict if another agent has a session of that id, or if
    a shared session is requested and the existing one is private: the caller would otherwise treat
    private content as shared.
    """
    owner = await _resolve_agent_id(ports, actor, agent)
    new_id = (
        parse_session_id(request.id)
        if request.id is not None
        else sessions.new_session_id(ports.clock.new_token("ses"))
    )
    redactor = (await load_rules(ports, actor.tenant)).redactor
    now = ports.clock.now()
    new = Session(
        tenant=actor.tenant,
        id=new_id,
        agent=owner,
        mode=parse_audience(request.scope),
        plugin=_clean_name(redactor, request.plugin, "sourcePlugin"),
        started_at=now,
        last_entry_at=now,
    )
    [session] = await ports.sessions.start([new], idempotency_key)
    _require_match(session, owner, new.mode)
    return session, session == new


async def get_started(
    ports: Ports, actor: Actor, agent: str, number: int, scope: str | None
) -> Session:
    """Get the session whose start marked an idempotency key.

    Raises NotFound if it was deleted, and Conflict like `start_or_get`.
    """
    owner = await _resolve_agent_id(ports, actor, agent)
    [session] = await ports.sessions.get(actor.tenant, [parse_session_id(f"{number:032x}")])
    if session is None:
        raise NotFound("no such session")
    _require_match(session, owner, parse_audience(scope))
    return session


def _require_match(session: Session, agent: str, mode: Audience) -> None:
    """Refuse a session of another agent, or a private one where a shared one is requested."""
    if session.agent != agent:
        raise Conflict("session id is already in use")
    if mode is Audience.SHARED and session.mode is not Audience.SHARED:
        raise Conflict(
            "the session has scope main, and a session's scope cannot change", scope=Audience.MAIN
        )


async def append(
    ports: Ports,
    actor: Actor,
    agent: str,
    id: str,
    new_entries: Sequence[NewEntry],
    idempotency_key: IdempotencyKey | None = None,
) -> tuple[TranscriptEntry, ...]:
    """Append entries, all or none, and return them as stored.

    Entries stay even if the turn fails. A user entry cancels pending approvals of the session.
    Raises ValidationError, NotFound, PayloadTooLarge, and Conflict if the session is closed.
    """
    session = await get(ports, actor, agent, id)
    if not 1 <= len(new_entries) <= MAX_ENTRIES_PER_APPEND:
        raise ValidationError(f"1 to {MAX_ENTRIES_PER_APPEND} entries can be added at a time")
    redactor = (await load_rules(ports, actor.tenant)).redactor
    now = ports.clock.now()
    redacted = tuple(_redact_entry(redactor, entry, now) for entry in new_entries)
    addition = SessionAppend(session.tenant, session.id, session.agent, redacted, idempotency_key)
    [updated] = await ports.sessions.append([addition])
    if updated is None:
        await get(ports, actor, agent, id)
        raise Conflict("the session is closed")
    if any(entry.role is SpeakerRole.USER for entry in redacted):
        await approvals.supersede(ports, session.tenant, session.id)
    first = updated.entry_count - len(redacted) + 1
    return tuple(
        TranscriptEntry(
            first + n, now, entry.role, entry.content, entry.message, entry.plugin, entry.sender
        )
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
    owner = await _resolve_agent_id(ports, actor, agent)
    try:
        [session] = await ports.sessions.get(actor.tenant, [parse_session_id(id)])
    except ValidationError:
        session = None
    if session is None or session.agent != owner:
        raise NotFound("no such session")
    return session


async def get_transcript(ports: Ports, actor: Actor, agent: str, id: str) -> Session:
    """Get a session like `get`, to read its entries; the audit names some readers."""
    session = await get(ports, actor, agent, id)
    await audit_agent_read(ports, actor, PrivateThing.SESSIONS, session.agent)
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
    """List an agent's sessions, last active first, optionally of one audience."""
    owner = await _resolve_agent_id(ports, actor, agent)
    rows = await ports.sessions.list(
        actor.tenant, owner, mode=mode, before=_parse_cursor(cursor), limit=limit + 1
    )
    if len(rows) <= limit:
        return Page(rows, None)
    last = rows[limit - 1]
    return Page(rows[:limit], f"{last.last_entry_at}.{last.id}")


async def list_entries(
    ports: Ports, actor: Actor, agent: str, id: str, *, after: int = 0, limit: int = 100
) -> tuple[Session, tuple[TranscriptEntry, ...]]:
    """Return a session and its entries after a sequence number.

    May return fewer than `limit`; the last entry has the sequence `session.entries`.
    """
    session = await get_transcript(ports, actor, agent, id)
    rows = await ports.sessions.read(session.tenant, session.id, after=after, limit=limit)
    return session, rows


async def list_recent_entries(
    ports: Ports, actor: Actor, agent: str, id: str, *, limit: int = 10
) -> tuple[Session, tuple[TranscriptEntry, ...]]:
    """Return a session and its latest entries, in order."""
    session = await get_transcript(ports, actor, agent, id)
    rows: list[TranscriptEntry] = []
    position = max(0, session.entry_count - limit)
    while batch := await ports.sessions.read(
        session.tenant, session.id, after=position, limit=limit
    ):
        rows += batch
        position = batch[-1].sequence
    return session, tuple(rows[-limit:]) if limit else ()


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
    owner = await _resolve_agent_id(ports, actor, agent)
    await audit_agent_read(ports, actor, PrivateThing.SESSIONS, owner)
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


async def export_jsonl(ports: Ports, session: Session) -> AsyncIterator[bytes]:
    """Yield the JSON lines of a transcript, up to the given session's entry count."""
    [agent] = await ports.records.get(session.tenant, RecordType.AGENT, [session.agent])
    yield sessions.encode_header(session, agent_from_record(agent).slug if agent else session.agent)
    position = 0
    while position < session.entry_count:
        limit = min(_PAGE_SIZE, session.entry_count - position)
        batch = await ports.sessions.read(session.tenant, session.id, after=position, limit=limit)
        if not batch:
            return
        yield sessions.encode_entries(batch)
        position = batch[-1].sequence


async def reindex(ports: Ports, on_progress: ProgressCallback = no_progress) -> int:
    """Rebuild the full-text index of all entries; return their number.

    Entries are not found until they are indexed again.
    """
    progress = ProgressCounter(on_progress, "indexing entries")
    total = await ports.sessions.clear_index()
    progress.set_total(total)
    position, indexed = None, 0
    while True:
        position, count = await ports.sessions.index_batch(position, limit=_PAGE_SIZE)
        if not count:
            return indexed
        if indexed < total:  # entries may have been added meanwhile
            progress.add(min(count, total - indexed))
        indexed += count


async def _resolve_agent_id(ports: Ports, actor: Actor, name: str) -> str:
    """Return the id of an agent the caller may see. Raises NotFound."""
    return (await stacks.agent_stack(ports, actor, name))[0].name


def _redact_entry(redactor: Redactor, new_entry: NewEntry, at: TimestampMs) -> TranscriptEntry:
    """Validate an entry and redact all its fields."""
    try:
        role = SpeakerRole(new_entry.role)
    except ValueError:
        raise ValidationError(f"role must be one of {', '.join(SpeakerRole)}") from None
    try:
        content = new_entry.content.encode()
    except UnicodeEncodeError:
        raise ValidationError("content must be valid UTF-8 text") from None
    if len(content) > MAX_CONTENT_BYTES:
        raise PayloadTooLarge(f"content must have at most {MAX_CONTENT_BYTES} bytes")
    return TranscriptEntry(
        sequence=0,
        at=at,
        role=role,
        content=redactor.redact(content).content.decode(),
        message=_clean_name(redactor, new_entry.message or "", "messageId") or None,
        plugin=_clean_name(redactor, new_entry.plugin, "sourcePlugin"),
        sender=_clean_name(redactor, new_entry.sender or "", "senderId") or None,
    )


def _clean_name(redactor: Redactor, text: str, field_name: str) -> str:
    if not _NAME_PATTERN.fullmatch(text):
        raise ValidationError(
            f"{field_name} must have at most {MAX_NAME_LENGTH} characters and no control characters"
        )
    return redactor.redact(text.encode()).content.decode() if redactor.find_in_text(text) else text


def _parse_cursor(cursor: str) -> tuple[TimestampMs, str] | None:
    if not cursor:
        return None
    match = _CURSOR_PATTERN.fullmatch(cursor)
    if match is None:
        raise ValidationError("invalid cursor")
    return int(match[1]), match[2]
