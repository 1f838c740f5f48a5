"""HTTP endpoints of the GraphQL API."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.core.errors import WorkspaceTooLarge
from carrel.server.http.endpoint import (
    IF_NONE_MATCH,
    Endpoint,
    Request,
    RequestModel,
    ResponseModel,
    endpoint,
)
from carrel.server.http.not_modified import etag_matches
from carrel.server.http.request_log import RequestLog
from carrel.server.http.response import Response

if TYPE_CHECKING:
    from carrel.server.graphql import DocumentCache

_TAG: Final = "GraphQL"
_MAX_BODY_BYTES: Final = 6 * 4 * 2**20 + 2**17
"""A file of the maximum size with every byte escaped, plus a document."""
_PATH_SCHEMA: Final = {"type": "array", "items": {"type": ["string", "integer"]}}


class GraphqlRequestBody(RequestModel, frozen=True):
    """Request of the GraphQL over HTTP specification."""

    query: Annotated[str, Meta(description="GraphQL document; the schema is at `/graphql/schema`.")]
    variables: dict[str, Any] | None = None
    operation_name: str | None = None
    extensions: Annotated[dict[str, Any], Meta(description="Ignored.")] | None = None


class GraphqlErrorModel(ResponseModel, frozen=True):
    message: str
    extensions: Annotated[dict[str, Any], Meta(description="`code` and further details.")]
    locations: list[dict[str, int]] | msgspec.UnsetType = msgspec.UNSET
    path: Annotated[list[Any], Meta(extra_json_schema=_PATH_SCHEMA)] | msgspec.UnsetType = (
        msgspec.UNSET
    )


class GraphqlResponseModel(ResponseModel, frozen=True):
    """`data` is absent if nothing was executed, `errors` if nothing failed."""

    data: dict[str, Any] | msgspec.UnsetType | None = msgspec.UNSET
    errors: list[GraphqlErrorModel] | msgspec.UnsetType = msgspec.UNSET


def _create_documents(depth: int, cost: int) -> DocumentCache:
    from carrel.server.graphql import LIMITS, SCHEMA, DocumentCache  # noqa: PLC0415 - slow import

    return DocumentCache(SCHEMA, replace(LIMITS, depth=depth, cost=cost))


@cache
def _load_schema_text() -> tuple[bytes, str]:
    """Schema text and its ETag."""
    from carrel.server.graphql import SCHEMA_TEXT  # noqa: PLC0415 - as above

    text = SCHEMA_TEXT.encode()
    return text, f'"{hashlib.sha256(text).hexdigest()[:32]}"'


def _execute_endpoint(depth: int, cost: int) -> Endpoint:
    documents: DocumentCache | None = None
    """Cache of the app that has this endpoint; created on first use."""

    @endpoint(
        "POST",
        "/graphql",
        id="graphql",
        body=GraphqlRequestBody,
        responses={200: GraphqlResponseModel},
        refusals=(WorkspaceTooLarge,),
        tag=_TAG,
        max_body=_MAX_BODY_BYTES,
    )
    async def execute_document(request: Request[GraphqlRequestBody]) -> Response:
        """Execute a GraphQL document.

        Every well-formed request returns 200; failures are in `errors`, each with a code in
        `extensions.code`. The schema documents the permission of each field.
        """

        nonlocal documents
        if documents is None:
            documents = await asyncio.to_thread(_create_documents, depth, cost)
        from carrel.server.graphql import GraphqlOperation, execute  # noqa: PLC0415 - as above

        def log_failure(error: BaseException) -> str:
            RequestLog().failure(request.request_id, error)
            return request.request_id

        body = request.body
        operation = GraphqlOperation(body.query, body.variables or {}, body.operation_name)
        response = await execute(request.ports, request.actor, operation, log_failure, documents)
        return Response.json(response, headers={"Cache-Control": "no-store"})

    return execute_document


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
async def schema(request: Request) -> Response:
    """Get the GraphQL schema with descriptions."""
    text, etag = await asyncio.to_thread(_load_schema_text)
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if etag_matches(request, etag):
        return Response.empty(304, headers)
    return Response.content(text, "text/plain; charset=utf-8", headers=headers)


def endpoints(depth: int, cost: int) -> tuple[Endpoint, ...]:
    return (_execute_endpoint(depth, cost), schema)
