"""Everything is a few letters away: the palette and the search."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from tests.desk.browsing import NARROW
from tests.desk.conftest import Office, Seating


def test_the_palette_finds_agents_files_screens_and_texts_by_the_keyboard_alone(
    seat: Seating, office: Office
) -> None:
    agent = office.agent(f"Quill {office.mark}")
    word = f"zebra{office.mark}"
    office.put(f"/v1/agents/{agent['id']}", "notes/stripes.md", f"The {word} has stripes.\n")
    someone = seat()
    page = someone.page
    someone.visit("/runs")
    expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    page.keyboard.press("ControlOrMeta+k")
    box = page.get_by_role("combobox", name=re.compile("^Find"))
    expect(box).to_be_focused()
    expect(page.get_by_role("option", name="Inbox")).to_be_visible()
    someone.look_for_barriers()
    box.fill(f"quill {office.mark}")
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
    expect(page.get_by_role("option", name=f"Search all texts for “{word}”")).to_have_attribute(
        "aria-selected", "true"
    )
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/search\\?q={word}"))
    found = page.get_by_role("link", name=re.compile("has stripes"))
    expect(found).to_be_visible()
    someone.look_for_barriers()
    found.click()
    expect(page).to_have_url(re.compile(r"workspace\?file=notes%2Fstripes\.md"))


def test_the_palette_does_things_and_escape_gives_the_focus_back(
    seat: Seating, office: Office
) -> None:
    someone = seat(size=NARROW)
    page = someone.page
    someone.visit("/search")
    expect(page.get_by_role("heading", name="Find anything that was written")).to_be_visible()
    opener = page.get_by_role("button", name="Find anything ⌘K")
    opener.click()
    dialog = page.get_by_role("dialog", name="Find anything")
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


def test_a_search_that_finds_nothing_says_how_it_looks(seat: Seating) -> None:
    someone = seat()
    someone.visit("/search?q=nobodyeverwrotethis")
    expect(someone.page.get_by_role("heading", name="Nothing has these words")).to_be_visible()
    someone.page.get_by_role("searchbox").fill("")
    expect(someone.page.get_by_role("heading", name="Find anything")).to_be_visible()
