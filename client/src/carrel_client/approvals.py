"""Approvals: tool calls that wait for a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel_client.drivers import Driver, Resource, Steps, operation
from carrel_client.models import Model, model_field, model_from_json, models_from_json
from carrel_client.requests import api_path, drop_none, get_json, list_pages, send_json


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult(Model):
    content: str
    is_error: bool
    structured: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(Model):
    """Tool call with the decision of a person."""

    id: str
    agent_id: str
    tool: str
    input: Mapping[str, Any]
    """Arguments with redacted secrets."""
    status: str
    """requested, approved, running, finished, denied, expired or cancelled."""
    reason: str
    workspace_id: str | None
    sandbox_id: str | None
    requested_at: datetime
    expires_at: datetime
    expected_version: int | None = None
    """Version of the file that an approved write may replace; 0 if there was none."""
    result: CallResult | None = model_field(CallResult)
    """Result for the model; None until the call has ended."""


class Approvals(Resource[Driver]):
    """Approvals of the tenant."""

    @operation
    def list(
        self, *, status: str | None = None, agent: str | None = None
    ) -> Steps[tuple[Approval, ...]]:
        """Return approvals, oldest first, filtered by status and agent (id or slug)."""
        query = drop_none({"status": status, "agent": agent})
        return models_from_json(Approval, (yield from list_pages(api_path("approvals"), query)))

    @operation
    def get(self, approval_id: str, *, wait: int = 0) -> Steps[Approval]:
        """Return an approval. Raises NotFound.

        Waits up to ``wait`` seconds for its result.
        """
        query = {"wait": str(wait)} if wait else {}
        approval = yield from get_json(api_path("approvals", approval_id), query)
        return model_from_json(Approval, approval)

    @operation
    def answer(self, approval_id: str, approved: bool, reason: str = "") -> Steps[Approval]:
        """Approve or deny a call; the model sees the reason. Idempotent.

        In process an approved call runs before this returns, since there may be no server that
        would run it. Raises Conflict if the answer was another, Expired if it is too late.
        """
        body = {"approved": approved, "reason": reason}
        approval = yield from send_json("POST", api_path("approvals", approval_id), body)
        return model_from_json(Approval, approval)
