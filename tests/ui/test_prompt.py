"""Prompt tab: blocks, sizes, cuts and lint findings."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from tests.ui.browser import NARROW, wait_for_clipboard
from tests.ui.conftest import ApiSetup, OpenPage


def test_a_prompt_shows_its_blocks_by_size_with_file_layer_and_version(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    template = api_setup.create_template("Support", SOUL_md="{{AGENT_NAME}} is brisk. 🐙\n")
    agent = api_setup.create_agent("Ada", template)
    own = f"/v1/agents/{agent['id']}"
    api_setup.put_file(own, "MEMORY.md", "Ana has a new phone.")
    api_setup.put_file(own, "AGENTS.md", "Nora books tables. " * 700)
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{agent['id']}/prompt")

    main = page.get_by_role("region", name="Main", exact=True)
    shared = page.get_by_role("region", name="Shared", exact=True)
    expect(main.get_by_text("of 60,000")).to_be_visible()
    bar = main.get_by_role("group", name="Blocks of the main prompt by tokens")
    soul = bar.get_by_role("button", name=re.compile("SOUL: .* tokens, .*from template, version 1"))
    soul.click()
    expect(soul).to_have_attribute("aria-pressed", "true")
    expect(main.locator("mark")).to_have_text("# SOUL\nAda is brisk. 🐙")

    rows = main.get_by_role("table", name="Blocks of the main prompt")
    agents = rows.get_by_role("row", name=re.compile("^AGENTS"))
    expect(agents).to_contain_text("cut")
    expect(agents).to_contain_text("the limit per file is 12000")
    expect(agents).to_contain_text("agent")
    expect(rows.get_by_role("link", name="MEMORY.md")).to_have_attribute(
        "href", f"/agents/{agent['id']}/workspace?file=MEMORY.md"
    )
    private = shared.get_by_role("row", name=re.compile("^MEMORY"))
    expect(private).to_contain_text("left out")
    expect(private).to_contain_text("private, and the audience is shared")
    expect(shared.get_by_role("region", name="Text of the shared prompt")).not_to_contain_text(
        "Ana has"
    )
    expect(page.get_by_role("list", name="Prompt problems")).to_contain_text("AGENTS.md")

    main.get_by_role("button", name="Copy main prompt").click()
    prompt = api_setup.request("GET", f"{own}/prompt?scope=main")
    wait_for_clipboard(page, prompt["text"])
    expect(main.get_by_text(prompt["etag"])).to_be_visible()

    # Changes by others appear without a reload.
    api_setup.put_file(own, "AGENTS.md", "Nora books tables.")
    expect(page.get_by_text("No problems found in this prompt")).to_be_visible()
    expect(agents).not_to_contain_text("cut")
    user.check_accessibility()


def test_a_policy_file_that_does_not_fit_is_named_and_linked(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    agent = api_setup.create_agent("Tight")
    api_setup.put_file(f"/v1/agents/{agent['id']}", "GUARDRAILS.md", "x" * 12_001)
    user = signed_in_page(size=NARROW)
    user.expected_statuses |= {409}
    user.visit(f"/agents/{agent['id']}/prompt")
    main = user.page.get_by_role("region", name="Main", exact=True)
    expect(main.get_by_role("alert")).to_contain_text("Policy files are never truncated")
    expect(main.get_by_role("link", name="GUARDRAILS.md")).to_have_attribute(
        "href", f"/agents/{agent['id']}/workspace?file=GUARDRAILS.md"
    )
    assert user.page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
