"""What agents remember, over HTTP."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from carrel.actions.memory import memories
from carrel.actions.memory.memories import Hit
from carrel.core.access import Permission
from carrel.core.errors import Busy, Forbidden, Malformed, Missing, TooLarge
from carrel.core.memory import memory as core
from carrel.core.runs import Mode
from carrel.server.http.endpoint import Call, Received, Sent, endpoint
from carrel.server.http.query_fields import PageQuery
from carrel.server.http.response import Answer
from carrel.server.rest.files.file_models import When, moment

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


class NewMemory(Received, frozen=True):
    content: Content
    """Kept as one line."""
    tags: Annotated[tuple[Tag, ...], Meta(max_length=core.MOST_TAGS)] = ()
    kind: Kind | None = None
    scope: Annotated[
        str, Meta(description="Of the session it was told in: `main`, or else it is shared.")
    ] = "main"


class Memory(Sent, frozen=True):
    id: str
    content: str
    scope: Mode
    tags: list[str]
    concept_tags: list[str]
    kind: str | None
    created_at: When
    promoted_at: When | None
    """When a dream took it into MEMORY.md."""
    score: float | UnsetType = UNSET
    """Where it was found by `q`: 1 for the best, 1/2 for the second."""


class Memories(Sent, frozen=True):
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
        created_at=moment(memory.created),
        promoted_at=None if memory.promoted is None else moment(memory.promoted),
    )


def _hit(hit: Hit) -> Memory:
    return msgspec.structs.replace(memory_shown(hit.memory), score=hit.score)


@endpoint(
    "GET",
    _AT,
    permission=Permission.WORKSPACE_READ,
    query=MemoryQuery,
    answers={200: Memories},
    refuses=(Missing,),
    id="memories_list",
    tag=_TAG,
)
async def listing(call: Call[None, MemoryQuery]) -> Answer:
    """List what an agent remembers, as it was told; or find some of it.

    Finding by `q` gives at most 50 and is for people who look: only what the agent itself recalls,
    with its tool, counts for its dreams.
    """
    name, query = call.params["id"], call.query
    if query.q is not None:
        hits = await memories.search(call.world, call.actor, name, query.q, limit=query.limit)
        return Answer.json(Memories(items=[_hit(hit) for hit in hits], next=None))
    page = await memories.listing(
        call.world, call.actor, name, cursor=query.cursor, limit=query.limit
    )
    return Answer.json(Memories(items=[memory_shown(one) for one in page.items], next=page.next))


async def _told(call: Call[NewMemory], versions: tuple[int, ...] = ()) -> Answer:
    body = call.body
    mode = Mode.MAIN if body.scope == Mode.MAIN else Mode.SHARED
    new = memories.NewMemory(body.content, body.tags, body.kind, mode)
    kept = await memories.remember(
        call.world, call.actor, call.params["id"], new, None if versions else call.receipt
    )
    return Answer.json(memory_shown(kept.memory), 201 if kept.created else 200)


async def _told_before(call: Call[NewMemory], versions: tuple[int, ...]) -> Answer:
    answer = await _told(call, versions or (0,))
    return Answer(201, answer.body, answer.headers)


@endpoint(
    "POST",
    _AT,
    permission=Permission.WORKSPACE_WRITE,
    body=NewMemory,
    answers={200: Memory, 201: Memory},
    refuses=(Malformed, Forbidden, Missing, TooLarge, Busy),
    id="memories_remember",
    tag=_TAG,
    idempotent=True,
    rebuild=_told_before,
)
async def remember(call: Call[NewMemory]) -> Answer:
    """Let an agent remember one thing. What it remembers already is given back as it is (200)."""
    return await _told(call)


@endpoint(
    "GET",
    _AT + "/{memory}",
    permission=Permission.WORKSPACE_READ,
    answers={200: Memory},
    refuses=(Missing,),
    id="memories_get",
    tag=_TAG,
)
async def get(call: Call) -> Answer:
    """Look at one memory."""
    found = await memories.get(call.world, call.actor, call.params["id"], call.params["memory"])
    return Answer.json(memory_shown(found))


async def _forgotten(call: Call, versions: tuple[int, ...]) -> Answer:
    return Answer.empty(204)


@endpoint(
    "DELETE",
    _AT + "/{memory}",
    permission=Permission.WORKSPACE_WRITE,
    answers={204: None},
    refuses=(Forbidden, Missing, TooLarge, Busy),
    id="memories_forget",
    tag=_TAG,
    idempotent=True,
    rebuild=_forgotten,
)
async def forget(call: Call) -> Answer:
    """Forget one memory, and the line of it that a dream wrote into MEMORY.md."""
    name, id = call.params["id"], call.params["memory"]
    await memories.forget(call.world, call.actor, name, id, call.receipt)
    return Answer.empty(204)


ENDPOINTS: Final = (listing, remember, get, forget)
