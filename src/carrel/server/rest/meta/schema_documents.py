"""Endpoints that serve the JSON Schemas and the AsyncAPI document."""

from __future__ import annotations

import hashlib
from typing import Any, Final, Literal

from carrel.core.errors import NotFound
from carrel.server.http.endpoint import IF_NONE_MATCH, Request, endpoint
from carrel.server.http.not_modified import etag_matches
from carrel.server.http.response import Response, encode
from carrel.server.rest.meta.asyncapi import asyncapi_document
from carrel.server.rest.meta.json_schemas import ROOT, SCHEMAS

_TAG: Final = "Discovery"
_NAMES: Final = Literal[tuple(SCHEMAS)]


class _StaticDocument:
    """A document that does not change while the server runs."""

    def __init__(self, body: Any, type: str) -> None:
        self.body, self.type = encode(body), type
        self.etag = f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'

    def response(self, request: Request) -> Response:
        headers = {"ETag": self.etag, "Cache-Control": "public, max-age=300"}
        if etag_matches(request, self.etag):
            return Response.empty(304, headers)
        return Response.content(self.body, self.type, headers=headers)


_SCHEMAS: Final = {
    name: _StaticDocument(schema, "application/schema+json") for name, schema in SCHEMAS.items()
}
_ASYNCAPI: Final = _StaticDocument(asyncapi_document(), "application/json")


@endpoint(
    "GET",
    ROOT + "{name}",
    public=True,
    allow_unknown_query=True,
    params={"name": _NAMES},
    responses={200: "application/schema+json", 304: None},
    refusals=(NotFound,),
    headers=(IF_NONE_MATCH,),
    response_headers=("ETag", "Cache-Control"),
    tag=_TAG,
)
async def schema(request: Request) -> Response:
    """Get a JSON Schema of RFC 0059."""
    static = _SCHEMAS.get(request.params["name"])
    if static is None:
        raise NotFound(f"no such schema; available: {', '.join(SCHEMAS)}")
    return static.response(request)


@endpoint(
    "GET",
    "/asyncapi.json",
    public=True,
    allow_unknown_query=True,
    responses={200: dict[str, Any], 304: None},
    headers=(IF_NONE_MATCH,),
    response_headers=("ETag", "Cache-Control"),
    tag=_TAG,
)
async def asyncapi(request: Request) -> Response:
    """Get the AsyncAPI 3.0 document of event streams and webhooks."""
    return _ASYNCAPI.response(request)


ENDPOINTS: Final = (schema, asyncapi)
