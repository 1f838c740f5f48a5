"""Agents' histories for git itself: its smart protocol over HTTP, to clone and fetch from."""

from __future__ import annotations

import zlib
from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.git import history as gits
from carrel.core.access import Permission
from carrel.core.errors import BodyTooLarge, Forbidden, Malformed, Missing, NotProvided
from carrel.server.http.endpoint import Answer, Call, Header, Received, endpoint
from carrel.server.http.error_dialect import Manner
from carrel.server.http.problems import Problem

_TAG: Final = "Git"
_SERVICE: Final = "git-upload-pack"
_REQUESTS: Final = frozenset({f"application/x-{_SERVICE}-request", "application/octet-stream"})
"""None that a page of another site could send without being asked about it."""
_MAX_BODY: Final = 2**20
_MAX_UNPACKED: Final = 8 * 2**20
_READ_ONLY: Final = "this repository is read-only: write the files, and git follows"
_FRESH: Final = {"Cache-Control": "no-cache, max-age=0, must-revalidate", "Pragma": "no-cache"}


def _told(problem: Problem) -> str:
    return f"{problem.message}\n"


MANNER: Final = Manner([], str, _told, plain=True, basic=True)
"""Git shows its user what is text."""


class Wanted(Received, frozen=True):
    service: Annotated[str, Meta(description="`git-upload-pack`: all that is done here.")] = ""


@endpoint(
    "GET",
    "/git/{repository}/info/refs",
    id="git_refs",
    permission=Permission.WORKSPACE_READ,
    query=Wanted,
    loose_query=True,
    answers={200: f"application/x-{_SERVICE}-advertisement"},
    refuses=(Forbidden, Missing, NotProvided),
    tag=_TAG,
    manner=MANNER,
)
async def refs(call: Call[None, Wanted]) -> Answer:
    """What an agent's repository has, as `git clone` asks for it.

    `repository` is the agent's id or slug with `.git` behind it, of an agent whose config enables
    git. The token comes as the password of Basic authentication, whatever the user, or as Bearer.
    """
    if call.query.service == "git-receive-pack":
        raise Forbidden(_READ_ONLY)
    if call.query.service != _SERVICE:
        raise Forbidden("only git's smart protocol is spoken here, and only to read")
    told = await gits.advertised(call.world, call.actor, _agent(call))
    return Answer.content(told, f"application/x-{_SERVICE}-advertisement", headers=_FRESH)


@endpoint(
    "POST",
    "/git/{repository}/git-upload-pack",
    id="git_upload_pack",
    permission=Permission.WORKSPACE_READ,
    body=bytes,
    loose_query=True,
    answers={200: f"application/x-{_SERVICE}-result"},
    refuses=(Missing, NotProvided),
    headers=(Header("Content-Encoding", "How the body is packed.", ("gzip", "identity")),),
    tag=_TAG,
    manner=MANNER,
    max_body=_MAX_BODY,
)
async def upload_pack(call: Call[bytes]) -> Answer:
    """What `git clone` and `git fetch` want of it."""
    kind = (call.header(b"content-type") or "").partition(";")[0].strip().lower()
    if kind not in _REQUESTS:
        raise Malformed(f"the body must be application/x-{_SERVICE}-request")
    request = _unpacked(call.body, (call.header(b"content-encoding") or "").strip().lower())
    source = await gits.packed(call.world, call.actor, _agent(call), request)
    return Answer.stream(source, f"application/x-{_SERVICE}-result")


@endpoint(
    "POST",
    "/git/{repository}/git-receive-pack",
    id="git_receive_pack",
    permission=Permission.WORKSPACE_READ,
    loose_query=True,
    answers={},
    tag=_TAG,
    manner=MANNER,
)
async def receive_pack(call: Call) -> Answer:
    """Nothing is pushed here: the repository follows from the files, and not the other way."""
    raise Forbidden(_READ_ONLY)


def _agent(call: Call) -> str:
    return call.params["repository"].removesuffix(".git")


def _unpacked(body: bytes, encoding: str) -> bytes:
    if encoding in {"", "identity"}:
        return body
    if encoding not in {"gzip", "x-gzip"}:
        raise Malformed("the body may be packed by gzip, and not otherwise")
    unpacking = zlib.decompressobj(31)
    try:
        found = unpacking.decompress(body, _MAX_UNPACKED)
    except zlib.error:
        raise Malformed("the body is not packed by gzip") from None
    if unpacking.unconsumed_tail:
        raise BodyTooLarge(f"a request may have {_MAX_UNPACKED} bytes", maxBytes=_MAX_UNPACKED)
    if not unpacking.eof:
        raise Malformed("the body is not packed by gzip")
    return found


ENDPOINTS: Final = (refs, upload_pack, receive_pack)
