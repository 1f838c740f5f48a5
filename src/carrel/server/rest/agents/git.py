"""Agents' histories for git itself: its smart protocol over HTTP, to clone and fetch from."""

from __future__ import annotations

import zlib
from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.git import history
from carrel.core.access import Permission
from carrel.core.errors import (
    CapabilityNotProvided,
    Forbidden,
    NotFound,
    PayloadTooLarge,
    ValidationError,
)
from carrel.server.http.endpoint import Request, RequestHeader, RequestModel, Response, endpoint
from carrel.server.http.error_dialect import ErrorDialect
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


MANNER: Final = ErrorDialect([], str, _told, plain=True, basic=True)
"""Git shows its user what is text."""


class UploadPackQuery(RequestModel, frozen=True):
    service: Annotated[str, Meta(description="`git-upload-pack`: all that is done here.")] = ""


@endpoint(
    "GET",
    "/git/{repository}/info/refs",
    id="git_refs",
    permission=Permission.WORKSPACE_READ,
    query=UploadPackQuery,
    allow_unknown_query=True,
    responses={200: f"application/x-{_SERVICE}-advertisement"},
    refusals=(Forbidden, NotFound, CapabilityNotProvided),
    tag=_TAG,
    error_dialect=MANNER,
)
async def refs(call: Request[None, UploadPackQuery]) -> Response:
    """What an agent's repository has, as `git clone` asks for it.

    `repository` is the agent's id or slug with `.git` behind it, of an agent whose config enables
    git. The token comes as the password of Basic authentication, whatever the user, or as Bearer.
    """
    if call.query.service == "git-receive-pack":
        raise Forbidden(_READ_ONLY)
    if call.query.service != _SERVICE:
        raise Forbidden("only git's smart protocol is spoken here, and only to read")
    told = await history.advertised(call.ports, call.actor, _agent(call))
    return Response.content(told, f"application/x-{_SERVICE}-advertisement", headers=_FRESH)


@endpoint(
    "POST",
    "/git/{repository}/git-upload-pack",
    id="git_upload_pack",
    permission=Permission.WORKSPACE_READ,
    body=bytes,
    allow_unknown_query=True,
    responses={200: f"application/x-{_SERVICE}-result"},
    refusals=(NotFound, CapabilityNotProvided),
    headers=(RequestHeader("Content-Encoding", "How the body is packed.", ("gzip", "identity")),),
    tag=_TAG,
    error_dialect=MANNER,
    max_body=_MAX_BODY,
)
async def upload_pack(call: Request[bytes]) -> Response:
    """What `git clone` and `git fetch` want of it."""
    kind = (call.header(b"content-type") or "").partition(";")[0].strip().lower()
    if kind not in _REQUESTS:
        raise ValidationError(f"the body must be application/x-{_SERVICE}-request")
    request = _unpacked(call.body, (call.header(b"content-encoding") or "").strip().lower())
    source = await history.packed(call.ports, call.actor, _agent(call), request)
    return Response.stream(source, f"application/x-{_SERVICE}-result")


@endpoint(
    "POST",
    "/git/{repository}/git-receive-pack",
    id="git_receive_pack",
    permission=Permission.WORKSPACE_READ,
    allow_unknown_query=True,
    responses={},
    tag=_TAG,
    error_dialect=MANNER,
)
async def receive_pack(call: Request) -> Response:
    """Nothing is pushed here: the repository follows from the files, and not the other way."""
    raise Forbidden(_READ_ONLY)


def _agent(call: Request) -> str:
    return call.params["repository"].removesuffix(".git")


def _unpacked(body: bytes, encoding: str) -> bytes:
    if encoding in {"", "identity"}:
        return body
    if encoding not in {"gzip", "x-gzip"}:
        raise ValidationError("the body may be packed by gzip, and not otherwise")
    unpacking = zlib.decompressobj(31)
    try:
        found = unpacking.decompress(body, _MAX_UNPACKED)
    except zlib.error:
        raise ValidationError("the body is not packed by gzip") from None
    if unpacking.unconsumed_tail:
        raise PayloadTooLarge(f"a request may have {_MAX_UNPACKED} bytes", maxBytes=_MAX_UNPACKED)
    if not unpacking.eof:
        raise ValidationError("the body is not packed by gzip")
    return found


ENDPOINTS: Final = (refs, upload_pack, receive_pack)
