"""REST endpoints for sessions and their transcripts."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.sessions import sessions, transcripts
from carrel.actions.sessions.erasure import delete_session, finish_deletion
from carrel.actions.sessions.sessions import SessionRequest
from carrel.core.access import Permission
from carrel.core.errors import Busy, Conflict, NotFound, ValidationError
from carrel.core.runs import Audience
from carrel.core.sessions.session import MEDIA_TYPE, Session
from carrel.server.http.endpoint import Request, endpoint
from carrel.server.http.query_fields import PageQuery
from carrel.server.http.response import Response
from carrel.server.rest.agents import session_entries, session_reads
from carrel.server.rest.agents.session_entries import parse_position
from carrel.server.rest.agents.session_models import (
    SESSIONS_PATH,
    SESSIONS_TAG,
    CreateSessionBody,
    SessionMatchModel,
    SessionModel,
    SessionPageModel,
    SessionSummaryModel,
    entry_to_model,
    match_to_model,
    session_fields,
    session_to_list_item,
    session_to_model,
    session_url,
)

_STREAMING_THRESHOLD_ENTRIES: Final = 500
"""Transcripts with more entries are streamed instead of buffered."""


class SessionListQuery(PageQuery, frozen=True):
    cursor: Annotated[
        str, Meta(pattern="^[A-Za-z0-9._-]{0,1500}$", description="`next` of the previous page.")
    ] = ""
    scope: Annotated[Audience, Meta(description="Only sessions of this scope.")] | None = None
    q: (
        Annotated[
            str,
            Meta(max_length=500, description="Search transcripts by word prefixes."),
        ]
        | None
    ) = None


@endpoint(
    "GET",
    SESSIONS_PATH,
    permission=Permission.WORKSPACE_READ,
    query=SessionListQuery,
    responses={200: SessionPageModel},
    refusals=(ValidationError, NotFound),
    id="sessions_list",
    tag=SESSIONS_TAG,
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
        SessionPageModel(
            items=[session_to_list_item(session) for session in page.items],
            next=page.next,
            total=page.total,
        )
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
        by_session.setdefault(hit.session, []).append(match_to_model(hit))
    matched = await sessions.get_many(request.ports, request.actor, agent, list(by_session))
    return SessionPageModel(
        items=[session_to_list_item(session, by_session[session.id]) for session in matched],
        next=None,
        total=len(matched),
    )


def _session_started(session: Session, *, created: bool) -> Response:
    headers = {"Location": session_url(session)}
    return Response.json(session_to_model(session), 201 if created else 200, headers)


def _session_request(body: CreateSessionBody) -> SessionRequest:
    return SessionRequest(body.id, body.source_plugin, body.scope, body.run_id)


async def _rebuild_start(
    request: Request[CreateSessionBody], versions: tuple[int, ...]
) -> Response:
    created, number = versions
    session = await sessions.get_started(
        request.ports, request.actor, request.params["id"], number, _session_request(request.body)
    )
    return _session_started(session, created=bool(created))


@endpoint(
    "POST",
    SESSIONS_PATH,
    permission=Permission.WORKSPACE_WRITE,
    body=CreateSessionBody,
    responses={200: SessionSummaryModel, 201: SessionSummaryModel},
    refusals=(ValidationError, NotFound, Conflict),
    response_headers=("Location",),
    idempotent=True,
    rebuild=_rebuild_start,
    id="sessions_start",
    tag=SESSIONS_TAG,
)
async def start(request: Request[CreateSessionBody]) -> Response:
    """Create a session, with your id or a new one.

    An existing session is returned with status 200, unchanged but for its `runId`. Its scope never
    changes: requesting `shared` for a session that is not shared is refused.
    """
    body = request.body
    session, created = await sessions.start_or_get(
        request.ports,
        request.actor,
        request.params["id"],
        _session_request(body),
        request.idempotency_key,
    )
    return _session_started(session, created=created)


@endpoint(
    "GET",
    SESSIONS_PATH + "/{sid}",
    permission=Permission.WORKSPACE_READ,
    query=PageQuery,
    responses={200: SessionModel},
    refusals=(ValidationError, NotFound),
    id="sessions_get",
    tag=SESSIONS_TAG,
)
async def get(request: Request[None, PageQuery]) -> Response:
    """Get a session with its entries, in order.

    A page may be shorter than its limit if entries are large.
    """
    query = request.query
    session, rows = await sessions.list_entries(
        request.ports,
        request.actor,
        request.params["id"],
        request.params["sid"],
        after=parse_position(query.cursor) or 0,
        limit=query.limit + 1,
    )
    transcript, has_more = sessions.cut_page(rows, query.limit, session.last_sequence)
    page = SessionModel(
        **session_fields(session),
        entries=[entry_to_model(transcript_entry) for transcript_entry in transcript],
        next=str(transcript[-1].sequence) if has_more else None,
    )
    return Response.json(page)


@endpoint(
    "POST",
    SESSIONS_PATH + "/{sid}/close",
    permission=Permission.WORKSPACE_WRITE,
    responses={200: SessionSummaryModel},
    refusals=(NotFound,),
    idempotent=True,
    id="sessions_close",
    tag=SESSIONS_TAG,
)
async def close(request: Request) -> Response:
    """Close a session; it accepts no more entries. Closing again has no effect."""
    params = request.params
    session = await sessions.close(request.ports, request.actor, params["id"], params["sid"])
    return Response.json(session_to_model(session))


async def _rebuild_delete(request: Request, versions: tuple[int, ...]) -> Response:
    params = request.params
    await finish_deletion(request.ports, request.actor, params["id"], params["sid"], versions[0])
    return Response.empty(204)


@endpoint(
    "DELETE",
    SESSIONS_PATH + "/{sid}",
    permission=Permission.TENANT_ADMIN,
    responses={204: None},
    refusals=(NotFound, Busy),
    id="sessions_delete",
    tag=SESSIONS_TAG,
    idempotent=True,
    rebuild=_rebuild_delete,
)
async def delete(request: Request) -> Response:
    """Erase a session: its entries, index, file and approvals."""
    params = request.params
    await delete_session(
        request.ports, request.actor, params["id"], params["sid"], request.idempotency_key
    )
    return Response.empty(204)


@endpoint(
    "GET",
    SESSIONS_PATH + "/{sid}.jsonl",
    permission=Permission.WORKSPACE_READ,
    responses={200: MEDIA_TYPE},
    refusals=(NotFound,),
    id="sessions_jsonl",
    tag=SESSIONS_TAG,
)
async def get_transcript(request: Request) -> Response:
    """Get a session's transcript as JSON Lines: a header, then all entries."""
    params = request.params
    session = await sessions.get_transcript(
        request.ports, request.actor, params["id"], params["sid"]
    )
    lines = transcripts.export_jsonl(request.ports, session)
    if session.entry_count > _STREAMING_THRESHOLD_ENTRIES:
        return Response.stream(lines, MEDIA_TYPE)
    return Response.content(b"".join([chunk async for chunk in lines]), MEDIA_TYPE)


ENDPOINTS: Final = (
    *(list_sessions, start, get, close, delete, get_transcript),
    *session_entries.ENDPOINTS,
    *session_reads.ENDPOINTS,
)
