"""Request for a run and its validation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from carrel.core.errors import ValidationError
from carrel.core.runs import Audience

_WORKFLOW_PATTERN: Final = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9 ._:/@+-]{0,254}[A-Za-z0-9._/@+-])?"
)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Request for a run; unset values come from the parent or the replayed run."""

    workflow: str = ""
    agent: str | None = None
    """Id or slug; None for the caller's own workspace."""
    workspace: str | None = None
    """Name of a workspace; None for the caller's own."""
    parent: str | None = None
    share_parent: bool = False
    """Use the parent's snapshot instead of the current workspace."""
    replay_of: str | None = None
    mode: Audience | None = None
    session: str | None = None
    """Session of the agent that the run answers in; started if there is none."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Metadata stored with the run; never used for placeholders."""


def validate_request(request: RunRequest) -> None:
    """Raise ValidationError for fields that exclude or need each other."""
    if not (request.workflow or request.agent or request.parent or request.replay_of):
        raise ValidationError("a run needs a workflowId or an agentId")
    if request.workflow and not _WORKFLOW_PATTERN.fullmatch(request.workflow):
        raise ValidationError(
            "workflowId must have 1 to 256 letters, digits, spaces and . _ : / @ + -"
        )
    if request.agent is not None and request.workspace is not None:
        raise ValidationError("a run has an agentId or a workspaceId, not both")
    if request.share_parent and request.parent is None:
        raise ValidationError("shareSnapshot needs a parentRunId")
    if request.share_parent and request.replay_of is not None:
        raise ValidationError(
            "a run uses the snapshot of its parent or of the replayed run, not both"
        )
