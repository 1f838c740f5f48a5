"""REST endpoints for the tenant's policy."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, field

from carrel.actions.overlay import policy_preview
from carrel.actions.policy import policies
from carrel.actions.policy.policies import PolicyModel
from carrel.core.access import Permission
from carrel.core.errors import Busy, ValidationError
from carrel.core.overlay.file_classes import FileClass
from carrel.server.http.endpoint import Request, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.files import REASON_HEADER, parse_reason

_TAG: Final = "Policy"


class ClassChangeModel(ResponseModel, frozen=True):
    """A path whose file class would change."""

    path: str
    was: FileClass = field(name="from")
    now: FileClass = field(name="to")
    agents: Annotated[int, Meta(ge=0)]
    """Number of agents that have the file, own or inherited."""


class PolicyPreviewModel(ResponseModel, frozen=True):
    """Effect of a policy on file classes."""

    changes: list[ClassChangeModel]
    """At most 500, those that affect most agents first."""
    count: Annotated[int, Meta(ge=0)]
    """Number of all paths that would change."""
    loosens: bool
    """Whether a pinned file would become live, which requires a reason."""


@endpoint(
    "GET", "/v1/policy", permission=Permission.TENANT_READ, responses={200: PolicyModel}, tag=_TAG
)
async def get(request: Request) -> Response:
    """Get the tenant's policy: limits, redaction and retention."""
    return Response.json(await policies.get(request.ports, request.actor))


@endpoint(
    "PUT",
    "/v1/policy",
    permission=Permission.TENANT_ADMIN,
    body=PolicyModel,
    responses={200: PolicyModel},
    refusals=(ValidationError, Busy),
    headers=(REASON_HEADER,),
    tag=_TAG,
    idempotent=True,
)
async def put(request: Request[PolicyModel]) -> Response:
    """Replace the policy. Omitted fields take their defaults.

    Files that become pinned are pinned for every agent at their current content. Making a pinned
    file live again requires a reason in `Carrel-Reason`.
    """
    if not request.raw_body:
        raise ValidationError("a policy is required; send {} for an empty one")
    reason = parse_reason(request)
    return Response.json(await policies.put(request.ports, request.actor, request.body, reason))


@endpoint(
    "POST",
    "/v1/policy/preview",
    permission=Permission.TENANT_ADMIN,
    body=PolicyModel,
    responses={200: PolicyPreviewModel},
    refusals=(ValidationError,),
    tag=_TAG,
)
async def preview(request: Request[PolicyModel]) -> Response:
    """Preview which files change class under a policy. Changes nothing."""
    if not request.raw_body:
        raise ValidationError("a policy is required; send {} for an empty one")
    result = await policy_preview.preview_policy(request.ports, request.actor, request.body)
    changes = [
        ClassChangeModel(
            path=change.path.text, was=change.old_class, now=change.new_class, agents=change.agents
        )
        for change in result.changes
    ]
    return Response.json(
        PolicyPreviewModel(changes=changes, count=result.count, loosens=result.loosens)
    )


ENDPOINTS: Final = (get, put, preview)
