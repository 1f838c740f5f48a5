"""Finding something again, over HTTP."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.search import search as lookups
from carrel.actions.search.search import SearchHit as Find
from carrel.actions.search.search import SearchScope
from carrel.core.access import Permission
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Number, When, rfc3339

_SORT: Final = "(files|memories|sessions)"
_KINDS: Final = {
    SearchScope.FILES: "file",
    SearchScope.MEMORIES: "memory",
    SearchScope.SESSIONS: "session",
}


class SearchQuery(RequestModel, frozen=True):
    q: Annotated[str, Meta(min_length=1, max_length=200, description="Words, or how they begin.")]
    kinds: Annotated[
        str, Meta(pattern=f"^{_SORT}(,{_SORT}){{0,2}}$", description="With commas between them.")
    ] = "files,memories,sessions"
    limit: Annotated[int, Meta(ge=1, le=lookups.MOST)] = 20


class SearchHit(ResponseModel, frozen=True):
    kind: Literal["file", "memory", "session"]
    title: str
    scope: Literal["agent", "template", "defaults", "workspace"]
    snippet: str
    at: When
    path: str | UnsetType = UNSET
    agent_id: str | UnsetType = UNSET
    template_id: str | UnsetType = UNSET
    workspace_id: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    memory_id: str | UnsetType = UNSET
    entry: Annotated[Number, Meta(description="Which entry of the session.")] | UnsetType = UNSET


class SearchHits(ResponseModel, frozen=True):
    items: list[SearchHit]
    next: None
    complete: Annotated[
        bool, Meta(description="False where there was more than one question looks at.")
    ]


def _hit(found: Find) -> SearchHit:
    return SearchHit(
        kind=_KINDS[found.sort],  # type: ignore[arg-type]  # the names are those of the Literal
        title=found.title,
        scope=found.scope.value,  # type: ignore[arg-type]  # no other scope is searched
        snippet=found.text,
        at=rfc3339(found.at),
        path=found.path or UNSET,
        agent_id=found.agent or UNSET,
        template_id=found.template or UNSET,
        workspace_id=found.workspace or UNSET,
        session_id=found.session or UNSET,
        memory_id=found.memory or UNSET,
        entry=found.entry or UNSET,
    )


@endpoint(
    "GET",
    "/v1/search",
    permission=Permission.WORKSPACE_READ,
    query=SearchQuery,
    responses={200: SearchHits},
    tag="Search",
)
async def search(call: Request[None, SearchQuery]) -> Response:
    """Find files, memories and what was said, by all words of a question; the best come first.

    Letter case and accents make no difference. An agent's key finds what is its own; nobody finds
    what was said in shared sessions.
    """
    query = call.query
    sorts = frozenset(map(SearchScope, query.kinds.split(",")))
    found = await lookups.search(call.ports, call.actor, query.q, sorts, limit=query.limit)
    items = [_hit(one) for one in found.items]
    return Response.json(SearchHits(items=items, next=None, complete=found.complete))


ENDPOINTS: Final = (search,)
