"""REST endpoint for the definitions of workflows that the server runs itself."""

from __future__ import annotations

from typing import Any, Final

from carrel.core.access import Permission
from carrel.core.errors import NotFound
from carrel.core.runs import NOOP_WORKFLOW
from carrel.server.http.endpoint import Request, endpoint
from carrel.server.http.response import Response

_NOOP_DEFINITION: Final[dict[str, Any]] = {
    "id": NOOP_WORKFLOW,
    "name": "No operation",
    "description": "Freezes the workspace and completes at once.",
    "version": "1.0.0",
    "nodes": [
        {
            "id": "noop",
            "typeId": "core.noop",
            "name": "No operation",
            "position": {"x": 0, "y": 0},
            "config": {},
            "inputs": {},
        }
    ],
    "edges": [],
    "triggers": [{"id": "manual", "type": "manual"}],
    "variables": [],
    "metadata": {},
    "settings": {},
}


@endpoint(
    "GET",
    "/v1/workflows/{id}",
    permission=Permission.RUNS_READ,
    responses={200: dict[str, Any]},
    refusals=(NotFound,),
    allow_unknown_query=True,
    id="workflows_get",
    tag="Runs",
)
async def get_workflow(request: Request) -> Response:
    """Get the definition of `conformance-noop`, the workflow that the server itself runs."""
    id = request.params["id"]
    if id != NOOP_WORKFLOW:
        raise NotFound(f"no such workflow: {id}")
    return Response.json(_NOOP_DEFINITION)


ENDPOINTS: Final = (get_workflow,)
