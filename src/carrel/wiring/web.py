"""The page for people, as endpoints of the server."""

from __future__ import annotations

from typing import Final

from carrel.core.errors import Missing
from carrel.faces.rest.answer import Answer
from carrel.faces.rest.endpoint import IF_NONE_MATCH, Call, endpoint
from carrel.faces.rest.files import matches
from carrel.faces.web import HEADERS, PAGE, Asset, assets

_TAG: Final = "Page"
_ASSETS: Final = assets()


def _served(call: Call, asset: Asset) -> Answer:
    headers = {**HEADERS, "ETag": asset.etag}
    if matches(call, asset.etag):
        return Answer.empty(304, headers)
    return Answer.content(asset.body, asset.type, headers=headers)


@endpoint(
    "GET",
    "/",
    id="page",
    public=True,
    loose_query=True,
    answers={200: "text/html", 304: None},
    headers=(IF_NONE_MATCH,),
    gives=("ETag", "Content-Security-Policy"),
    tag=_TAG,
)
async def page(call: Call) -> Answer:
    """The page for people: files, their history, runs, and what happens as it happens."""
    return _served(call, _ASSETS[PAGE])


@endpoint(
    "GET",
    "/ui/{name}",
    id="page_part",
    public=True,
    loose_query=True,
    answers={200: "*/*", 304: None},
    refuses=(Missing,),
    headers=(IF_NONE_MATCH,),
    gives=("ETag",),
    tag=_TAG,
)
async def part(call: Call) -> Answer:
    """A script, style or picture of the page."""
    found = _ASSETS.get(call.params["name"])
    if found is None:
        raise Missing("the page has no such part")
    return _served(call, found)


ENDPOINTS: Final = (page, part)
