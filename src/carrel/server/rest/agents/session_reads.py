"""REST endpoint for new entries of several sessions."""

from __future__ import annotations

import re
from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.sessions import sessions
from carrel.actions.sessions.session_reads import ReadPosition, SessionRead, read_sessions
from carrel.core.access import Permission
from carrel.core.errors import NotFound, ValidationError
from carrel.core.sessions.session_ids import MAX_ID_LENGTH, parse_session_id
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import MAX_PAGE_ITEMS
from carrel.server.http.response import Response
from carrel.server.rest.agents.session_models import (
    SESSIONS_TAG,
    SessionModel,
    entry_to_model,
    session_fields,
)

MAX_SESSIONS: Final = 8
"""Sessions that one request may read."""
_MAX_NUMBER_DIGITS: Final = 15
_POSITION: Final = re.compile(rf"([0-9]{{1,{_MAX_NUMBER_DIGITS}}}):(.+)", re.DOTALL)


class SessionReadsQuery(RequestModel, frozen=True):
    session: Annotated[
        list[
            Annotated[
                str,
                Meta(
                    min_length=3,
                    max_length=_MAX_NUMBER_DIGITS + 1 + MAX_ID_LENGTH,
                    pattern=f"^[0-9]{{1,{_MAX_NUMBER_DIGITS}}}:[^\\x00-\\x1f\\x7f-\\x9f]+$",
                ),
            ]
        ],
        Meta(
            min_length=1,
            max_length=MAX_SESSIONS,
            description="`<number>:<id>`: entries of this session after this number.",
        ),
    ]
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_ITEMS, description="Entries of each session.")] = (
        100
    )


class SessionReadsModel(ResponseModel, frozen=True):
    """Sessions in the order of the request, null where there is none of that id."""

    items: list[SessionModel | None]


@endpoint(
    "GET",
    "/v1/agents/{id}/session-entries",
    permission=Permission.WORKSPACE_READ,
    query=SessionReadsQuery,
    responses={200: SessionReadsModel},
    refusals=(ValidationError, NotFound),
    id="sessions_entries_of_several",
    tag=SESSIONS_TAG,
)
async def read_several(request: Request[None, SessionReadsQuery]) -> Response:
    """Get several sessions, each with its entries after a number, in order.

    `next` is the number to go on from where a session has more entries.
    """
    query = request.query
    reads = await read_sessions(
        request.ports,
        request.actor,
        request.params["id"],
        [_parse_position(text) for text in query.session],
        limit=query.limit + 1,
    )
    return Response.json(
        SessionReadsModel([_to_model(read, query.limit) if read else None for read in reads])
    )


def _parse_position(text: str) -> ReadPosition:
    """Raises ValidationError."""
    match = _POSITION.fullmatch(text)
    if match is None:
        raise ValidationError("session must be <number>:<id>")
    return ReadPosition(parse_session_id(match[2]), int(match[1]))


def _to_model(read: SessionRead, limit: int) -> SessionModel:
    page, has_more = sessions.cut_page(read.entries, limit, read.session.last_sequence)
    return SessionModel(
        **session_fields(read.session),
        entries=[entry_to_model(entry) for entry in page],
        next=str(page[-1].sequence) if has_more else None,
    )


ENDPOINTS: Final = (read_several,)
