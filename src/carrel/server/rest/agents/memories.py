"""REST endpoints for an agent's memories."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from carrel.actions.memory import memories, memory_edits
from carrel.actions.memory.memories import MemoryHit
from carrel.core.access import Permission
from carrel.core.errors import (
    Busy,
    Conflict,
    Forbidden,
    NotFound,
    ValidationError,
    WorkspaceTooLarge,
)
from carrel.core.memory import memory as core
from carrel.core.runs import Audience
from carrel.core.store.idempotency import id_from_number
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import PageQuery, Total
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

_TAG: Final = "Memories"
_PATH: Final = "/v1/agents/{id}/memories"

MemoryKind = Literal["user", "feedback", "project", "reference"]
MemoryContent = Annotated[str, Meta(min_length=1, max_length=core.MAX_CONTENT_LENGTH)]
MemoryTag = Annotated[str, Meta(min_length=1, max_length=core.MAX_TAG_LENGTH)]


class MemoryListQuery(PageQuery, frozen=True):
    q: Annotated[
        str | None,
        Meta(description="Question or words, best match first. Not counted as a recall."),
    ] = None


class CreateMemoryBody(RequestModel, frozen=True):
    content: MemoryContent
    """Stored as one line."""
    tags: Annotated[tuple[MemoryTag, ...], Meta(max_length=core.MAX_TAGS)] = ()
    kind: MemoryKind | None = None
    scope: Annotated[
        str, Meta(description="Scope of the session: `main`; any other value means shared.")
    ] = "main"
    supersedes: (
        Annotated[
            str,
            Meta(min_length=1, max_length=128, description="Id of the memory that it replaces."),
        ]
        | None
    ) = None


class MemoryModel(ResponseModel, frozen=True):
    id: str
    content: str
    scope: Audience
    tags: list[str]
    concept_tags: list[str]
    kind: str | None
    created_at: Rfc3339
    promoted_at: Rfc3339 | None
    """When a dream promoted it to MEMORY.md."""
    score: float | UnsetType = UNSET
    """Share of the query that it answers, from 0 to 1, when searched by `q`."""


class MemoryPageModel(ResponseModel, frozen=True):
    items: list[MemoryModel]
    next: str | None
    total: Total


def memory_to_model(memory: core.Memory) -> MemoryModel:
    return MemoryModel(
        id=memory.id,
        content=memory.content,
        scope=memory.mode,
        tags=list(memory.tags),
        concept_tags=list(memory.concepts),
        kind=memory.kind,
        created_at=rfc3339(memory.created_at),
        promoted_at=None if memory.promoted_at is None else rfc3339(memory.promoted_at),
    )


def _hit_to_model(hit: MemoryHit) -> MemoryModel:
    return msgspec.structs.replace(memory_to_model(hit.memory), score=hit.score)


@endpoint(
    "GET",
    _PATH,
    permission=Permission.WORKSPACE_READ,
    query=MemoryListQuery,
    responses={200: MemoryPageModel},
    refusals=(NotFound,),
    id="memories_list",
    tag=_TAG,
)
async def list_memories(request: Request[None, MemoryListQuery]) -> Response:
    """List or search an agent's memories, oldest first.

    A search with `q` returns at most 50 and does not count as a recall; only the agent's own recall
    tool counts towards promotion.
    """
    name, query = request.params["id"], request.query
    if query.q is not None:
        hits = await memories.search(request.ports, request.actor, name, query.q, limit=query.limit)
        return Response.json(
            MemoryPageModel(items=[_hit_to_model(hit) for hit in hits], next=None, total=len(hits))
        )
    page = await memories.list_memories(
        request.ports, request.actor, name, cursor=query.cursor, limit=query.limit
    )
    return Response.json(
        MemoryPageModel(
            items=[memory_to_model(memory) for memory in page.items],
            next=page.next,
            total=page.total,
        )
    )


async def _rebuild_remember(
    request: Request[CreateMemoryBody], versions: tuple[int, ...]
) -> Response:
    id = id_from_number("mem", versions[-1])
    memory = await memories.get(request.ports, request.actor, request.params["id"], id)
    return Response.json(memory_to_model(memory), 201)


@endpoint(
    "POST",
    _PATH,
    permission=Permission.WORKSPACE_WRITE,
    body=CreateMemoryBody,
    responses={200: MemoryModel, 201: MemoryModel},
    refusals=(ValidationError, Forbidden, NotFound, WorkspaceTooLarge, Busy),
    id="memories_remember",
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_remember,
)
async def remember(request: Request[CreateMemoryBody]) -> Response:
    """Create a memory. An existing identical memory is returned with status 200."""
    body = request.body
    audience = Audience.MAIN if body.scope == Audience.MAIN else Audience.SHARED
    result = await memories.remember(
        request.ports,
        request.actor,
        request.params["id"],
        memories.NewMemory(body.content, body.tags, body.kind, audience, body.supersedes),
        request.idempotency_key,
    )
    return Response.json(memory_to_model(result.memory), 201 if result.created else 200)


@endpoint(
    "GET",
    _PATH + "/{memory}",
    permission=Permission.WORKSPACE_READ,
    responses={200: MemoryModel},
    refusals=(NotFound,),
    id="memories_get",
    tag=_TAG,
)
async def get(request: Request) -> Response:
    """Get a memory."""
    memory = await memories.get(
        request.ports, request.actor, request.params["id"], request.params["memory"]
    )
    return Response.json(memory_to_model(memory))


class UpdateMemoryBody(RequestModel, frozen=True):
    """Only fields that are sent change; null clears the kind."""

    content: MemoryContent | UnsetType = UNSET
    tags: Annotated[tuple[MemoryTag, ...], Meta(max_length=core.MAX_TAGS)] | UnsetType = UNSET
    kind: MemoryKind | UnsetType | None = UNSET


async def _rebuild_edit(request: Request[UpdateMemoryBody], versions: tuple[int, ...]) -> Response:
    params = request.params
    memory = await memories.get(request.ports, request.actor, params["id"], params["memory"])
    return Response.json(memory_to_model(memory))


@endpoint(
    "PATCH",
    _PATH + "/{memory}",
    permission=Permission.WORKSPACE_WRITE,
    body=UpdateMemoryBody,
    responses={200: MemoryModel},
    refusals=(ValidationError, Forbidden, NotFound, Conflict, WorkspaceTooLarge, Busy),
    id="memories_edit",
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_edit,
)
async def edit(request: Request[UpdateMemoryBody]) -> Response:
    """Change a memory. It keeps its id and recalls, and its line in MEMORY.md follows."""
    body = request.body
    memory = await memory_edits.edit(
        request.ports,
        request.actor,
        request.params["id"],
        request.params["memory"],
        memory_edits.MemoryEdit(body.content, body.tags, body.kind),
        request.idempotency_key,
    )
    return Response.json(memory_to_model(memory))


async def _rebuild_forget(request: Request, versions: tuple[int, ...]) -> Response:
    return Response.empty(204)


@endpoint(
    "DELETE",
    _PATH + "/{memory}",
    permission=Permission.WORKSPACE_WRITE,
    responses={204: None},
    refusals=(Forbidden, NotFound, WorkspaceTooLarge, Busy),
    id="memories_forget",
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_forget,
)
async def forget(request: Request) -> Response:
    """Delete a memory, and its promoted line in MEMORY.md."""
    name, id = request.params["id"], request.params["memory"]
    await memories.forget(request.ports, request.actor, name, id, request.idempotency_key)
    return Response.empty(204)


ENDPOINTS: Final = (list_memories, remember, get, edit, forget)
