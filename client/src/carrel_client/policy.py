"""The tenant's policy: file classes, redaction, limits and retention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from carrel_client.drivers import Driver, Resource, Steps, operation
from carrel_client.errors import InvalidResponse
from carrel_client.http_messages import HttpRequest
from carrel_client.requests import api_path, get_json, send_json, send_with_retry, write_headers


class PolicyResource(Resource[Driver]):
    """The policy as the JSON object of the API."""

    @operation
    def get(self) -> Steps[dict[str, Any]]:
        return _policy((yield from get_json(api_path("policy"))))

    @operation
    def put(
        self,
        policy: Mapping[str, Any],
        *,
        reason: str | None = None,
        confirm: bool = False,
        idempotency_key: str | None = None,
    ) -> Steps[dict[str, Any]]:
        """Replace the policy; absent fields get their defaults.

        Example: ``put({"limits": {"maxFiles": 500}})``. Making a pinned file live again needs a
        ``reason``, and pinning files with placeholders needs ``confirm``. Raises Conflict with the
        ``placeholderFiles``, and ValidationError.
        """
        stored = yield from send_json(
            "PUT",
            api_path("policy"),
            {**policy, "confirm": True} if confirm else dict(policy),
            headers=write_headers(reason=reason),
            idempotency_key=idempotency_key,
        )
        return _policy(stored)

    @operation
    def preview(self, policy: Mapping[str, Any]) -> Steps[dict[str, Any]]:
        """The files whose class would change by a policy; nothing is changed."""
        request = HttpRequest("POST", api_path("policy", "preview"), body=dict(policy))
        return _policy((yield from send_with_retry(request)).json())


def _policy(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise InvalidResponse("the response is not a policy")
    return body
