"""Memory tab: memories, search, dreams and their review."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect
from tests.ui.browser import NARROW, wait_for_response
from tests.ui.conftest import ApiSetup, OpenPage

_COFFEE = "Ines drinks her coffee without sugar"
_TRAM = "The tram leaves every ten minutes"


def _memories(api_setup: ApiSetup, agent: Any, *contents: str) -> None:
    for content in contents:
        api_setup.request("POST", f"/v1/agents/{agent['id']}/memories", {"content": content})


def _recall(api_setup: ApiSetup, agent: Any, *questions: str) -> None:
    tool = f"/v1/agents/{agent['id']}/tools/recall"
    for question in questions:
        api_setup.request("POST", tool, {"arguments": {"query": question}, "scope": "main"})


def test_memories_are_created_searched_and_deleted(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    agent = api_setup.create_agent("Ada")
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{agent['id']}/memory")
    expect(page.get_by_role("heading", name="No memories yet")).to_be_visible()
    expect(page.get_by_role("heading", name="No dreams yet")).to_be_visible()
    expect(page.get_by_role("link", name="MEMORY.md")).to_have_attribute(
        "href", f"/agents/{agent['id']}/workspace?file=MEMORY.md"
    )
    page.get_by_role("button", name="New memory").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Content").fill(_COFFEE)
    dialog.get_by_label("Tags").fill("guests, drinks")
    dialog.get_by_label("Kind").select_option("user")
    dialog.get_by_role("button", name="Save").click()
    memories = page.get_by_role("list", name="Memories")
    expect(memories.get_by_role("listitem")).to_have_count(1)
    expect(memories).to_contain_text("guests")

    # Changes by others appear without a reload.
    _memories(api_setup, agent, _TRAM)
    expect(memories.get_by_role("listitem")).to_have_count(2)

    page.get_by_label("Search memories").fill("COFFE")
    results = page.get_by_role("list", name="Results")
    expect(results.get_by_role("listitem")).to_have_count(1)
    expect(results.get_by_role("img", name="Match score 1.00")).to_be_visible()
    user.check_accessibility()
    page.get_by_label("Search memories").fill("")

    memories.get_by_role("button", name=f"Delete: {_TRAM}").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(memories.get_by_role("listitem")).to_have_count(2)
    memories.get_by_role("button", name=f"Delete: {_TRAM}").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(memories.get_by_role("listitem")).to_have_count(1)


def test_a_dry_run_lists_reasons_and_a_dream_updates_memory_md(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    agent = api_setup.create_agent("Ada")
    _memories(api_setup, agent, _COFFEE, _TRAM)
    _recall(api_setup, agent, "coffee", "sugar", "coffee sugar", "tram")
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{agent['id']}/memory")
    page.get_by_role("button", name="Dry run").click()
    dialog = page.get_by_role("dialog", name="Dry run")
    expect(dialog.get_by_text("Dry run: nothing was changed.")).to_be_visible()
    expect(dialog.get_by_role("region", name="Diff")).to_contain_text(f"+- {_COFFEE}")
    expect(dialog.get_by_role("list", name="Promoted", exact=True)).to_contain_text(_COFFEE)
    rejected = dialog.get_by_role("list", name="Not promoted")
    expect(rejected).to_contain_text("recalled 1 times; 3 required")
    expect(rejected.get_by_role("img", name="minimum 0.35")).to_be_visible()
    user.check_accessibility()
    dialog.get_by_role("button", name="Close").last.click()
    assert api_setup.request("GET", f"/v1/agents/{agent['id']}/dreams")["items"] == []

    page.get_by_role("button", name="Start dream").click()
    dialog = page.get_by_role("dialog", name="Dream")
    expect(dialog.get_by_role("list", name="Promoted", exact=True)).to_contain_text(_COFFEE)
    dialog.get_by_role("button", name="Close").last.click()
    row = page.get_by_role("table", name="Dreams").get_by_role("row").last
    expect(row).to_contain_text("done")
    expect(row).to_contain_text("1 with too few recalls")
    coffee = (
        page.get_by_role("list", name="Memories").get_by_role("listitem").filter(has_text=_COFFEE)
    )
    expect(coffee).to_contain_text("promoted")


def test_a_proposed_dream_is_rejected_with_a_reason_or_approved(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    agent = api_setup.create_agent("Ada", config={"dreaming": {"review": True}})
    dreams = f"/v1/agents/{agent['id']}/dreams"
    _memories(api_setup, agent, _COFFEE)
    _recall(api_setup, agent, "coffee", "sugar", "coffee sugar")
    api_setup.request("POST", dreams, {})
    user = signed_in_page(size=NARROW)
    page = user.page
    user.visit(f"/agents/{agent['id']}/memory")
    page.get_by_role("button", name="Review").click()
    dialog = page.get_by_role("dialog", name="Review dream")
    expect(dialog.get_by_role("region", name="Diff")).to_contain_text(_COFFEE)
    dialog.get_by_label("Rejection reason").fill("too private")
    dialog.get_by_role("button", name="Reject").click()
    rows = page.get_by_role("table", name="Dreams").get_by_role("row")
    expect(rows.last).to_contain_text("rejected")
    page.get_by_role("button", name="Details").click()
    expect(page.get_by_role("dialog", name="Dream")).to_contain_text("too private")
    page.get_by_role("dialog").get_by_role("button", name="Close").last.click()

    api_setup.request("POST", dreams, {})
    page.get_by_role("button", name="Review").click()
    with wait_for_response(page, "POST", "/approve"):
        page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(rows.nth(1)).to_contain_text("done")
    served = api_setup.request("GET", f"/v1/agents/{agent['id']}/files/MEMORY.md")
    assert _COFFEE in served["content"]
    assert page.evaluate("document.querySelector('#main').scrollWidth") <= NARROW[0]


def test_members_see_why_memory_actions_are_disabled(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    agent = api_setup.create_agent("Ada", isShared=True)
    _memories(api_setup, agent, _COFFEE)
    member = api_setup.create_person("Mia Member")
    user = signed_in_page(token=api_setup.create_token(member))
    page = user.page
    user.visit(f"/agents/{agent['id']}/memory")
    expect(page.get_by_role("list", name="Memories")).to_contain_text(_COFFEE)
    for name in ("New memory", "Dry run", "Start dream"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
        expect(page.get_by_role("button", name=name)).to_have_attribute(
            "title", re.compile("^Only owners, admins and the agent.s human or owner can change")
        )
