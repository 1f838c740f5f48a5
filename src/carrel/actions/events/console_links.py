"""Paths of the console that open what an event reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from carrel.core.store.event import (
    APPROVALS,
    DREAM_ANSWERED,
    DREAM_PROPOSED,
    REVIEW_ANSWERED,
    REVIEW_REQUESTED,
    RUN_ENDED_BY_STATUS,
    RUN_STARTED,
    TOOL_CALLED,
)


def event_link(type: str, payload: Mapping[str, Any]) -> str | None:
    """Path that opens the review, approval, dream or run of an event; None if it has none."""
    if type in APPROVALS:
        return approval_link(payload["approvalId"])
    if type == REVIEW_REQUESTED:
        return offered_review_link(payload["templateId"], payload["path"])
    if type == REVIEW_ANSWERED:
        return f"{agent_review_link(payload['agentId'], payload['path'])}&panel=history"
    if type in {DREAM_PROPOSED, DREAM_ANSWERED}:
        return dream_link(payload["agentId"], payload["dreamId"])
    if type in {RUN_STARTED, TOOL_CALLED, *RUN_ENDED_BY_STATUS.values()}:
        return f"/runs/{_segment(payload['runId'])}"
    return None


def approval_link(approval: str) -> str:
    return f"/approvals/{_segment(approval)}"


def dream_link(agent: str, dream: str) -> str:
    return f"/agents/{_segment(agent)}/memory?dream={_segment(dream)}"


def agent_review_link(agent: str, path: str) -> str:
    return f"/agents/{_segment(agent)}/workspace?file={_segment(path)}"


def offered_review_link(template: str | None, path: str) -> str:
    """Review for all agents that a template, or the defaults, offers a file."""
    return f"/agent-templates/{_segment(template or 'defaults')}/review?file={_segment(path)}"


def _segment(text: str) -> str:
    return quote(text, safe="")
