"""The GraphQL face, as endpoints of the server."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.server.http.conditional import matches
from carrel.server.http.endpoint import (
    IF_NONE_MATCH,
    Endpoint,
    Request,
    RequestModel,
    ResponseModel,
    endpoint,
)
from carrel.server.http.request_log import RequestLog
from carrel.server.http.response import Response

if TYPE_CHECKING:
    from carrel.server.graphql import Documents

_TAG: Final = "GraphQL"
_MAX_BODY: Final = 6 * 4 * 2**20 + 2**17
"""A file as a variable, each of its bytes escaped, and a document."""
_FIELDS: Final = {"type": "array", "items": {"type": ["string", "integer"]}}


class GraphqlRequest(RequestModel, frozen=True):
    """What a client asks for, as the convention for GraphQL over HTTP has it."""

    query: Annotated[str, Meta(description="A document: the schema is at `/graphql/schema`.")]
    variables: dict[str, Any] | None = None
    operation_name: str | None = None
    extensions: Annotated[dict[str, Any], Meta(description="Taken, and left aside.")] | None = None


class GraphqlError(ResponseModel, frozen=True):
    message: str
    extensions: Annotated[dict[str, Any], Meta(description="`code`, and what goes with it.")]
    locations: list[dict[str, int]] | msgspec.UnsetType = msgspec.UNSET
    path: Annotated[list[Any], Meta(extra_json_schema=_FIELDS)] | msgspec.UnsetType = msgspec.UNSET


class GraphqlAnswer(ResponseModel, frozen=True):
    """Without `data` where nothing was executed, without `errors` where nothing went wrong."""

    data: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET
    errors: list[GraphqlError] | msgspec.UnsetType = msgspec.UNSET


def preload() -> None:
    """Load the schema and what executes it."""


@cache
def _documents(depth: int, cost: int) -> Documents:
    """With the limits that the operator has chosen; loaded when it is first asked for."""
    from carrel.server.graphql import LIMITS, SCHEMA, Documents  # noqa: PLC0415 - it takes a while

    return Documents(SCHEMA, replace(LIMITS, depth=depth, cost=cost))


@cache
def _schema() -> tuple[bytes, str]:
    """The schema's text, and its tag."""
    from carrel.server.graphql import SCHEMA_TEXT  # noqa: PLC0415 - as above

    text = SCHEMA_TEXT.encode()
    return text, f'"{hashlib.sha256(text).hexdigest()[:32]}"'


def _asking(depth: int, cost: int) -> Endpoint:
    loaded = False

    @endpoint(
        "POST",
        "/graphql",
        id="graphql",
        body=GraphqlRequest,
        responses={200: GraphqlAnswer},
        tag=_TAG,
        max_body=_MAX_BODY,
    )
    async def ask(call: Request[GraphqlRequest]) -> Response:
        """Execute a GraphQL document.

        Whatever is JSON of this shape is answered with 200; what went wrong is told in `errors`,
        each with a code in `extensions.code`. The schema says what each field needs.
        """

        nonlocal loaded
        if not loaded:
            await asyncio.to_thread(_documents, depth, cost)
            loaded = True
        from carrel.server.graphql import Asked, execute  # noqa: PLC0415 - as above

        def tell(error: BaseException) -> str:
            RequestLog().failure(call.request_id, error)
            return call.request_id

        body = call.body
        asked = Asked(body.query, body.variables or {}, body.operation_name)
        documents = _documents(depth, cost)
        answer = await execute(call.ports, call.actor, asked, tell, documents)
        return Response.json(answer, headers={"Cache-Control": "no-store"})

    return ask


@endpoint(
    "GET",
    "/graphql/schema",
    id="graphql_schema",
    allow_unknown_query=True,
    responses={200: "text/plain", 304: None},
    headers=(IF_NONE_MATCH,),
    response_headers=("ETag",),
    tag=_TAG,
)
async def schema(call: Request) -> Response:
    """The GraphQL schema, with a description of every field."""
    text, tag = await asyncio.to_thread(_schema)
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if matches(call, tag):
        return Response.empty(304, headers)
    return Response.content(text, "text/plain; charset=utf-8", headers=headers)


def endpoints(depth: int, cost: int) -> tuple[Endpoint, ...]:
    return (_asking(depth, cost), schema)
