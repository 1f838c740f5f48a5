"""What the tenant has decided for itself."""

from __future__ import annotations

import msgspec

from carrel.actions.policy import policies
from carrel.actions.policy.policies import LimitsForm as Limits
from carrel.actions.policy.policies import PolicyForm as Policy
from carrel.core.errors import Malformed
from carrel.server.python.caller import Noun

__all__ = ["Limits", "Policies", "Policy"]


class Policies(Noun):
    async def get(self) -> Policy:
        return await policies.get(self._world, self._actor)

    async def put(self, policy: Policy) -> Policy:
        """Replace it: ``Policy(limits=Limits(max_files=500))``. Raises Malformed."""
        try:
            checked = msgspec.convert(msgspec.to_builtins(policy), Policy)
        except msgspec.ValidationError as wrong:
            raise Malformed(f"the policy does not fit: {wrong}") from None
        return await policies.put(self._world, self._actor, checked)
