"""What the tenant has decided for itself."""

from __future__ import annotations

import msgspec

from carrel.actions.policy import policies
from carrel.actions.policy.policies import LimitsModel as Limits
from carrel.actions.policy.policies import PolicyModel as Policy
from carrel.core.errors import ValidationError
from carrel.server.python.caller import Resource

__all__ = ["Limits", "Policies", "Policy"]


class Policies(Resource):
    async def get(self) -> Policy:
        return await policies.get(self._ports, self._actor)

    async def put(self, policy: Policy) -> Policy:
        """Replace it: ``Policy(limits=Limits(max_files=500))``. Raises Malformed."""
        try:
            checked = msgspec.convert(msgspec.to_builtins(policy), Policy)
        except msgspec.ValidationError as wrong:
            raise ValidationError(f"the policy does not fit: {wrong}") from None
        return await policies.put(self._ports, self._actor, checked)
