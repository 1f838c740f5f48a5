"""Discovery document: protocol version, capabilities and limits."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from carrel.actions.accounts import credentials
from carrel.actions.policy.tenant_rules import load_rules
from carrel.core.errors import TooManyAttempts, Unauthenticated
from carrel.core.policy import Limits
from carrel.core.runs import NOOP_WORKFLOW
from carrel.core.version import VERSION
from carrel.server.http.endpoint import IF_NONE_MATCH, Request, endpoint
from carrel.server.http.not_modified import etag_matches
from carrel.server.http.request_parsing import parse_bearer_token
from carrel.server.http.response import Response, encode

PROTOCOL: Final = "1.0"


def discovery_document(limits: Limits, version: str) -> dict[str, Any]:
    """Build the openwop discovery document.

    The capabilities are at the root and, for older clients, under `capabilities`. With a
    credential the document has its tenant's limits, which `authScoped` declares.
    """
    workspace = {
        "supported": True,
        "versioned": True,
        "maxFileBytes": limits.max_file_bytes,
        "maxFiles": limits.max_files,
        "maxVersions": limits.max_versions,
    }
    discovery = {"authScoped": True}
    return {
        "protocolVersion": PROTOCOL,
        "implementation": {"name": "carrel", "version": version},
        "supportedEnvelopes": [],
        "schemaVersions": {},
        "limits": {"clarificationRounds": 0, "schemaRounds": 0, "envelopesPerTurn": 0},
        "fixtures": [NOOP_WORKFLOW],
        "workspace": workspace,
        "discovery": discovery,
        "capabilities": {"workspace": workspace, "discovery": discovery},
    }


@endpoint(
    "GET",
    "/.well-known/openwop",
    public=True,
    allow_unknown_query=True,
    responses={200: dict[str, Any], 304: None},
    headers=(IF_NONE_MATCH,),
    response_headers=("ETag", "Cache-Control"),
    tag="Discovery",
)
async def discovery(request: Request) -> Response:
    """Get the server's capabilities; with a credential, with its tenant's limits."""
    body = encode(discovery_document(await _limits(request), VERSION))
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    visibility = "public" if request.header(b"authorization") is None else "private"
    cache_control = f"{visibility}, max-age=300"
    headers = {"ETag": etag, "Cache-Control": cache_control, "Vary": "Authorization"}
    if etag_matches(request, etag):
        return Response.empty(304, headers)
    return Response.content(body, "application/json", headers=headers)


async def _limits(request: Request) -> Limits:
    ports, token = request.ports, parse_bearer_token(request.headers)
    if not token:
        return Limits()
    try:
        actor = await ports.attempts.limit(token, lambda: credentials.authenticate(ports, token))
    except (Unauthenticated, TooManyAttempts):
        return Limits()
    return (await load_rules(request.ports, actor.tenant)).policy.limits


ENDPOINTS: Final = (discovery,)
