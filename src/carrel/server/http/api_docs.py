"""Endpoints that serve the API description: OpenAPI documents and a docs page."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Final

from carrel.server.http.endpoint import IF_NONE_MATCH, Endpoint, Request, endpoint
from carrel.server.http.openapi import build_document, require_unique_ids
from carrel.server.http.response import JSON_TYPE, Response, encode

_TAG: Final = "Operations"


def documentation_endpoints(
    endpoints: Sequence[Endpoint], title: str, version: str
) -> list[Endpoint]:
    """Return the endpoints `/openapi.json`, `/v1/openapi.json` and `/docs`.

    They describe all endpoints, themselves included. The document is rendered on first request, so
    that it does not delay the start. Raises ValueError if two endpoints share an id.
    """
    api_endpoints = tuple(endpoints)

    @cache
    def render_document() -> Response:
        return _with_etag(encode(build_document([*api_endpoints, *doc_endpoints], title, version)))

    async def get_openapi(request: Request[None]) -> Response:
        """Get the OpenAPI 3.1 document."""
        response = render_document()
        etag = (response.header(b"etag") or b"").decode()
        return (
            Response.empty(304, {"ETag": etag})
            if request.header(b"if-none-match") == etag
            else response
        )

    doc_endpoints = [
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
        )(get_openapi)
        for path, id in (("/openapi.json", "openapi"), ("/v1/openapi.json", "openapi_v1"))
    ]
    doc_endpoints.append(_docs_endpoint())
    require_unique_ids([*api_endpoints, *doc_endpoints])
    return doc_endpoints


def _with_etag(body: bytes) -> Response:
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return Response(200, body, [JSON_TYPE, (b"etag", tag.encode())])


def _docs_endpoint() -> Endpoint:
    page = resources.files(__package__).joinpath("docs.html").read_text("utf-8")
    headers = {"Content-Security-Policy": _content_security_policy(page)}
    response = Response.content(page.encode(), "text/html; charset=utf-8", headers=headers)

    @endpoint(
        "GET",
        "/docs",
        id="docs",
        public=True,
        allow_unknown_query=True,
        responses={200: "text/html"},
        tag=_TAG,
    )
    async def get_docs(request: Request[None]) -> Response:
        """Show the API documentation page."""
        return response

    return get_docs


def _content_security_policy(page: str) -> str:
    """Policy that allows only the page's inline script and style, by their hashes."""
    hashes = {}
    for tag in ("script", "style"):
        match = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        text = match[1] if match else ""
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        hashes[tag] = f"'sha256-{digest}'"
    return (
        f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
