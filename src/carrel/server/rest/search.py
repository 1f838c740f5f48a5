"""REST endpoint for full-text search."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.search import search as lookups
from carrel.actions.search.search import SearchHit, SearchScope
from carrel.core.access import Permission
from carrel.core.runs import Audience, parse_audience
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import PositiveInt, Rfc3339, rfc3339

_KIND_PATTERN: Final = "(files|memories|sessions)"
_KINDS: Final = {
    SearchScope.FILES: "file",
    SearchScope.MEMORIES: "memory",
    SearchScope.SESSIONS: "session",
}


class SearchQuery(RequestModel, frozen=True):
    q: Annotated[str, Meta(min_length=1, max_length=200, description="Words or word prefixes.")]
    kinds: Annotated[
        str,
        Meta(
            pattern=f"^{_KIND_PATTERN}(,{_KIND_PATTERN}){{0,2}}$",
            description="Comma-separated.",
        ),
    ] = "files,memories,sessions"
    limit: Annotated[int, Meta(ge=1, le=lookups.MAX_HITS)] = 20
    scope: Annotated[
        str,
        Meta(max_length=100, description="Audience: `main`; any other value is `shared`."),
    ] = Audience.MAIN.value


class SearchHitModel(ResponseModel, frozen=True):
    kind: Literal["file", "memory", "session"]
    title: str
    scope: Literal["agent", "template", "defaults", "workspace"]
    scope_name: Annotated[
        str | None,
        Meta(description="Name of the agent, template or workspace; null for the defaults."),
    ]
    snippet: str
    at: Rfc3339
    offset: Annotated[int, Meta(ge=0, description="Characters of the text before the match.")]
    path: str | UnsetType = UNSET
    agent_id: str | UnsetType = UNSET
    template_id: str | UnsetType = UNSET
    workspace_id: str | UnsetType = UNSET
    session_id: str | UnsetType = UNSET
    memory_id: str | UnsetType = UNSET
    entry: Annotated[PositiveInt, Meta(description="Number of the session entry.")] | UnsetType = (
        UNSET
    )


class SearchResultsModel(ResponseModel, frozen=True):
    items: list[SearchHitModel]
    next: None
    complete: Annotated[
        bool, Meta(description="False if the search was cut off at its scan limit.")
    ]


def _hit_to_model(hit: SearchHit) -> SearchHitModel:
    return SearchHitModel(
        kind=_KINDS[hit.kind],  # type: ignore[arg-type]  # _KINDS has the names of the Literal
        title=hit.title,
        scope=hit.scope.value,  # type: ignore[arg-type]  # no other scope is searched
        scope_name=hit.scope_name,
        snippet=hit.text,
        at=rfc3339(hit.at),
        path=hit.path or UNSET,
        agent_id=hit.agent or UNSET,
        template_id=hit.template or UNSET,
        workspace_id=hit.workspace or UNSET,
        session_id=hit.session or UNSET,
        memory_id=hit.memory or UNSET,
        entry=hit.entry or UNSET,
        offset=hit.offset,
    )


@endpoint(
    "GET",
    "/v1/search",
    permission=Permission.WORKSPACE_READ,
    query=SearchQuery,
    responses={200: SearchResultsModel},
    tag="Search",
)
async def search(request: Request[None, SearchQuery]) -> Response:
    """Search files, memories and sessions by words, best match first.

    Rare words count more, and function words only in a query without others. Ignores case and
    accents. An agent's key searches only its own content; shared sessions are
    never searched. With `scope=shared` only files that a shared session may see are found.
    """
    query = request.query
    scopes = frozenset(map(SearchScope, query.kinds.split(",")))
    results = await lookups.search(
        *(request.ports, request.actor, query.q, scopes),
        limit=query.limit,
        audience=parse_audience(query.scope),
    )
    items = [_hit_to_model(hit) for hit in results.items]
    return Response.json(SearchResultsModel(items=items, next=None, complete=results.complete))


ENDPOINTS: Final = (search,)
