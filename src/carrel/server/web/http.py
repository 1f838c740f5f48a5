"""Endpoints that serve the admin console."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

from carrel.core.errors import NotFound
from carrel.server.http.app import Mount
from carrel.server.http.conditional import matches
from carrel.server.http.endpoint import IF_NONE_MATCH, Request, endpoint
from carrel.server.http.response import Response
from carrel.server.web import FOR_EVER, HEADERS, PREFIXES, Asset, assets, page

_TAG: Final = "Page"
_assets = cache(assets)
_page = cache(page)


preload: Callable[[], None] | None = None
"""Called once when the page is first served; set by wiring."""


@cache
def _preload_graphql() -> None:
    """Load GraphQL in the background: the console's first request uses it."""
    if preload is not None:
        asyncio.get_running_loop().run_in_executor(None, preload)


_asset = partial(
    endpoint,
    "GET",
    public=True,
    allow_unknown_query=True,
    responses={200: "*/*", 304: None},
    refusals=(NotFound,),
    headers=(IF_NONE_MATCH,),
    response_headers=("ETag",),
    tag=_TAG,
)


@endpoint(
    "GET",
    "/",
    id="page",
    public=True,
    allow_unknown_query=True,
    responses={200: "text/html"},
    response_headers=("Content-Security-Policy",),
    tag=_TAG,
)
async def console_page(call: Request) -> Response:
    """The admin console."""
    _preload_graphql()
    body, headers = _page().render()
    return Response.content(body, "text/html; charset=utf-8", headers=headers)


@_asset("/ui/{name}", id="page_part")
async def page_asset(call: Request) -> Response:
    """A script, style or font of the console; its name contains a content hash."""
    return _serve_asset(call, f"/ui/{call.params['name']}", FOR_EVER)


@_asset("/icon.svg", id="page_icon")
async def icon(call: Request) -> Response:
    """The icon of the console."""
    return _serve_asset(call, "/icon.svg", "no-cache")


def _serve_asset(call: Request, name: str, cache_control: str) -> Response:
    asset: Asset | None = _assets().get(name)
    if asset is None:
        raise NotFound("no such asset")
    headers = {
        **HEADERS,
        "ETag": asset.etag,
        "Cache-Control": cache_control,
        "Vary": "Accept-Encoding",
    }
    if matches(call, asset.etag):
        return Response.empty(304, headers)
    encodings = (call.header(b"accept-encoding") or "").replace(" ", "").split(",")
    if asset.gzipped is not None and "gzip" in encodings:
        headers["Content-Encoding"] = "gzip"
        return Response.content(asset.gzipped, asset.type, headers=headers)
    return Response.content(asset.body, asset.type, headers=headers)


async def _screen(scope: Any, receive: Any, send: Any) -> None:
    """Serve the page at the URL of any screen."""
    _preload_graphql()
    is_read = scope["method"] in {"GET", "HEAD"}
    body, fields = _page().render() if is_read else (b"", {"Allow": "GET, HEAD"})
    headers = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
    headers += [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
    ]
    status = 200 if is_read else 405
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body if scope["method"] == "GET" else b""})


MOUNTS: Final = tuple(Mount(prefix, _screen) for prefix in PREFIXES)
ENDPOINTS: Final = (console_page, page_asset, icon)
