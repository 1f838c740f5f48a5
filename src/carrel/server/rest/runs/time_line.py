"""REST endpoint for a run's time line: its events and the entries of its sessions."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.runs import time_line
from carrel.actions.runs.time_line import TimeLineItem
from carrel.core.access import Permission
from carrel.core.errors import Forbidden, NotFound, ValidationError
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.events.events import RunEventModel, run_event_to_model
from carrel.server.rest.files.file_models import Rfc3339, rfc3339
from carrel.server.rest.runs.provenance import ProvenanceEntryModel, entry_to_model


class TimeLineQuery(RequestModel, frozen=True):
    cursor: Annotated[str, Meta(max_length=2000)] = ""
    limit: Annotated[int, Meta(ge=1, le=time_line.MAX_ITEMS)] = 100


class TimeLineItemModel(ResponseModel, frozen=True):
    """One event or one entry; the other is null."""

    at: Rfc3339
    event: RunEventModel | None
    entry: ProvenanceEntryModel | None


class TimeLineModel(ResponseModel, frozen=True):
    items: list[TimeLineItemModel]
    next: str | None


@endpoint(
    "GET",
    "/v1/runs/{id}/timeline",
    query=TimeLineQuery,
    permission=Permission.RUNS_READ,
    responses={200: TimeLineModel},
    refusals=(ValidationError, NotFound, Forbidden),
    id="runs_timeline",
    tag="Runs",
)
async def list_time_line(request: Request[None, TimeLineQuery]) -> Response:
    """List what happened in a run, oldest first.

    Its events, with writes, tool calls and approvals, and the entries that it wrote to sessions.
    """
    query = request.query
    page = await time_line.list_time_line(
        request.ports,
        request.actor,
        request.params["id"],
        cursor=query.cursor,
        limit=query.limit,
    )
    items = [_item_to_model(item) for item in page.items]
    return Response.json(TimeLineModel(items=items, next=page.next))


def _item_to_model(item: TimeLineItem) -> TimeLineItemModel:
    return TimeLineItemModel(
        at=rfc3339(item.at),
        event=None if item.event is None else run_event_to_model(item.event),
        entry=None if item.entry is None else entry_to_model(item.entry),
    )


ENDPOINTS: Final = (list_time_line,)
