"""The page for people, as endpoints of the server."""

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
"""What to load while the page travels; set by wiring."""


@cache
def _preload_graphql() -> None:
    """Whoever opens the page asks by GraphQL next: load it while the page travels."""
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
async def whole(call: Request) -> Response:
    """The desk: the page on which people look after their agents."""
    _preload_graphql()
    body, headers = _page().fresh()
    return Response.content(body, "text/html; charset=utf-8", headers=headers)


@_asset("/ui/{name}", id="page_part")
async def part(call: Request) -> Response:
    """A script, style or typeface of the page, under a name that changes with what it holds."""
    return _served(call, f"/ui/{call.params['name']}", FOR_EVER)


@_asset("/icon.svg", id="page_icon")
async def icon(call: Request) -> Response:
    """The sign of the page."""
    return _served(call, "/icon.svg", "no-cache")


def _served(call: Request, name: str, kept: str) -> Response:
    asset: Asset | None = _assets().get(name)
    if asset is None:
        raise NotFound("the page has no such part")
    headers = {**HEADERS, "ETag": asset.etag, "Cache-Control": kept, "Vary": "Accept-Encoding"}
    if matches(call, asset.etag):
        return Response.empty(304, headers)
    takes = (call.header(b"accept-encoding") or "").replace(" ", "").split(",")
    if asset.squeezed is not None and "gzip" in takes:
        headers["Content-Encoding"] = "gzip"
        return Response.content(asset.squeezed, asset.type, headers=headers)
    return Response.content(asset.body, asset.type, headers=headers)


async def _screen(scope: Any, receive: Any, send: Any) -> None:
    """The same page at every address that has a screen: the page itself tells them apart."""
    _preload_graphql()
    reads = scope["method"] in {"GET", "HEAD"}
    body, told = _page().fresh() if reads else (b"", {"Allow": "GET, HEAD"})
    headers = [(name.lower().encode(), value.encode()) for name, value in told.items()]
    headers += [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
    ]
    status = 200 if reads else 405
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body if scope["method"] == "GET" else b""})


MOUNTS: Final = tuple(Mount(prefix, _screen) for prefix in PREFIXES)
ENDPOINTS: Final = (whole, part, icon)
