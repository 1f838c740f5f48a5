"""A tenant's policy over HTTP."""

from __future__ import annotations

from typing import Final

from carrel.actions import policies
from carrel.actions.policies import PolicyForm
from carrel.core.access import Permission
from carrel.core.errors import Busy, Malformed
from carrel.faces.rest.answer import Answer
from carrel.faces.rest.endpoint import Call, endpoint
from carrel.faces.rest.files import REASON, reason_of

_TAG: Final = "Policy"


@endpoint(
    "GET", "/v1/policy", permission=Permission.TENANT_READ, answers={200: PolicyForm}, tag=_TAG
)
async def get(call: Call) -> Answer:
    """The limits, redaction and retention that the tenant has decided on."""
    return Answer.json(await policies.get(call.world, call.actor))


@endpoint(
    "PUT",
    "/v1/policy",
    permission=Permission.TENANT_ADMIN,
    body=PolicyForm,
    answers={200: PolicyForm},
    refuses=(Malformed, Busy),
    headers=(REASON,),
    tag=_TAG,
    idempotent=True,
)
async def put(call: Call[PolicyForm]) -> Answer:
    """Replace the policy. What is left out is as it is by default.

    Files that become pinned are held for every agent as they are. Making a pinned file live again
    needs a reason, in `Carrel-Reason`.
    """
    if not call.raw:
        raise Malformed("a policy is needed; an empty one is {}")
    reason = reason_of(call)
    return Answer.json(await policies.put(call.world, call.actor, call.body, reason))


ENDPOINTS: Final = (get, put)
