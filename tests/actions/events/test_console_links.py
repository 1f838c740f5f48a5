"""Links of the console: each event names the page that opens what it reports."""

from __future__ import annotations

import json

import pytest

from carrel.actions.events.console_links import event_link
from carrel.actions.events.webhook_dispatch import event_body
from carrel.core.store.event import EVENT_TYPES, RECORD_CHANGED, WORKSPACE_UPDATED, Event

PAYLOAD = {
    "path": "a b/GUARDRAILS.md",
    "templateId": "tpl_1",
    "agentId": "agt_1",
    "approvalId": "apr_1",
    "dreamId": "drm_1",
    "runId": "run_1",
    "decision": "accepted",
}


@pytest.mark.parametrize(
    ("type", "link"),
    [
        ("approval.requested", "/approvals/apr_1"),
        ("approval.expired", "/approvals/apr_1"),
        ("review.requested", "/agent-templates/tpl_1/review?file=a%20b%2FGUARDRAILS.md"),
        ("review.answered", "/agents/agt_1/workspace?file=a%20b%2FGUARDRAILS.md&panel=history"),
        ("dream.proposed", "/agents/agt_1/memory?dream=drm_1"),
        ("run.failed", "/runs/run_1"),
    ],
)
def test_an_event_links_to_the_page_that_opens_it(type: str, link: str) -> None:
    assert event_link(type, PAYLOAD) == link
    event = Event("c", "evt_1", type, "acme", 0, PAYLOAD)
    data = json.loads(event_body(event, "https://carrel.example/"))["data"]
    assert data["url"] == f"https://carrel.example{link}"
    assert "url" not in json.loads(event_body(event))["data"]


def test_a_review_of_the_defaults_links_to_the_defaults() -> None:
    payload = {**PAYLOAD, "templateId": None}
    assert event_link("review.requested", payload) == (
        "/agent-templates/defaults/review?file=a%20b%2FGUARDRAILS.md"
    )


def test_only_files_and_records_have_no_link() -> None:
    without = {type for type in EVENT_TYPES if event_link(type, PAYLOAD) is None}
    assert without == {WORKSPACE_UPDATED, RECORD_CHANGED}
