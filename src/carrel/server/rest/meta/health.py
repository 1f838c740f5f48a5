"""Liveness and readiness endpoints."""

from __future__ import annotations

from typing import Any, Final

from carrel.core.store.record import RecordType
from carrel.core.version import VERSION
from carrel.ports.sandbox import ResourceLimits, Sandbox
from carrel.server.http.endpoint import Request, endpoint
from carrel.server.http.response import Response


@endpoint("GET", "/healthz", public=True, responses={200: dict[str, Any]}, tag="Operations")
async def healthz(request: Request) -> Response:
    """Liveness: the process responds. Does not check the store."""
    return Response.json({"status": "ok"})


@endpoint(
    "GET",
    "/readyz",
    public=True,
    responses={200: dict[str, Any], 503: dict[str, Any]},
    tag="Operations",
)
async def readyz(request: Request) -> Response:
    """Readiness: the store responds. Includes the sandbox isolation tier."""
    try:
        await request.ports.records.collection_revisions([("", RecordType.TENANT)])
    except Exception:
        return Response.json({"status": "unavailable", "store": "unreachable"}, 503)
    local = request.ports.sandboxes.get("local")
    sandbox = _sandbox_status(local) if local else {"tier": "none"}
    return Response.json({"status": "ok", "store": "ok", "version": VERSION, "sandbox": sandbox})


def _sandbox_status(local: Sandbox) -> dict[str, str]:
    status = {"tier": local.tier}
    if local.tier not in {"untested", "none"}:
        refusal = local.unsupported_reason(ResourceLimits(memory_limit_required=True))
        status["memoryLimit"] = "refused" if refusal else "enforced"
    return status


ENDPOINTS: Final = (healthz, readyz)
