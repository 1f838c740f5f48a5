"""The prompt's screen: what a model is told, of what it is made, and what was cut."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from tests.desk.browsing import NARROW, wait_for_copied
from tests.desk.conftest import Office, Seating


def test_a_prompt_shows_its_blocks_by_size_with_file_layer_and_version(
    office: Office, seat: Seating
) -> None:
    template = office.template("Support", SOUL_md="{{AGENT_NAME}} is brisk. 🐙\n")
    agent = office.agent("Ada", template)
    own = f"/v1/agents/{agent['id']}"
    office.put(own, "MEMORY.md", "Ana has a new phone.")
    office.put(own, "AGENTS.md", "Nora books tables. " * 700)
    someone = seat()
    page = someone.page
    someone.visit(f"/agents/{agent['id']}/prompt")

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
    expect(agents).to_contain_text("a file may have 12000")
    expect(agents).to_contain_text("agent")
    expect(rows.get_by_role("link", name="MEMORY.md")).to_have_attribute(
        "href", f"/agents/{agent['id']}/workspace?file=MEMORY.md"
    )
    private = shared.get_by_role("row", name=re.compile("^MEMORY"))
    expect(private).to_contain_text("left out")
    expect(private).to_contain_text("it is private, and others are listening")
    expect(shared.get_by_role("region", name="Text of the shared prompt")).not_to_contain_text(
        "Ana has"
    )
    expect(page.get_by_role("list", name="Flaws of the prompt")).to_contain_text("AGENTS.md")

    main.get_by_role("button", name="Copy the main prompt").click()
    told = office.ask("GET", f"{own}/prompt?scope=main")
    wait_for_copied(page, told["text"])
    expect(main.get_by_text(told["etag"])).to_be_visible()

    # What others change appears without reload.
    office.put(own, "AGENTS.md", "Nora books tables.")
    expect(page.get_by_text("Nothing is wrong with this prompt")).to_be_visible()
    expect(agents).not_to_contain_text("cut")
    someone.look_for_barriers()


def test_policy_that_does_not_fit_is_named_with_the_way_to_it(
    office: Office, seat: Seating
) -> None:
    agent = office.agent("Tight")
    office.put(f"/v1/agents/{agent['id']}", "GUARDRAILS.md", "x" * 12_001)
    someone = seat(size=NARROW)
    someone.expected |= {409}
    someone.visit(f"/agents/{agent['id']}/prompt")
    main = someone.page.get_by_role("region", name="Main", exact=True)
    expect(main.get_by_role("alert")).to_contain_text("policy is never cut")
    expect(main.get_by_role("link", name="GUARDRAILS.md")).to_have_attribute(
        "href", f"/agents/{agent['id']}/workspace?file=GUARDRAILS.md"
    )
    assert someone.page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
