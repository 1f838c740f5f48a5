"""The JSON Schemas and the AsyncAPI document, for those who check what they send and receive."""

from __future__ import annotations

import hashlib
from typing import Any, Final, Literal

from carrel.core.errors import NotFound
from carrel.server.http.conditional import matches
from carrel.server.http.endpoint import IF_NONE_MATCH, Request, endpoint
from carrel.server.http.response import Response, encode
from carrel.server.rest.meta.asyncapi import document
from carrel.server.rest.meta.json_schemas import ROOT, SCHEMAS

_TAG: Final = "Discovery"
_NAMES: Final = Literal[tuple(SCHEMAS)]


class _StaticDocument:
    """A document that never changes while the server runs."""

    def __init__(self, body: Any, type: str) -> None:
        self.body, self.type = encode(body), type
        self.etag = f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'

    def answer(self, call: Request) -> Response:
        headers = {"ETag": self.etag, "Cache-Control": "public, max-age=300"}
        if matches(call, self.etag):
            return Response.empty(304, headers)
        return Response.content(self.body, self.type, headers=headers)


_SCHEMAS: Final = {
    name: _StaticDocument(schema, "application/schema+json") for name, schema in SCHEMAS.items()
}
_ASYNCAPI: Final = _StaticDocument(document(), "application/json")


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
async def schema(call: Request) -> Response:
    """One of the JSON Schemas of RFC 0059's wire."""
    kept = _SCHEMAS.get(call.params["name"])
    if kept is None:
        raise NotFound(f"the schemas are {', '.join(SCHEMAS)}")
    return kept.answer(call)


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
async def asyncapi(call: Request) -> Response:
    """What is told as it happens, over streams and webhooks, as AsyncAPI 3.0."""
    return _ASYNCAPI.answer(call)


ENDPOINTS: Final = (schema, asyncapi)
