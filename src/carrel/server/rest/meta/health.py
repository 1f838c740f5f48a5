"""Whether the server lives, and whether it can serve."""

from __future__ import annotations

from typing import Any, Final

from carrel.core.store.record import RecordType
from carrel.core.version import VERSION
from carrel.ports.sandbox import ResourceLimits, Sandbox
from carrel.server.http.endpoint import Request, endpoint
from carrel.server.http.response import Response


@endpoint("GET", "/healthz", public=True, responses={200: dict[str, Any]}, tag="Operations")
async def healthz(call: Request) -> Response:
    """Alive: the process answers. Says nothing of the store."""
    return Response.json({"status": "ok"})


@endpoint(
    "GET",
    "/readyz",
    public=True,
    responses={200: dict[str, Any], 503: dict[str, Any]},
    tag="Operations",
)
async def readyz(call: Request) -> Response:
    """Ready: the store answers, so requests will be served. Says what keeps commands apart, too."""
    try:
        await call.ports.records.collection_revisions([("", RecordType.TENANT)])
    except Exception:
        return Response.json({"status": "unavailable", "store": "unreachable"}, 503)
    local = call.ports.sandboxes.get("local")
    walls = _walls(local) if local else {"tier": "none"}
    return Response.json({"status": "ok", "store": "ok", "version": VERSION, "sandbox": walls})


def _walls(local: Sandbox) -> dict[str, str]:
    walls = {"tier": local.tier}
    if local.tier not in {"untested", "none"}:
        refused = local.unsupported_reason(ResourceLimits(memory_limit_required=True))
        walls["memoryLimit"] = "refused" if refused else "enforced"
    return walls


ENDPOINTS: Final = (healthz, readyz)
