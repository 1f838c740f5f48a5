"""Reply of a call that requires or required approval."""

from __future__ import annotations

from carrel.core.approvals import Approval, ToolResult
from carrel.tools.tool import ToolReply


def reply_from_approval(approval: Approval) -> ToolReply:
    """Result of the call, or that it awaits approval."""
    result = approval.model_result or ToolResult(
        f"waiting for a person to approve this call: {approval.id}"
    )
    pending = None if approval.is_final else approval
    return ToolReply(result.content, result.is_error, result.structured, pending)


def approval_summary(approval: Approval) -> dict[str, str]:
    """Id, status and tool of an approval, for a model."""
    return {"id": approval.id, "status": str(approval.status), "tool": approval.tool}
