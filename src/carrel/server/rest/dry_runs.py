"""REST endpoint that answers requests as if they were made, without making them."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final, Literal
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from carrel.actions.dry_runs.dry_run_ports import dry_run_ports
from carrel.actions.dry_runs.pending_changes import open_changes, seal_changes
from carrel.core.errors import ValidationError
from carrel.server.http.endpoint import Endpoint, Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.idempotency import IDEMPOTENCY_HEADER
from carrel.server.http.local_app import LocalApp
from carrel.server.http.response import Response
from carrel.server.rest.agents import agents, templates
from carrel.server.rest.files import commits, file_collections, files

MAX_REQUESTS: Final = 250
MAX_BODY_BYTES: Final = files.MAX_BODY_BYTES + 8 * 2**20
_OPERATIONS: Final = frozenset(
    {
        "agents_create",
        "agents_get",
        "agents_patch",
        "templates_get",
        *(
            f"{collection.name}_files_{operation}"
            for collection in file_collections.FILE_COLLECTIONS
            for operation in ("list", "put", "commit", "move", "copy", "make_directory")
            if not collection.wire
        ),
    }
)
_Text = Annotated[str, Meta(max_length=8192)]


class DryRequestModel(RequestModel, frozen=True):
    """A request of this API."""

    method: Literal["GET", "POST", "PATCH", "PUT"]
    path: _Text
    """Path of the request, percent-encoded, such as `/v1/agents/ada/files/a.md`."""
    query: dict[_Text, _Text] = msgspec.field(default_factory=dict)
    headers: dict[_Text, _Text] = msgspec.field(default_factory=dict)
    """Conditions, reason and run; an Idempotency-Key is ignored."""
    body: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))
    """JSON body of the request."""


class DryRunBody(RequestModel, frozen=True):
    requests: Annotated[list[DryRequestModel], Meta(max_length=MAX_REQUESTS)]
    """Answered in order; each sees what those before it would have changed."""
    state: str = ""
    """The `state` of an earlier response, to continue after its requests."""


class DryResponseModel(ResponseModel, frozen=True):
    """Response that the request would have now."""

    status: int
    headers: dict[str, str]
    body: msgspec.Raw
    """JSON body; null if there is none."""


class DryRunModel(ResponseModel, frozen=True):
    responses: list[DryResponseModel]
    state: str
    """What the requests so far would have changed, encrypted for this caller."""


@endpoint(
    "POST",
    "/v1/dry-run",
    body=DryRunBody,
    responses={200: DryRunModel},
    refusals=(ValidationError,),
    max_body=MAX_BODY_BYTES,
    id="dry_run",
    tag="Dry runs",
)
async def dry_run(request: Request[DryRunBody]) -> Response:
    """Answer requests as if they were made, one after the other; store nothing.

    Possible requests: list, put, commit, move and copy files and make directories of agents,
    templates, the defaults and workspaces; create, get and patch agents; get templates. Each needs
    the permission that it needs otherwise. Files that were written by an earlier call, whose
    `state` is passed on, can be listed but not read.
    """
    vault, actor = request.ports.vault, request.actor
    changes = await asyncio.to_thread(open_changes, vault, actor, request.body.state)
    app = LocalApp(dry_run_ports(request.ports, changes), _ENDPOINTS)
    responses = [await _respond(app, request, item) for item in request.body.requests]
    state = await asyncio.to_thread(seal_changes, vault, actor, changes)
    return Response.json(DryRunModel(responses=responses, state=state))


async def _respond(
    app: LocalApp, request: Request[DryRunBody], item: DryRequestModel
) -> DryResponseModel:
    try:
        target = (item.method, item.path.encode("ascii"))
        headers = {
            name.lower().encode("latin-1"): value.encode() for name, value in item.headers.items()
        }
        query = urlencode(item.query).encode("ascii")
    except UnicodeEncodeError:
        raise ValidationError("paths and names of headers are ASCII, texts Unicode") from None
    headers.pop(IDEMPOTENCY_HEADER, None)
    headers[b"content-type"] = b"application/json"
    body = b"" if item.method == "GET" else bytes(item.body)
    response = await app.respond(request.actor, target, query, headers, body)
    return DryResponseModel(
        status=response.status,
        headers={
            name.decode("latin-1"): value.decode("latin-1") for name, value in response.headers
        },
        body=msgspec.Raw(response.body or b"null"),
    )


_ENDPOINTS: Final[tuple[Endpoint, ...]] = tuple(
    item
    for module in (agents, templates, files, commits)
    for item in module.ENDPOINTS
    if item.id in _OPERATIONS
)
ENDPOINTS: Final = (dry_run,)
