"""Git smart HTTP protocol, read-only: clone and fetch an agent's history."""

from __future__ import annotations

import zlib
from typing import Annotated, Final

import msgspec
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
from carrel.server.http.error_dialect import ErrorDialect, failure_code
from carrel.server.http.error_responses import Problem

_TAG: Final = "Git"
_SERVICE: Final = "git-upload-pack"
_REQUEST_TYPES: Final = frozenset({f"application/x-{_SERVICE}-request", "application/octet-stream"})
"""Media types that browsers send cross-origin only after a preflight request."""
_MAX_BODY_BYTES: Final = 2**20
_MAX_UNPACKED_BYTES: Final = 8 * 2**20
_READ_ONLY: Final = "this repository is read-only; write files through the API instead"
_NO_CACHE: Final = {"Cache-Control": "no-cache, max-age=0, must-revalidate", "Pragma": "no-cache"}


def _format_error(problem: Problem) -> str:
    code = failure_code(problem)
    return f"{problem.message}\n" if code is msgspec.UNSET else f"{code}: {problem.message}\n"


GIT_DIALECT: Final = ErrorDialect([], str, _format_error, plain_text=True, basic_auth=True)
"""Errors as plain text, which git shows to its user."""


class GitRefsQuery(RequestModel, frozen=True):
    service: Annotated[str, Meta(description="Must be `git-upload-pack`.")] = ""


@endpoint(
    "GET",
    "/git/{repository}/info/refs",
    id="git_refs",
    permission=Permission.WORKSPACE_READ,
    query=GitRefsQuery,
    allow_unknown_query=True,
    responses={200: f"application/x-{_SERVICE}-advertisement"},
    refusals=(Forbidden, NotFound, CapabilityNotProvided),
    tag=_TAG,
    error_dialect=GIT_DIALECT,
)
async def get_refs(request: Request[None, GitRefsQuery]) -> Response:
    """List the refs of an agent's repository, for `git clone` and `git fetch`.

    `repository` is the agent's id or slug followed by `.git`; the agent's config must enable git.
    Send the token as Basic auth password (any user) or as bearer token.
    """
    if request.query.service == "git-receive-pack":
        raise Forbidden(_READ_ONLY)
    if request.query.service != _SERVICE:
        raise Forbidden("only the git smart HTTP protocol is supported, for reading")
    advertisement = await history.advertise_refs(request.ports, request.actor, _agent_name(request))
    return Response.content(
        advertisement, f"application/x-{_SERVICE}-advertisement", headers=_NO_CACHE
    )


@endpoint(
    "POST",
    "/git/{repository}/git-upload-pack",
    id="git_upload_pack",
    permission=Permission.WORKSPACE_READ,
    body=bytes,
    allow_unknown_query=True,
    responses={200: f"application/x-{_SERVICE}-result"},
    refusals=(NotFound, CapabilityNotProvided),
    headers=(RequestHeader("Content-Encoding", "Compression of the body.", ("gzip", "identity")),),
    tag=_TAG,
    error_dialect=GIT_DIALECT,
    max_body=_MAX_BODY_BYTES,
)
async def upload_pack(call: Request[bytes]) -> Response:
    """Send a pack to `git clone` or `git fetch`."""
    media_type = (call.header(b"content-type") or "").partition(";")[0].strip().lower()
    if media_type not in _REQUEST_TYPES:
        raise ValidationError(f"the body must be application/x-{_SERVICE}-request")
    request = _decompress(call.body, (call.header(b"content-encoding") or "").strip().lower())
    source = await history.create_pack(call.ports, call.actor, _agent_name(call), request)
    return Response.stream(source, f"application/x-{_SERVICE}-result")


@endpoint(
    "POST",
    "/git/{repository}/git-receive-pack",
    id="git_receive_pack",
    permission=Permission.WORKSPACE_READ,
    allow_unknown_query=True,
    responses={},
    tag=_TAG,
    error_dialect=GIT_DIALECT,
)
async def receive_pack(request: Request) -> Response:
    """Refuse a push: the repository is derived from the files and read-only."""
    raise Forbidden(_READ_ONLY)


def _agent_name(request: Request) -> str:
    return request.params["repository"].removesuffix(".git")


def _decompress(body: bytes, encoding: str) -> bytes:
    if encoding in {"", "identity"}:
        return body
    if encoding not in {"gzip", "x-gzip"}:
        raise ValidationError("unsupported Content-Encoding; use gzip")
    decompressor = zlib.decompressobj(31)
    try:
        content = decompressor.decompress(body, _MAX_UNPACKED_BYTES)
    except zlib.error:
        raise ValidationError("the body is not valid gzip") from None
    if decompressor.unconsumed_tail:
        raise PayloadTooLarge(
            f"decompressed body exceeds {_MAX_UNPACKED_BYTES} bytes", maxBytes=_MAX_UNPACKED_BYTES
        )
    if not decompressor.eof:
        raise ValidationError("the body is not valid gzip")
    return content


ENDPOINTS: Final = (get_refs, upload_pack, receive_pack)
