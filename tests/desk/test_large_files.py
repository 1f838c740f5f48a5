"""Large files and many: typing stays fluid, and only what is in sight is shown."""

from __future__ import annotations

import json

from playwright.sync_api import Browser, expect
from tests.desk.conftest import Office, Seating
from tests.desk.files import editor, line, opened

_PREVIEWED = "word => document.querySelector('.file-preview').textContent.includes(word)"
"""Asked in the page itself: looking for roles in a long page would take longer than the typing."""


def _worked(trace: bytes) -> list[float]:
    """How long each task of the page's main thread kept it busy, in milliseconds of its own."""
    events = json.loads(trace)["traceEvents"]
    threads = {
        (each["pid"], each["tid"])
        for each in events
        if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
    }
    tasks = (each for each in events if each["name"] == "RunTask" and "tdur" in each)
    return [each["tdur"] / 1000 for each in tasks if (each["pid"], each["tid"]) in threads]


def test_typing_in_a_hundred_kilobytes_stays_fluid(
    chrome: Browser, seat: Seating, office: Office
) -> None:
    agent = office.agent("Ada")
    part = "## A heading\n\nSome **words** of {{AGENT_NAME}} and a [link](https://example.com).\n\n"
    office.put(f"/v1/agents/{agent['id']}", "long.md", part * (100_000 // len(part)))
    someone = seat()
    page = opened(someone, agent, "long.md")
    preview = page.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("Some words of Ada")
    editor(page).click()
    page.keyboard.press("ControlOrMeta+Home")
    page.keyboard.type("# Warm\n\n")
    expect(preview).to_contain_text("Warm")
    categories = ["disabled-by-default-devtools.timeline", "toplevel"]
    worst: list[float] = []
    tries = (("One", "Two", "Three"), ("Four", "Five", "Six"), ("Seven", "Eight", "Nine"))
    for turn in range(6):
        words = tuple(f"{word}{turn}" for word in tries[turn % 3])
        chrome.start_tracing(page=page, categories=categories)
        for word in words:
            page.keyboard.type(f"# {word} and on it goes, letter by letter\n\n")
            page.wait_for_function(_PREVIEWED, arg=word)
        tasks = _worked(chrome.stop_tracing())
        assert len(tasks) > 100
        worst.append(max(tasks))
        if worst[-1] < 50:
            break
    # Whatever else the machine does only adds to it: the calmest of six is what it takes.
    assert min(worst) < 50, worst


def test_a_tree_of_many_files_shows_only_what_is_in_sight(seat: Seating, office: Office) -> None:
    agent = office.agent("Ada")
    for number in range(510):
        office.put(f"/v1/agents/{agent['id']}", f"zz/{number:03}.md", "x")
    someone = seat()
    page = opened(someone, agent)
    line(page, "memory").focus()
    assert page.get_by_role("treeitem").count() < 80
    page.keyboard.press("End")
    expect(line(page, "USER.md")).to_be_focused()
    page.keyboard.press("Home")
    expect(line(page, "memory")).to_be_focused()
    page.get_by_label("Filter the files").fill("zz 50")
    expect(page.get_by_role("status").filter(has_text="shown")).to_contain_text("15 shown")
    expect(line(page, "505.md")).to_be_visible()
    expect(page.get_by_role("treeitem")).to_have_count(16)
