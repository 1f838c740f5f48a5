"""A tenant's policy over HTTP."""

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
from carrel.server.rest.files.files import REASON, reason_of

_TAG: Final = "Policy"


class ClassChange(ResponseModel, frozen=True):
    """A path whose class would be another."""

    path: str
    was: FileClass = field(name="from")
    now: FileClass = field(name="to")
    agents: Annotated[int, Meta(ge=0)]
    """How many agents have it, of their own or from a layer beneath."""


class Preview(ResponseModel, frozen=True):
    changes: list[ClassChange]
    """Those of most agents first, at most 500."""
    count: Annotated[int, Meta(ge=0)]
    """Of all paths that would change."""
    loosens: bool
    """Whether a pinned file would be live again, which needs a reason."""


@endpoint(
    "GET", "/v1/policy", permission=Permission.TENANT_READ, responses={200: PolicyModel}, tag=_TAG
)
async def get(call: Request) -> Response:
    """The limits, redaction and retention that the tenant has decided on."""
    return Response.json(await policies.get(call.ports, call.actor))


@endpoint(
    "PUT",
    "/v1/policy",
    permission=Permission.TENANT_ADMIN,
    body=PolicyModel,
    responses={200: PolicyModel},
    refusals=(ValidationError, Busy),
    headers=(REASON,),
    tag=_TAG,
    idempotent=True,
)
async def put(call: Request[PolicyModel]) -> Response:
    """Replace the policy. What is left out is as it is by default.

    Files that become pinned are held for every agent as they are. Making a pinned file live again
    needs a reason, in `Carrel-Reason`.
    """
    if not call.raw:
        raise ValidationError("a policy is needed; an empty one is {}")
    reason = reason_of(call)
    return Response.json(await policies.put(call.ports, call.actor, call.body, reason))


@endpoint(
    "POST",
    "/v1/policy/preview",
    permission=Permission.TENANT_ADMIN,
    body=PolicyModel,
    responses={200: Preview},
    refusals=(ValidationError,),
    tag=_TAG,
)
async def preview(call: Request[PolicyModel]) -> Response:
    """Say which files would be of another class by a policy, and change nothing."""
    if not call.raw:
        raise ValidationError("a policy is needed; an empty one is {}")
    found = await policy_preview.preview(call.ports, call.actor, call.body)
    changes = [
        ClassChange(path=one.path.text, was=one.was, now=one.now, agents=one.agents)
        for one in found.changes
    ]
    return Response.json(Preview(changes=changes, count=found.count, loosens=found.loosens))


ENDPOINTS: Final = (get, put, preview)
