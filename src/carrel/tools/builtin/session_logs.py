"""Looking through one's own conversations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from msgspec import Meta

from carrel.actions.sessions import sessions
from carrel.core.errors import NotFound, ValidationError
from carrel.core.sessions import VERSION, Session, TranscriptEntry, shown, told_at
from carrel.tools.tool import Tool, ToolArguments, ToolContext


class Action(StrEnum):
    LIST = "list_sessions"
    READ = "read_session"
    SEARCH = "search"
    RECENT = "recent"


class Arguments(ToolArguments, frozen=True):
    action: Annotated[Action, Meta(description="What to look at.")]
    session_id: Annotated[
        str,
        Meta(max_length=64, description="Needed to read; else the conversation that is going on."),
    ] = ""
    query: Annotated[str, Meta(max_length=500, description="Words to search for.")] = ""
    limit: Annotated[int, Meta(ge=1, le=500, description="How many at most.")] = 50
    max_chars: Annotated[
        int, Meta(ge=20, le=4000, description="Characters of each entry that are told.")
    ] = 200
    after: Annotated[
        int, Meta(ge=0, lt=2**53, description="Read on after this entry's number.")
    ] = 0


async def _list(context: ToolContext, asked: Arguments) -> Mapping[str, Any]:
    ports, actor, agent = context.ports, context.actor, context.agent.id
    found = await sessions.listing(ports, actor, agent, limit=asked.limit)
    return {
        "transcripts_dir": context.config.transcripts_dir,
        "count": len(found.items),
        "sessions": [_session(context, session) for session in found.items],
    }


def _session(context: ToolContext, session: Session) -> Mapping[str, Any]:
    said = session.entries > 0
    return {
        "session_id": session.id,
        "agent_id": context.slug,
        "source_plugin": session.plugin,
        "entry_count": session.entries,
        "first_timestamp": told_at(session.started) if said else None,
        "last_timestamp": told_at(session.last_entry_at) if said else None,
    }


async def _read(context: ToolContext, asked: Arguments) -> Mapping[str, Any]:
    if not asked.session_id:
        raise ValidationError("read_session needs a session_id")
    ports, actor, agent = context.ports, context.actor, context.agent.id
    try:
        session, said = await sessions.entries(
            ports, actor, agent, asked.session_id, after=asked.after, limit=asked.limit
        )
    except NotFound:
        return {"ok": False, "error": "session_not_found", "session_id": asked.session_id}
    last = said[-1].sequence if said else asked.after
    header = {"agent_id": context.slug, "timestamp": told_at(session.started)}
    return {
        "session_id": session.id,
        "header": {**header, "source_plugin": session.plugin, "version": VERSION},
        "total_entries": session.entries,
        "returned": len(said),
        "truncated": last < session.entries,
        "entries": [_entry(one, asked.max_chars) for one in said],
    }


async def _search(context: ToolContext, asked: Arguments) -> Mapping[str, Any]:
    if not asked.query.strip():
        raise ValidationError("search needs a query")
    ports, actor, agent = context.ports, context.actor, context.agent.id
    found = await sessions.search(ports, actor, agent, asked.query, limit=asked.limit)
    hits = [
        {
            "session_id": hit.session,
            "timestamp": told_at(hit.utterance.at),
            "role": hit.utterance.role,
            "source_plugin": hit.utterance.plugin,
            "preview": shown(hit.utterance.content, asked.max_chars)[0],
        }
        for hit in found
    ]
    return {"query": asked.query, "count": len(hits), "hits": hits}


async def _recent(context: ToolContext, asked: Arguments) -> Mapping[str, Any]:
    wanted = asked.session_id or context.session
    if not wanted:
        raise ValidationError("recent needs a session_id where no conversation is going on")
    ports, actor, agent = context.ports, context.actor, context.agent.id
    try:
        _, said = await sessions.recent(ports, actor, agent, wanted, limit=asked.limit)
    except NotFound:
        said = ()
    entries = [_entry(one, asked.max_chars) for one in said]
    return {"session_id": wanted, "count": len(entries), "entries": entries}


def _entry(said: TranscriptEntry, most: int) -> Mapping[str, Any]:
    content, cut = shown(said.content, most)
    return {
        "number": said.sequence,
        "timestamp": told_at(said.at),
        "role": said.role,
        "source_plugin": said.plugin,
        "message_id": said.message,
        "sender_id": said.sender,
        "content": content,
        "truncated": cut,
    }


_DOES: Final[Mapping[Action, Callable[[ToolContext, Arguments], Awaitable[Mapping[str, Any]]]]] = {
    Action.LIST: _list,
    Action.READ: _read,
    Action.SEARCH: _search,
    Action.RECENT: _recent,
}


async def _run(context: ToolContext, asked: Arguments) -> object:
    return {"ok": True, **await _DOES[asked.action](context, asked)}


TOOL: Final = Tool(
    "session_logs",
    "Looks through your own earlier conversations: lists them, reads one, searches all of them, or "
    "shows what was said last.",
    Arguments,
    _run,
    private_only=True,
)
