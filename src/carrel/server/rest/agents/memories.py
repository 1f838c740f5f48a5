"""What agents remember, over HTTP."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from carrel.actions.memory import memories
from carrel.actions.memory.memories import MemoryHit
from carrel.core.access import Permission
from carrel.core.errors import Busy, Forbidden, NotFound, ValidationError, WorkspaceTooLarge
from carrel.core.memory import memory as core
from carrel.core.runs import Audience
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import PageQuery
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import When, rfc3339

_TAG: Final = "Memories"
_AT: Final = "/v1/agents/{id}/memories"

Kind = Literal["user", "feedback", "project", "reference"]
Content = Annotated[str, Meta(min_length=1, max_length=core.LONGEST)]
Tag = Annotated[str, Meta(min_length=1, max_length=core.LONGEST_TAG)]


class MemoryQuery(PageQuery, frozen=True):
    q: Annotated[
        str | None,
        Meta(description="Find by words or their beginnings, best first. Nothing is noted of it."),
    ] = None


class NewMemory(RequestModel, frozen=True):
    content: Content
    """Kept as one line."""
    tags: Annotated[tuple[Tag, ...], Meta(max_length=core.MOST_TAGS)] = ()
    kind: Kind | None = None
    scope: Annotated[
        str, Meta(description="Of the session it was told in: `main`, or else it is shared.")
    ] = "main"


class Memory(ResponseModel, frozen=True):
    id: str
    content: str
    scope: Audience
    tags: list[str]
    concept_tags: list[str]
    kind: str | None
    created_at: When
    promoted_at: When | None
    """When a dream took it into MEMORY.md."""
    score: float | UnsetType = UNSET
    """Where it was found by `q`: 1 for the best, 1/2 for the second."""


class Memories(ResponseModel, frozen=True):
    items: list[Memory]
    next: str | None


def memory_shown(memory: core.Memory) -> Memory:
    return Memory(
        id=memory.id,
        content=memory.content,
        scope=memory.mode,
        tags=list(memory.tags),
        concept_tags=list(memory.concepts),
        kind=memory.kind,
        created_at=rfc3339(memory.created),
        promoted_at=None if memory.promoted is None else rfc3339(memory.promoted),
    )


def _hit(hit: MemoryHit) -> Memory:
    return msgspec.structs.replace(memory_shown(hit.memory), score=hit.score)


@endpoint(
    "GET",
    _AT,
    permission=Permission.WORKSPACE_READ,
    query=MemoryQuery,
    responses={200: Memories},
    refusals=(NotFound,),
    id="memories_list",
    tag=_TAG,
)
async def listing(call: Request[None, MemoryQuery]) -> Response:
    """List what an agent remembers, as it was told; or find some of it.

    Finding by `q` gives at most 50 and is for people who look: only what the agent itself recalls,
    with its tool, counts for its dreams.
    """
    name, query = call.params["id"], call.query
    if query.q is not None:
        hits = await memories.search(call.ports, call.actor, name, query.q, limit=query.limit)
        return Response.json(Memories(items=[_hit(hit) for hit in hits], next=None))
    page = await memories.listing(
        call.ports, call.actor, name, cursor=query.cursor, limit=query.limit
    )
    return Response.json(Memories(items=[memory_shown(one) for one in page.items], next=page.next))


async def _told(call: Request[NewMemory], versions: tuple[int, ...] = ()) -> Response:
    body = call.body
    mode = Audience.MAIN if body.scope == Audience.MAIN else Audience.SHARED
    new = memories.NewMemory(body.content, body.tags, body.kind, mode)
    kept = await memories.remember(
        call.ports, call.actor, call.params["id"], new, None if versions else call.receipt
    )
    return Response.json(memory_shown(kept.memory), 201 if kept.created else 200)


async def _told_before(call: Request[NewMemory], versions: tuple[int, ...]) -> Response:
    answer = await _told(call, versions or (0,))
    return Response(201, answer.body, answer.headers)


@endpoint(
    "POST",
    _AT,
    permission=Permission.WORKSPACE_WRITE,
    body=NewMemory,
    responses={200: Memory, 201: Memory},
    refusals=(ValidationError, Forbidden, NotFound, WorkspaceTooLarge, Busy),
    id="memories_remember",
    tag=_TAG,
    idempotent=True,
    rebuild=_told_before,
)
async def remember(call: Request[NewMemory]) -> Response:
    """Let an agent remember one thing. What it remembers already is given back as it is (200)."""
    return await _told(call)


@endpoint(
    "GET",
    _AT + "/{memory}",
    permission=Permission.WORKSPACE_READ,
    responses={200: Memory},
    refusals=(NotFound,),
    id="memories_get",
    tag=_TAG,
)
async def get(call: Request) -> Response:
    """Look at one memory."""
    found = await memories.get(call.ports, call.actor, call.params["id"], call.params["memory"])
    return Response.json(memory_shown(found))


async def _forgotten(call: Request, versions: tuple[int, ...]) -> Response:
    return Response.empty(204)


@endpoint(
    "DELETE",
    _AT + "/{memory}",
    permission=Permission.WORKSPACE_WRITE,
    responses={204: None},
    refusals=(Forbidden, NotFound, WorkspaceTooLarge, Busy),
    id="memories_forget",
    tag=_TAG,
    idempotent=True,
    rebuild=_forgotten,
)
async def forget(call: Request) -> Response:
    """Forget one memory, and the line of it that a dream wrote into MEMORY.md."""
    name, id = call.params["id"], call.params["memory"]
    await memories.forget(call.ports, call.actor, name, id, call.receipt)
    return Response.empty(204)


ENDPOINTS: Final = (listing, remember, get, forget)
