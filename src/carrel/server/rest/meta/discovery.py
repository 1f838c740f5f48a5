"""What this server can do, for clients that ask before they try."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from carrel.actions.accounts import credentials
from carrel.actions.policy.tenant_rules import load_rules
from carrel.core.errors import Unauthenticated
from carrel.core.policy import Limits
from carrel.core.runs import NOOP
from carrel.core.version import VERSION
from carrel.server.http.conditional import matches
from carrel.server.http.endpoint import IF_NONE_MATCH, Request, endpoint
from carrel.server.http.response import Response, encode

PROTOCOL: Final = "1.0"


def document(limits: Limits, version: str) -> dict[str, Any]:
    """The openwop discovery document; the workspace block stands at its root and, for older
    clients, under ``capabilities``."""
    workspace = {
        "supported": True,
        "versioned": True,
        "maxFileBytes": limits.max_file_bytes,
        "maxFiles": limits.max_files,
        "maxVersions": limits.max_versions,
    }
    return {
        "protocolVersion": PROTOCOL,
        "implementation": {"name": "carrel", "version": version},
        "supportedEnvelopes": [],
        "schemaVersions": {},
        "limits": {"clarificationRounds": 0, "schemaRounds": 0, "envelopesPerTurn": 0},
        "fixtures": [NOOP],
        "workspace": workspace,
        "capabilities": {"workspace": workspace},
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
async def discovery(call: Request) -> Response:
    """What this server offers; with a credential, the limits are those of its tenant."""
    body = encode(document(await _limits(call), VERSION))
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": "public, max-age=300", "Vary": "Authorization"}
    if matches(call, etag):
        return Response.empty(304, headers)
    return Response.content(body, "application/json", headers=headers)


async def _limits(call: Request) -> Limits:
    given = call.header(b"authorization") or ""
    if not given.lower().startswith("bearer "):
        return Limits()
    try:
        actor = await credentials.authenticate(call.ports, given[7:].strip())
    except Unauthenticated:
        return Limits()
    return (await load_rules(call.ports, actor.tenant)).policy.limits


ENDPOINTS: Final = (discovery,)
