"""The JSON Schemas and the AsyncAPI document, for those who check what they send and receive."""

from __future__ import annotations

import hashlib
from typing import Any, Final, Literal

from carrel.core.errors import Missing
from carrel.server.http.conditional import matches
from carrel.server.http.endpoint import IF_NONE_MATCH, Call, endpoint
from carrel.server.http.response import Answer, encode
from carrel.server.rest.meta.asyncapi import document
from carrel.server.rest.meta.json_schemas import ROOT, SCHEMAS

_TAG: Final = "Discovery"
_NAMES: Final = Literal[tuple(SCHEMAS)]


class _Kept:
    """A document that never changes while the server runs."""

    def __init__(self, body: Any, type: str) -> None:
        self.body, self.type = encode(body), type
        self.etag = f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'

    def answer(self, call: Call) -> Answer:
        headers = {"ETag": self.etag, "Cache-Control": "public, max-age=300"}
        if matches(call, self.etag):
            return Answer.empty(304, headers)
        return Answer.content(self.body, self.type, headers=headers)


_SCHEMAS: Final = {
    name: _Kept(schema, "application/schema+json") for name, schema in SCHEMAS.items()
}
_ASYNCAPI: Final = _Kept(document(), "application/json")


@endpoint(
    "GET",
    ROOT + "{name}",
    public=True,
    loose_query=True,
    params={"name": _NAMES},
    answers={200: "application/schema+json", 304: None},
    refuses=(Missing,),
    headers=(IF_NONE_MATCH,),
    gives=("ETag", "Cache-Control"),
    tag=_TAG,
)
async def schema(call: Call) -> Answer:
    """One of the JSON Schemas of RFC 0059's wire."""
    kept = _SCHEMAS.get(call.params["name"])
    if kept is None:
        raise Missing(f"the schemas are {', '.join(SCHEMAS)}")
    return kept.answer(call)


@endpoint(
    "GET",
    "/asyncapi.json",
    public=True,
    loose_query=True,
    answers={200: dict[str, Any], 304: None},
    headers=(IF_NONE_MATCH,),
    gives=("ETag", "Cache-Control"),
    tag=_TAG,
)
async def asyncapi(call: Call) -> Answer:
    """What is told as it happens, over streams and webhooks, as AsyncAPI 3.0."""
    return _ASYNCAPI.answer(call)


ENDPOINTS: Final = (schema, asyncapi)
