"""Tool `session_logs`: lists, reads and searches an agent's conversations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.sessions import sessions
from carrel.core.errors import NotFound, ValidationError
from carrel.core.sessions.session import (
    FORMAT_VERSION,
    Session,
    TranscriptEntry,
    format_timestamp,
    truncate,
)
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolResultFields


class SessionLogsAction(StrEnum):
    LIST = "list_sessions"
    READ = "read_session"
    SEARCH = "search"
    RECENT = "recent"


class SessionLogsArguments(ToolArguments, frozen=True):
    action: Annotated[SessionLogsAction, Meta(description="Operation to run.")]
    session_id: Annotated[
        str,
        Meta(max_length=255, description="Required to read; default: the current conversation."),
    ] = ""
    query: Annotated[str, Meta(max_length=500, description="Words to search for.")] = ""
    limit: Annotated[int, Meta(ge=1, le=500, description="Maximum number of results.")] = 50
    max_chars: Annotated[int, Meta(ge=20, le=4000, description="Maximum characters per entry.")] = (
        200
    )
    after: Annotated[int, Meta(ge=0, lt=2**53, description="Continue after this entry number.")] = 0
    offset: Annotated[
        int,
        Meta(ge=0, lt=2**53, description="Characters to skip in the first entry that is read."),
    ] = 0


class LoggedSession(ToolResultFields, frozen=True):
    session_id: str
    agent_id: str
    source_plugin: str | None
    entry_count: int
    first_timestamp: str | None
    last_timestamp: str | None


class LogHeader(ToolResultFields, frozen=True):
    agent_id: str
    timestamp: str
    source_plugin: str | None
    version: int


class LoggedEntry(ToolResultFields, frozen=True):
    number: int
    timestamp: str
    role: str
    source_plugin: str | None
    message_id: str | None
    sender_id: str | None
    content: str
    offset: int
    length: int
    truncated: bool


class LogHit(ToolResultFields, frozen=True):
    session_id: str
    number: int
    offset: int
    length: int
    timestamp: str
    role: str
    source_plugin: str | None
    preview: str
    truncated: bool


class SessionLogsResult(ToolResultFields, frozen=True):
    """Fields of all actions; each returns its own."""

    ok: bool
    error: str | UnsetType = UNSET
    transcripts_dir: str | UnsetType | None = UNSET
    count: int | UnsetType = UNSET
    sessions: tuple[LoggedSession, ...] | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    header: LogHeader | UnsetType = UNSET
    total_entries: int | UnsetType = UNSET
    returned: int | UnsetType = UNSET
    truncated: bool | UnsetType = UNSET
    entries: tuple[LoggedEntry, ...] | UnsetType = UNSET
    query: str | UnsetType = UNSET
    hits: tuple[LogHit, ...] | UnsetType = UNSET


async def _list(context: ToolContext, args: SessionLogsArguments) -> Mapping[str, Any]:
    ports, actor, agent = context.ports, context.actor, context.agent.id
    page = await sessions.list_sessions(ports, actor, agent, limit=args.limit)
    return {
        "transcripts_dir": context.config.transcripts_dir,
        "count": len(page.items),
        "sessions": [_session_to_json(context, session) for session in page.items],
    }


def _session_to_json(context: ToolContext, session: Session) -> Mapping[str, Any]:
    has_entries = session.entry_count > 0
    return {
        "session_id": session.id,
        "agent_id": context.slug,
        "source_plugin": session.plugin,
        "entry_count": session.entry_count,
        "first_timestamp": format_timestamp(session.started_at) if has_entries else None,
        "last_timestamp": format_timestamp(session.last_entry_at) if has_entries else None,
    }


async def _read(context: ToolContext, args: SessionLogsArguments) -> Mapping[str, Any]:
    if not args.session_id:
        raise ValidationError("read_session requires a session_id")
    ports, actor, agent = context.ports, context.actor, context.agent.id
    try:
        session, transcript = await sessions.list_entries(
            ports, actor, agent, args.session_id, after=args.after, limit=args.limit
        )
    except NotFound:
        return {"ok": False, "error": "session_not_found", "session_id": args.session_id}
    last_sequence = transcript[-1].sequence if transcript else args.after
    header = {"agent_id": context.slug, "timestamp": format_timestamp(session.started_at)}
    return {
        "session_id": session.id,
        "header": {**header, "source_plugin": session.plugin, "version": FORMAT_VERSION},
        "total_entries": session.entry_count,
        "returned": len(transcript),
        "truncated": last_sequence < session.last_sequence,
        "entries": [
            _entry_to_json(entry, args.max_chars, args.offset if entry is transcript[0] else 0)
            for entry in transcript
        ],
    }


async def _search(context: ToolContext, args: SessionLogsArguments) -> Mapping[str, Any]:
    if not args.query.strip():
        raise ValidationError("search requires a query")
    ports, actor, agent = context.ports, context.actor, context.agent.id
    matches = await sessions.search(
        ports, actor, agent, args.query, limit=args.limit, max_chars=args.max_chars
    )
    hits = [
        {
            "session_id": hit.session,
            "number": hit.entry.sequence,
            "offset": hit.passage.offset,
            "length": len(hit.entry.content),
            "timestamp": format_timestamp(hit.entry.at),
            "role": hit.entry.role,
            "source_plugin": hit.entry.plugin,
            "preview": hit.passage.text,
            "truncated": not hit.is_whole,
        }
        for hit in matches
    ]
    return {"query": args.query, "count": len(hits), "hits": hits}


async def _recent(context: ToolContext, args: SessionLogsArguments) -> Mapping[str, Any]:
    session_id = args.session_id or context.session
    if not session_id:
        raise ValidationError("recent requires a session_id outside a conversation")
    ports, actor, agent = context.ports, context.actor, context.agent.id
    try:
        _, transcript = await sessions.list_recent_entries(
            ports, actor, agent, session_id, limit=args.limit
        )
    except NotFound:
        transcript = ()
    entries = [_entry_to_json(entry, args.max_chars) for entry in transcript]
    return {"session_id": session_id, "count": len(entries), "entries": entries}


def _entry_to_json(entry: TranscriptEntry, max_chars: int, offset: int = 0) -> Mapping[str, Any]:
    content, truncated = truncate(entry.content[offset:], max_chars)
    return {
        "number": entry.sequence,
        "timestamp": format_timestamp(entry.at),
        "role": entry.role,
        "source_plugin": entry.plugin,
        "message_id": entry.message,
        "sender_id": entry.sender,
        "content": content,
        "offset": offset,
        "length": len(entry.content),
        "truncated": truncated,
    }


_HANDLERS: Final[
    Mapping[
        SessionLogsAction,
        Callable[[ToolContext, SessionLogsArguments], Awaitable[Mapping[str, Any]]],
    ]
] = {
    SessionLogsAction.LIST: _list,
    SessionLogsAction.READ: _read,
    SessionLogsAction.SEARCH: _search,
    SessionLogsAction.RECENT: _recent,
}


async def _run(context: ToolContext, args: SessionLogsArguments) -> object:
    return {"ok": True, **await _HANDLERS[args.action](context, args)}


TOOL: Final = Tool(
    "session_logs",
    "Accesses your earlier conversations: lists them, reads one, searches all of them, or returns "
    "the most recent entries. A search returns the matching passage, its entry number and offset; "
    "read_session continues there with after = number - 1 and offset.",
    SessionLogsArguments,
    _run,
    private_only=True,
    results=(SessionLogsResult,),
)
