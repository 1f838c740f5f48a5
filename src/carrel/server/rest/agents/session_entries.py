"""REST endpoints for the entries of a session: list, append and remove."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from carrel.actions.sessions import removals, sessions
from carrel.core.access import Permission
from carrel.core.errors import Conflict, NotFound, PayloadTooLarge, ValidationError
from carrel.core.sessions.session import MAX_CONTENT_BYTES
from carrel.server.http.endpoint import Request, endpoint
from carrel.server.http.query_fields import PageQuery
from carrel.server.http.response import Response
from carrel.server.rest.agents.session_models import (
    SESSIONS_PATH,
    SESSIONS_TAG,
    AppendedEntriesModel,
    AppendEntriesBody,
    PoppedEntryModel,
    SessionEntryPageModel,
    SessionSummaryModel,
    entry_to_model,
    new_entries_from_body,
    session_to_model,
)

_ENTRIES_PATH: Final = SESSIONS_PATH + "/{sid}/entries"
MAX_ENTRIES_BYTES: Final = 6 * MAX_CONTENT_BYTES + 2**16
"""JSON may escape one character to six bytes."""


class EntryOrder(StrEnum):
    OLDEST_FIRST = "asc"
    NEWEST_FIRST = "desc"


class EntryListQuery(PageQuery, frozen=True):
    order: EntryOrder = EntryOrder.OLDEST_FIRST


def parse_position(cursor: str) -> int | None:
    """Number of an entry, or None for an empty cursor. Raises ValidationError."""
    if not cursor:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 16):
        raise ValidationError("invalid cursor")
    return int(cursor)


@endpoint(
    "GET",
    _ENTRIES_PATH,
    permission=Permission.WORKSPACE_READ,
    query=EntryListQuery,
    responses={200: SessionEntryPageModel},
    refusals=(ValidationError, NotFound),
    id="sessions_entries",
    tag=SESSIONS_TAG,
)
async def list_entries(request: Request[None, EntryListQuery]) -> Response:
    """List the entries of a session, oldest first, or newest first with `order=desc`.

    A page may be shorter than its limit if entries are large.
    """
    query, position = request.query, parse_position(request.query.cursor)
    target = (request.ports, request.actor, request.params["id"], request.params["sid"])
    if query.order is EntryOrder.NEWEST_FIRST:
        end = 1
        _, rows = await sessions.list_latest_entries(
            *target, before=position, limit=query.limit + 1
        )
    else:
        session, rows = await sessions.list_entries(
            *target, after=position or 0, limit=query.limit + 1
        )
        end = session.last_sequence
    page, has_more = sessions.cut_page(rows, query.limit, end)
    return Response.json(
        SessionEntryPageModel(
            items=[entry_to_model(entry) for entry in page],
            next=str(page[-1].sequence) if has_more else None,
        )
    )


async def _rebuild_append(
    request: Request[AppendEntriesBody], versions: tuple[int, ...]
) -> Response:
    _, rows = await sessions.list_entries(
        request.ports,
        request.actor,
        request.params["id"],
        request.params["sid"],
        after=versions[0] - 1,
        limit=len(versions),
    )
    if not rows or rows[0].sequence != versions[0]:
        raise NotFound("no such entry")
    models = [entry_to_model(entry) for entry in rows if entry.sequence in versions]
    is_batch = request.body.items is not None
    return Response.json(SessionEntryPageModel(items=models) if is_batch else models[0], 201)


@endpoint(
    "POST",
    _ENTRIES_PATH,
    permission=Permission.WORKSPACE_WRITE,
    body=AppendEntriesBody,
    responses={201: AppendedEntriesModel},
    refusals=(ValidationError, NotFound, Conflict, PayloadTooLarge),
    max_body=MAX_ENTRIES_BYTES,
    idempotent=True,
    rebuild=_rebuild_append,
    id="sessions_append",
    tag=SESSIONS_TAG,
)
async def append(request: Request[AppendEntriesBody]) -> Response:
    """Append one entry to a session, or several as `items`, all or none. Secrets are redacted.

    With `after`, only if that entry is still the last one. Numbers of removed entries are not used
    again, so nothing was added or removed since it was read.
    """
    stored = await sessions.append(
        request.ports,
        request.actor,
        request.params["id"],
        request.params["sid"],
        new_entries_from_body(request.body),
        request.idempotency_key,
        after=request.body.after,
    )
    models = [entry_to_model(entry) for entry in stored]
    is_batch = request.body.items is not None
    return Response.json(SessionEntryPageModel(items=models) if is_batch else models[0], 201)


async def _rebuild_pop(request: Request, versions: tuple[int, ...]) -> Response:
    return Response.json(PoppedEntryModel(number=versions[0] or None, entry=None))


@endpoint(
    "POST",
    SESSIONS_PATH + "/{sid}/pop",
    permission=Permission.WORKSPACE_WRITE,
    responses={200: PoppedEntryModel},
    refusals=(NotFound, Conflict),
    idempotent=True,
    rebuild=_rebuild_pop,
    id="sessions_pop",
    tag=SESSIONS_TAG,
)
async def pop(request: Request) -> Response:
    """Remove the last entry and return it. Its number is not used again.

    Also requires `workspace:read`.
    """
    params = request.params
    last = await removals.pop(
        request.ports, request.actor, params["id"], params["sid"], request.idempotency_key
    )
    return Response.json(
        PoppedEntryModel(
            number=None if last is None else last.sequence,
            entry=None if last is None else entry_to_model(last),
        )
    )


async def _rebuild_clear(request: Request, versions: tuple[int, ...]) -> Response:
    del versions
    params = request.params
    session = await sessions.get(request.ports, request.actor, params["id"], params["sid"])
    return Response.json(session_to_model(session))


@endpoint(
    "POST",
    SESSIONS_PATH + "/{sid}/clear",
    permission=Permission.WORKSPACE_WRITE,
    responses={200: SessionSummaryModel},
    refusals=(NotFound, Conflict),
    idempotent=True,
    rebuild=_rebuild_clear,
    id="sessions_clear",
    tag=SESSIONS_TAG,
)
async def clear(request: Request) -> Response:
    """Remove all entries of a session. Their numbers are not used again."""
    params = request.params
    session = await removals.clear(
        request.ports, request.actor, params["id"], params["sid"], request.idempotency_key
    )
    return Response.json(session_to_model(session))


ENDPOINTS: Final = (list_entries, append, pop, clear)
