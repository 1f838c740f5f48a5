"""Liveness and readiness endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from carrel.core.outages import StorageFull
from carrel.core.version import VERSION
from carrel.ports import HealthCheck
from carrel.ports.sandbox import ResourceLimits, Sandbox
from carrel.server.http.endpoint import Request, endpoint
from carrel.server.http.response import Response

_CHECK_SECONDS: Final = 5.0


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
    """Readiness: database and blobs can be read and written. Includes the sandbox tier.

    A component that is `full` refuses writes, and reads go on; `unreachable` ones refuse both.
    """
    statuses = await _component_statuses(request.ports.health_checks)
    if set(statuses.values()) - {"ok"}:
        return Response.json({"status": "unavailable", **statuses, "version": VERSION}, 503)
    local = request.ports.sandboxes.get("local")
    sandbox = _sandbox_status(local) if local else {"tier": "none"}
    return Response.json({"status": "ok", **statuses, "version": VERSION, "sandbox": sandbox})


async def _component_statuses(checks: Mapping[str, HealthCheck]) -> dict[str, str]:
    statuses = await asyncio.gather(*map(_component_status, checks.values()))
    return dict(zip(checks, statuses, strict=True))


async def _component_status(check: HealthCheck) -> str:
    try:
        async with asyncio.timeout(_CHECK_SECONDS):
            await check()
    except StorageFull:
        return "full"
    except Exception:
        return "unreachable"
    return "ok"


def _sandbox_status(local: Sandbox) -> dict[str, str]:
    status = {"tier": local.tier}
    if local.tier not in {"untested", "none"}:
        refusal = local.unsupported_reason(ResourceLimits(memory_limit_required=True))
        status["memoryLimit"] = "refused" if refusal else "enforced"
    return status


ENDPOINTS: Final = (healthz, readyz)
