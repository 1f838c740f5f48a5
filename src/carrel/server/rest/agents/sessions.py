"""Sessions over HTTP: starting them, saying something in them, and reading what was said."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.sessions import sessions
from carrel.actions.sessions.sessions import NewEntry as Said
from carrel.core.access import Permission
from carrel.core.errors import Conflict, NotFound, PayloadTooLarge, ValidationError
from carrel.core.runs import Audience
from carrel.core.sessions import (
    LONGEST_CONTENT,
    LONGEST_NAME,
    MEDIA_TYPE,
    Session,
    SpeakerRole,
    TranscriptEntry,
    TranscriptHit,
    shown,
)
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import PageQuery
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Number, When, rfc3339

_TAG: Final = "Sessions"
_ROOT: Final = "/v1/agents/{id}/sessions"
_MAX_BODY: Final = 6 * LONGEST_CONTENT + 2**16
"""A character may take six in JSON."""
_STREAMED: Final = 500
"""Entries from which on a transcript is sent as it is read."""
_PREVIEW: Final = 200
_UUID: Final = "^(urn:uuid:)?[{]?[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}[}]?$"
SessionId = Annotated[str, Meta(pattern=_UUID, description="A UUID in any usual spelling.")]
Name = Annotated[str, Meta(max_length=LONGEST_NAME, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
Count = Annotated[int, Meta(ge=0)]


class NewSession(RequestModel, frozen=True):
    id: SessionId | None = None
    source_plugin: Name = ""
    scope: (
        Annotated[str, Meta(max_length=64, description="main, or anything else: shared.")] | None
    ) = None


class NewEntry(RequestModel, frozen=True):
    role: SpeakerRole
    content: Annotated[str, Meta(max_length=LONGEST_CONTENT)]
    message_id: Name | None = None
    source_plugin: Name = ""
    sender_id: Name | None = None


class Entry(ResponseModel, frozen=True):
    number: Number
    timestamp: When
    role: SpeakerRole
    content: str
    message_id: str | None
    source_plugin: str
    sender_id: str | None


class Match(ResponseModel, frozen=True):
    """Where something was found: the beginning of what was said there."""

    number: Number
    timestamp: When
    role: SpeakerRole
    preview: str
    truncated: bool


class SessionRow(ResponseModel, frozen=True):
    id: str
    agent_id: str
    scope: Audience
    source_plugin: str
    started_at: When
    ended_at: When | None
    last_at: When
    entry_count: Count


class SessionListItem(SessionRow, frozen=True):
    matches: list[Match] | UnsetType = UNSET


class SessionPage(ResponseModel, frozen=True):
    items: list[SessionListItem]
    next: str | None


class SessionModel(SessionRow, frozen=True):
    entries: list[Entry]
    next: str | None


class SessionsQuery(PageQuery, frozen=True):
    scope: Annotated[Audience, Meta(description="Only sessions of this scope.")] | None = None
    q: (
        Annotated[
            str,
            Meta(max_length=500, description="Words, or their beginnings, that were said."),
        ]
        | None
    ) = None


def _facts(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "agent_id": session.agent,
        "scope": session.mode,
        "source_plugin": session.plugin,
        "started_at": rfc3339(session.started),
        "ended_at": None if session.ended is None else rfc3339(session.ended),
        "last_at": rfc3339(session.last_entry_at),
        "entry_count": session.entries,
    }


def row(session: Session) -> SessionRow:
    return SessionRow(**_facts(session))


def _listed(session: Session, matches: list[Match] | UnsetType = UNSET) -> SessionListItem:
    return SessionListItem(**_facts(session), matches=matches)


def entry(said: TranscriptEntry) -> Entry:
    return Entry(
        number=said.sequence,
        timestamp=rfc3339(said.at),
        role=said.role,
        content=said.content,
        message_id=said.message,
        source_plugin=said.plugin,
        sender_id=said.sender,
    )


def _match(hit: TranscriptHit) -> Match:
    said = hit.utterance
    preview, cut = shown(said.content, _PREVIEW)
    return Match(
        number=said.sequence,
        timestamp=rfc3339(said.at),
        role=said.role,
        preview=preview,
        truncated=cut,
    )


@endpoint(
    "GET",
    _ROOT,
    permission=Permission.WORKSPACE_READ,
    query=SessionsQuery,
    responses={200: SessionPage},
    refusals=(ValidationError, NotFound),
    id="sessions_list",
    tag=_TAG,
)
async def listing(call: Request[None, SessionsQuery]) -> Response:
    """List an agent's sessions, that in which something was said last first.

    With `q` those in which it was said, the best answer first, each with its `matches`; there is
    no next page then.
    """
    query, agent = call.query, call.params["id"]
    if query.q is not None:
        return Response.json(await _found(call, agent, query.q))
    page = await sessions.listing(
        call.ports, call.actor, agent, mode=query.scope, cursor=query.cursor, limit=query.limit
    )
    return Response.json(SessionPage(items=[_listed(one) for one in page.items], next=page.next))


async def _found(call: Request[None, SessionsQuery], agent: str, words: str) -> SessionPage:
    query = call.query
    hits = await sessions.search(
        call.ports, call.actor, agent, words, mode=query.scope, limit=query.limit
    )
    by_session: dict[str, list[Match]] = {}
    for hit in hits:
        by_session.setdefault(hit.session, []).append(_match(hit))
    found = await call.ports.sessions.get(call.actor.tenant, list(by_session))
    return SessionPage(items=[_listed(one, by_session[one.id]) for one in found if one], next=None)


@endpoint(
    "POST",
    _ROOT,
    permission=Permission.WORKSPACE_WRITE,
    body=NewSession,
    responses={200: SessionRow, 201: SessionRow},
    refusals=(ValidationError, NotFound, Conflict),
    response_headers=("Location",),
    idempotent=True,
    id="sessions_start",
    tag=_TAG,
)
async def start(call: Request[NewSession]) -> Response:
    """Start a session, with an id of yours or a new one.

    One that is there already is returned as it is: its scope never changes, and one that is not
    shared is refused to whoever asks for a shared one.
    """
    body = call.body
    session, new = await sessions.begin(
        call.ports,
        call.actor,
        call.params["id"],
        id=body.id,
        plugin=body.source_plugin,
        scope=body.scope,
    )
    url = f"/v1/agents/{session.agent}/sessions/{session.id}"
    return Response.json(row(session), 201 if new else 200, {"Location": url})


@endpoint(
    "GET",
    _ROOT + "/{sid}",
    permission=Permission.WORKSPACE_READ,
    query=PageQuery,
    responses={200: SessionModel},
    refusals=(ValidationError, NotFound),
    id="sessions_get",
    tag=_TAG,
)
async def get(call: Request[None, PageQuery]) -> Response:
    """Show a session, and what was said in it, in order.

    Where much was said at a time, a page may be shorter than its limit.
    """
    query = call.query
    session, said = await sessions.entries(
        call.ports,
        call.actor,
        call.params["id"],
        call.params["sid"],
        after=_after(query.cursor),
        limit=query.limit,
    )
    more = said and said[-1].sequence < session.entries
    page = SessionModel(
        **_facts(session),
        entries=[entry(one) for one in said],
        next=str(said[-1].sequence) if more else None,
    )
    return Response.json(page)


def _after(cursor: str) -> int:
    if not cursor:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 16):
        raise ValidationError("cursor is not one that a page has given")
    return int(cursor)


async def _appended(call: Request[NewEntry], versions: tuple[int, ...]) -> Response:
    [number] = versions
    _, said = await sessions.entries(
        call.ports, call.actor, call.params["id"], call.params["sid"], after=number - 1, limit=1
    )
    if not said:
        raise NotFound("there is no such session")
    return Response.json(entry(said[0]), 201)


@endpoint(
    "POST",
    _ROOT + "/{sid}/entries",
    permission=Permission.WORKSPACE_WRITE,
    body=NewEntry,
    responses={201: Entry},
    refusals=(ValidationError, NotFound, Conflict, PayloadTooLarge),
    max_body=_MAX_BODY,
    idempotent=True,
    rebuild=_appended,
    id="sessions_append",
    tag=_TAG,
)
async def append(call: Request[NewEntry]) -> Response:
    """Say something in a session: it is kept, secrets redacted, whatever becomes of the turn."""
    body = call.body
    said = Said(body.role, body.content, body.message_id, body.source_plugin, body.sender_id)
    params = call.params
    [kept] = await sessions.append(
        call.ports, call.actor, params["id"], params["sid"], [said], call.receipt
    )
    return Response.json(entry(kept), 201)


@endpoint(
    "POST",
    _ROOT + "/{sid}/close",
    permission=Permission.WORKSPACE_WRITE,
    responses={200: SessionRow},
    refusals=(NotFound,),
    idempotent=True,
    id="sessions_close",
    tag=_TAG,
)
async def close(call: Request) -> Response:
    """Close a session: nothing more can be said in it. Closing it again changes nothing."""
    params = call.params
    session = await sessions.close(call.ports, call.actor, params["id"], params["sid"])
    return Response.json(row(session))


@endpoint(
    "GET",
    _ROOT + "/{sid}.jsonl",
    permission=Permission.WORKSPACE_READ,
    responses={200: MEDIA_TYPE},
    refusals=(NotFound,),
    id="sessions_jsonl",
    tag=_TAG,
)
async def jsonl(call: Request) -> Response:
    """A session's whole transcript as lines of JSON: a header, then everything that was said."""
    params = call.params
    session = await sessions.get(call.ports, call.actor, params["id"], params["sid"])
    lines = sessions.jsonl(call.ports, session)
    if session.entries > _STREAMED:
        return Response.stream(lines, MEDIA_TYPE)
    return Response.content(b"".join([some async for some in lines]), MEDIA_TYPE)


ENDPOINTS: Final = (listing, start, get, append, close, jsonl)
