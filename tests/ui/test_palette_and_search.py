"""Command palette and search."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from tests.ui.browser import NARROW
from tests.ui.conftest import ApiSetup, OpenPage


def test_the_palette_finds_agents_files_screens_and_texts_by_keyboard(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent(f"Quill {api_setup.suffix}")
    word = f"zebra{api_setup.suffix}"
    api_setup.put_file(
        f"/v1/agents/{agent['id']}", "notes/stripes.md", f"The {word} has stripes.\n"
    )
    user = signed_in_page()
    page = user.page
    user.visit("/runs")
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    page.keyboard.press("ControlOrMeta+k")
    box = page.get_by_role("combobox", name=re.compile("^Search"))
    expect(box).to_be_focused()
    expect(page.get_by_role("option", name="Inbox")).to_be_visible()
    user.check_accessibility()
    box.fill(f"quill {api_setup.suffix}")
    agents = page.get_by_role("group", name="Agents")
    expect(agents.get_by_role("option", name=agent["name"])).to_have_attribute(
        "aria-selected", "true"
    )
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/agents/{agent['id']}/workspace"))

    page.keyboard.press("ControlOrMeta+k")
    expect(page.get_by_role("group", name="Recent").get_by_role("option")).to_have_count(1)
    box.fill("stripes")
    group = page.get_by_role("group", name="This agent")
    expect(group.get_by_role("option", name="notes/stripes.md")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"file=notes%2Fstripes\.md"))

    page.keyboard.press("ControlOrMeta+k")
    box.fill(word)
    expect(page.get_by_role("option", name=re.compile("has stripes"))).to_be_visible()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("option", name=f"Search for “{word}”")).to_have_attribute(
        "aria-selected", "true"
    )
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/search\\?q={word}"))
    hit = page.get_by_role("link", name=re.compile("has stripes"))
    expect(hit).to_be_visible()
    user.check_accessibility()
    hit.click()
    expect(page).to_have_url(re.compile(r"workspace\?file=notes%2Fstripes\.md"))


def test_the_palette_runs_actions_and_escape_restores_the_focus(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    user = signed_in_page(size=NARROW)
    page = user.page
    user.visit("/search")
    expect(page.get_by_role("heading", name="Type to search")).to_be_visible()
    opener = page.get_by_role("button", name="Search ⌘K")
    opener.click()
    dialog = page.get_by_role("dialog", name="Search")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(opener).to_be_focused()
    opener.click()
    page.get_by_role("combobox").fill("dark theme")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    opener.click()
    page.get_by_role("combobox").fill("new agent")
    page.get_by_role("option", name="New agent", exact=True).click()
    expect(page.get_by_role("dialog", name="New agent")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]


def test_a_search_without_results_shows_an_empty_state(signed_in_page: OpenPage) -> None:
    user = signed_in_page()
    user.visit("/search?q=nobodyeverwrotethis")
    expect(user.page.get_by_role("heading", name="No results")).to_be_visible()
    user.page.get_by_role("searchbox").fill("")
    expect(user.page.get_by_role("heading", name="Type to search")).to_be_visible()
