"""A tenant's policy over HTTP."""

from __future__ import annotations

from typing import Final

from carrel.actions import policies
from carrel.actions.policies import PolicyForm
from carrel.core.access import Permission
from carrel.core.errors import Busy, Malformed
from carrel.faces.rest.answer import Answer
from carrel.faces.rest.endpoint import Call, endpoint

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
    tag=_TAG,
    idempotent=True,
)
async def put(call: Call[PolicyForm]) -> Answer:
    """Replace the policy. What is left out is as it is by default."""
    if not call.raw:
        raise Malformed("a policy is needed; an empty one is {}")
    return Answer.json(await policies.put(call.world, call.actor, call.body))


ENDPOINTS: Final = (get, put)
