"""REST endpoints for sessions and their transcripts."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.sessions import sessions
from carrel.actions.sessions.erasure import delete_session
from carrel.actions.sessions.sessions import EntryMatch, SessionRequest
from carrel.actions.sessions.sessions import NewEntry as NewTranscriptEntry
from carrel.core.access import Permission
from carrel.core.errors import Busy, Conflict, NotFound, PayloadTooLarge, ValidationError
from carrel.core.runs import Audience
from carrel.core.sessions import (
    MAX_CONTENT_BYTES,
    MAX_NAME_LENGTH,
    MEDIA_TYPE,
    Session,
    SpeakerRole,
    TranscriptEntry,
)
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import PageQuery
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import PositiveInt, Rfc3339, rfc3339

_TAG: Final = "Sessions"
_PATH: Final = "/v1/agents/{id}/sessions"
_MAX_BODY_BYTES: Final = 6 * MAX_CONTENT_BYTES + 2**16
"""JSON may escape one character to six bytes."""
_STREAMING_THRESHOLD_ENTRIES: Final = 500
"""Transcripts with more entries are streamed instead of buffered."""
_UUID: Final = "^(urn:uuid:)?[{]?[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}[}]?$"
SessionId = Annotated[str, Meta(pattern=_UUID, description="UUID.")]
Name = Annotated[str, Meta(max_length=MAX_NAME_LENGTH, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
Count = Annotated[int, Meta(ge=0)]


class CreateSessionBody(RequestModel, frozen=True):
    id: SessionId | None = None
    source_plugin: Name = ""
    scope: (
        Annotated[str, Meta(max_length=64, description="`main`; any other value means shared.")]
        | None
    ) = None


class CreateEntryBody(RequestModel, frozen=True):
    role: SpeakerRole
    content: Annotated[str, Meta(max_length=MAX_CONTENT_BYTES)]
    message_id: Name | None = None
    source_plugin: Name = ""
    sender_id: Name | None = None


class SessionEntryModel(ResponseModel, frozen=True):
    """One transcript entry."""

    number: PositiveInt
    timestamp: Rfc3339
    role: SpeakerRole
    content: str
    message_id: str | None
    source_plugin: str
    sender_id: str | None


class SessionMatchModel(ResponseModel, frozen=True):
    """A search match: the passage of an entry that matches best."""

    number: PositiveInt
    timestamp: Rfc3339
    role: SpeakerRole
    preview: str
    offset: Annotated[Count, Meta(description="Characters of the entry before the preview.")]
    truncated: Annotated[bool, Meta(description="Whether the preview is not the whole entry.")]


class SessionSummaryModel(ResponseModel, frozen=True):
    id: str
    agent_id: str
    scope: Audience
    source_plugin: str
    started_at: Rfc3339
    ended_at: Rfc3339 | None
    last_at: Rfc3339
    entry_count: Count


class SessionListItemModel(SessionSummaryModel, frozen=True):
    matches: list[SessionMatchModel] | UnsetType = UNSET


class SessionPageModel(ResponseModel, frozen=True):
    items: list[SessionListItemModel]
    next: str | None


class SessionModel(SessionSummaryModel, frozen=True):
    entries: list[SessionEntryModel]
    next: str | None


class SessionListQuery(PageQuery, frozen=True):
    scope: Annotated[Audience, Meta(description="Only sessions of this scope.")] | None = None
    q: (
        Annotated[
            str,
            Meta(max_length=500, description="Search transcripts by word prefixes."),
        ]
        | None
    ) = None


def _summary_fields(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "agent_id": session.agent,
        "scope": session.mode,
        "source_plugin": session.plugin,
        "started_at": rfc3339(session.started_at),
        "ended_at": None if session.ended_at is None else rfc3339(session.ended_at),
        "last_at": rfc3339(session.last_entry_at),
        "entry_count": session.entry_count,
    }


def session_to_model(session: Session) -> SessionSummaryModel:
    return SessionSummaryModel(**_summary_fields(session))


def _list_item(
    session: Session, matches: list[SessionMatchModel] | UnsetType = UNSET
) -> SessionListItemModel:
    return SessionListItemModel(**_summary_fields(session), matches=matches)


def entry_to_model(transcript_entry: TranscriptEntry) -> SessionEntryModel:
    return SessionEntryModel(
        number=transcript_entry.sequence,
        timestamp=rfc3339(transcript_entry.at),
        role=transcript_entry.role,
        content=transcript_entry.content,
        message_id=transcript_entry.message,
        source_plugin=transcript_entry.plugin,
        sender_id=transcript_entry.sender,
    )


def _match_to_model(match: EntryMatch) -> SessionMatchModel:
    return SessionMatchModel(
        number=match.entry.sequence,
        timestamp=rfc3339(match.entry.at),
        role=match.entry.role,
        preview=match.passage.text,
        offset=match.passage.offset,
        truncated=not match.is_whole,
    )


@endpoint(
    "GET",
    _PATH,
    permission=Permission.WORKSPACE_READ,
    query=SessionListQuery,
    responses={200: SessionPageModel},
    refusals=(ValidationError, NotFound),
    id="sessions_list",
    tag=_TAG,
)
async def list_sessions(request: Request[None, SessionListQuery]) -> Response:
    """List an agent's sessions, most recent entry first.

    With `q`, returns matching sessions, best match first, each with its `matches`, in one page.
    """
    query, agent = request.query, request.params["id"]
    if query.q is not None:
        return Response.json(await _search_sessions(request, agent, query.q))
    page = await sessions.list_sessions(
        request.ports,
        request.actor,
        agent,
        mode=query.scope,
        cursor=query.cursor,
        limit=query.limit,
    )
    return Response.json(
        SessionPageModel(items=[_list_item(session) for session in page.items], next=page.next)
    )


async def _search_sessions(
    request: Request[None, SessionListQuery], agent: str, text: str
) -> SessionPageModel:
    query = request.query
    hits = await sessions.search(
        request.ports, request.actor, agent, text, mode=query.scope, limit=query.limit
    )
    by_session: dict[str, list[SessionMatchModel]] = {}
    for hit in hits:
        by_session.setdefault(hit.session, []).append(_match_to_model(hit))
    matched = await request.ports.sessions.get(request.actor.tenant, list(by_session))
    return SessionPageModel(
        items=[_list_item(session, by_session[session.id]) for session in matched if session],
        next=None,
    )


def _session_started(session: Session, *, created: bool) -> Response:
    url = f"/v1/agents/{session.agent}/sessions/{session.id}"
    return Response.json(session_to_model(session), 201 if created else 200, {"Location": url})


async def _rebuild_start(
    request: Request[CreateSessionBody], versions: tuple[int, ...]
) -> Response:
    created, number = versions
    session = await sessions.get_started(
        request.ports, request.actor, request.params["id"], number, request.body.scope
    )
    return _session_started(session, created=bool(created))


@endpoint(
    "POST",
    _PATH,
    permission=Permission.WORKSPACE_WRITE,
    body=CreateSessionBody,
    responses={200: SessionSummaryModel, 201: SessionSummaryModel},
    refusals=(ValidationError, NotFound, Conflict),
    response_headers=("Location",),
    idempotent=True,
    rebuild=_rebuild_start,
    id="sessions_start",
    tag=_TAG,
)
async def start(request: Request[CreateSessionBody]) -> Response:
    """Create a session, with your id or a new one.

    An existing session is returned unchanged with status 200. Its scope never changes: requesting
    `shared` for a session that is not shared is refused.
    """
    body = request.body
    session, created = await sessions.start_or_get(
        request.ports,
        request.actor,
        request.params["id"],
        SessionRequest(body.id, body.source_plugin, body.scope),
        request.idempotency_key,
    )
    return _session_started(session, created=created)


@endpoint(
    "GET",
    _PATH + "/{sid}",
    permission=Permission.WORKSPACE_READ,
    query=PageQuery,
    responses={200: SessionModel},
    refusals=(ValidationError, NotFound),
    id="sessions_get",
    tag=_TAG,
)
async def get(request: Request[None, PageQuery]) -> Response:
    """Get a session with its entries, in order.

    A page may be shorter than its limit if entries are large.
    """
    query = request.query
    session, transcript = await sessions.list_entries(
        request.ports,
        request.actor,
        request.params["id"],
        request.params["sid"],
        after=_parse_cursor(query.cursor),
        limit=query.limit,
    )
    has_more = transcript and transcript[-1].sequence < session.entry_count
    page = SessionModel(
        **_summary_fields(session),
        entries=[entry_to_model(transcript_entry) for transcript_entry in transcript],
        next=str(transcript[-1].sequence) if has_more else None,
    )
    return Response.json(page)


def _parse_cursor(cursor: str) -> int:
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 16):
        raise ValidationError("invalid cursor")
    return int(cursor)


async def _rebuild_append(request: Request[CreateEntryBody], versions: tuple[int, ...]) -> Response:
    [number] = versions
    _, transcript = await sessions.list_entries(
        request.ports,
        request.actor,
        request.params["id"],
        request.params["sid"],
        after=number - 1,
        limit=1,
    )
    if not transcript:
        raise NotFound("no such session")
    return Response.json(entry_to_model(transcript[0]), 201)


@endpoint(
    "POST",
    _PATH + "/{sid}/entries",
    permission=Permission.WORKSPACE_WRITE,
    body=CreateEntryBody,
    responses={201: SessionEntryModel},
    refusals=(ValidationError, NotFound, Conflict, PayloadTooLarge),
    max_body=_MAX_BODY_BYTES,
    idempotent=True,
    rebuild=_rebuild_append,
    id="sessions_append",
    tag=_TAG,
)
async def append(request: Request[CreateEntryBody]) -> Response:
    """Append an entry to a session. Secrets are redacted."""
    body = request.body
    new_entry = NewTranscriptEntry(
        body.role, body.content, body.message_id, body.source_plugin, body.sender_id
    )
    params = request.params
    [stored] = await sessions.append(
        request.ports,
        request.actor,
        params["id"],
        params["sid"],
        [new_entry],
        request.idempotency_key,
    )
    return Response.json(entry_to_model(stored), 201)


@endpoint(
    "POST",
    _PATH + "/{sid}/close",
    permission=Permission.WORKSPACE_WRITE,
    responses={200: SessionSummaryModel},
    refusals=(NotFound,),
    idempotent=True,
    id="sessions_close",
    tag=_TAG,
)
async def close(request: Request) -> Response:
    """Close a session; it accepts no more entries. Closing again has no effect."""
    params = request.params
    session = await sessions.close(request.ports, request.actor, params["id"], params["sid"])
    return Response.json(session_to_model(session))


@endpoint(
    "DELETE",
    _PATH + "/{sid}",
    permission=Permission.TENANT_ADMIN,
    responses={204: None},
    refusals=(NotFound, Busy),
    id="sessions_delete",
    tag=_TAG,
    idempotent=True,
)
async def delete(request: Request) -> Response:
    """Erase a session: its entries, index, file and approvals."""
    params = request.params
    await delete_session(request.ports, request.actor, params["id"], params["sid"])
    return Response.empty(204)


@endpoint(
    "GET",
    _PATH + "/{sid}.jsonl",
    permission=Permission.WORKSPACE_READ,
    responses={200: MEDIA_TYPE},
    refusals=(NotFound,),
    id="sessions_jsonl",
    tag=_TAG,
)
async def get_transcript(request: Request) -> Response:
    """Get a session's transcript as JSON Lines: a header, then all entries."""
    params = request.params
    session = await sessions.get_transcript(
        request.ports, request.actor, params["id"], params["sid"]
    )
    lines = sessions.export_jsonl(request.ports, session)
    if session.entry_count > _STREAMING_THRESHOLD_ENTRIES:
        return Response.stream(lines, MEDIA_TYPE)
    return Response.content(b"".join([chunk async for chunk in lines]), MEDIA_TYPE)


ENDPOINTS: Final = (list_sessions, start, get, append, close, delete, get_transcript)
