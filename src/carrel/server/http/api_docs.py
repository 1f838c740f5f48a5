"""The description of the API, for machines and for people."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Final

from carrel.server.http.endpoint import IF_NONE_MATCH, Endpoint, Request, endpoint
from carrel.server.http.openapi import document, unique_names
from carrel.server.http.response import JSON_TYPE, Response, encode

_TAG: Final = "Operations"


def pages(endpoints: Sequence[Endpoint], title: str, version: str) -> list[Endpoint]:
    """``/openapi.json``, ``/v1/openapi.json`` and ``/docs``: all endpoints, themselves included.

    Raises ValueError where the endpoints cannot be told apart. The description is made when it is
    first asked for: many a server is never asked, and none should start later for it.
    """
    others = tuple(endpoints)

    @cache
    def made() -> Response:
        return _tagged(encode(document([*others, *told], title, version)))

    async def description(call: Request[None]) -> Response:
        """This description of the API, as OpenAPI 3.1."""
        whole = made()
        tag = (whole.header(b"etag") or b"").decode()
        return Response.empty(304, {"ETag": tag}) if call.header(b"if-none-match") == tag else whole

    told = [
        endpoint(
            "GET",
            path,
            id=id,
            public=True,
            allow_unknown_query=True,
            headers=(IF_NONE_MATCH,),
            response_headers=("ETag",),
            responses={200: dict, 304: None},
            tag=_TAG,
        )(description)
        for path, id in (("/openapi.json", "openapi"), ("/v1/openapi.json", "openapi_v1"))
    ]
    told.append(_docs())
    unique_names([*others, *told])
    return told


def _tagged(body: bytes) -> Response:
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return Response(200, body, [JSON_TYPE, (b"etag", tag.encode())])


def _docs() -> Endpoint:
    page = resources.files(__package__).joinpath("docs.html").read_text("utf-8")
    headers = {"Content-Security-Policy": _policy(page), "X-Content-Type-Options": "nosniff"}
    whole = Response.content(page.encode(), "text/html; charset=utf-8", headers=headers)

    @endpoint(
        "GET",
        "/docs",
        id="docs",
        public=True,
        allow_unknown_query=True,
        responses={200: "text/html"},
        tag=_TAG,
    )
    async def docs(call: Request[None]) -> Response:
        """This description of the API, to be read in a browser."""
        return whole

    return docs


def _policy(page: str) -> str:
    """Nothing runs in the page but its own script and style, known by their hashes."""
    hashes = {}
    for tag in ("script", "style"):
        found = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        text = found[1] if found else ""
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        hashes[tag] = f"'sha256-{digest}'"
    return (
        f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
