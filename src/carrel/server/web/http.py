"""HTTP endpoints of the admin console."""

from __future__ import annotations

from functools import cache, partial
from typing import Any, Final

from carrel.core.errors import NotFound
from carrel.server.http.app import Mount
from carrel.server.http.endpoint import IF_NONE_MATCH, Request, endpoint
from carrel.server.http.not_modified import etag_matches
from carrel.server.http.response import Response
from carrel.server.web import HEADERS, IMMUTABLE_CACHE, PREFIXES, Asset, load_assets, load_page

_TAG: Final = "Page"
_load_assets = cache(load_assets)
_load_page = cache(load_page)

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
async def get_page(request: Request) -> Response:
    """Show the admin console."""
    body, headers = _load_page().render()
    return Response.content(body, "text/html; charset=utf-8", headers=headers)


@_asset("/ui/{name}", id="page_part")
async def get_asset(request: Request) -> Response:
    """Get a script, style or font of the console. Its name contains a content hash."""
    return _asset_response(request, f"/ui/{request.params['name']}", IMMUTABLE_CACHE)


@_asset("/icon.svg", id="page_icon")
async def get_icon(request: Request) -> Response:
    """Get the icon."""
    return _asset_response(request, "/icon.svg", "no-cache")


def not_found_page() -> Response:
    """Response to a browser at an unknown path: the console, which says so."""
    body, headers = _load_page().render()
    return Response.content(body, "text/html; charset=utf-8", 404, headers)


def _asset_response(request: Request, name: str, cache_control: str) -> Response:
    asset: Asset | None = _load_assets().get(name)
    if asset is None:
        raise NotFound("no such asset")
    headers = {
        **HEADERS,
        "ETag": asset.etag,
        "Cache-Control": cache_control,
        "Vary": "Accept-Encoding",
    }
    if etag_matches(request, asset.etag):
        return Response.empty(304, headers)
    encodings = (request.header(b"accept-encoding") or "").replace(" ", "").split(",")
    if asset.gzip_body is not None and "gzip" in encodings:
        headers["Content-Encoding"] = "gzip"
        return Response.content(asset.gzip_body, asset.type, headers=headers)
    return Response.content(asset.body, asset.type, headers=headers)


async def _serve_page(scope: Any, receive: Any, send: Any) -> None:
    """Serve the page at every console path."""
    is_read = scope["method"] in {"GET", "HEAD"}
    body, page_headers = _load_page().render() if is_read else (b"", {"Allow": "GET, HEAD"})
    headers = [(name.lower().encode(), value.encode()) for name, value in page_headers.items()]
    headers += [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
    ]
    status = 200 if is_read else 405
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body if scope["method"] == "GET" else b""})


MOUNTS: Final = tuple(Mount(prefix, _serve_page) for prefix in PREFIXES)
ENDPOINTS: Final = (get_page, get_asset, get_icon)
