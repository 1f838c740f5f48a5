"""Whether the server lives, and whether it can serve."""

from __future__ import annotations

from typing import Any, Final

from carrel.core.store.record import Noun
from carrel.core.version import VERSION
from carrel.ports.sandbox import Bounds, Sandbox
from carrel.server.http.endpoint import Call, endpoint
from carrel.server.http.response import Answer


@endpoint("GET", "/healthz", public=True, answers={200: dict[str, Any]}, tag="Operations")
async def healthz(call: Call) -> Answer:
    """Alive: the process answers. Says nothing of the store."""
    return Answer.json({"status": "ok"})


@endpoint(
    "GET",
    "/readyz",
    public=True,
    answers={200: dict[str, Any], 503: dict[str, Any]},
    tag="Operations",
)
async def readyz(call: Call) -> Answer:
    """Ready: the store answers, so requests will be served. Says what keeps commands apart, too."""
    try:
        await call.world.records.shelves([("", Noun.TENANT)])
    except Exception:
        return Answer.json({"status": "unavailable", "store": "unreachable"}, 503)
    local = call.world.sandboxes.get("local")
    walls = _walls(local) if local else {"tier": "none"}
    return Answer.json({"status": "ok", "store": "ok", "version": VERSION, "sandbox": walls})


def _walls(local: Sandbox) -> dict[str, str]:
    walls = {"tier": local.tier}
    if local.tier not in {"untested", "none"}:
        refused = local.refuses(Bounds(insists_on_memory=True))
        walls["memoryLimit"] = "refused" if refused else "enforced"
    return walls


ENDPOINTS: Final = (healthz, readyz)
