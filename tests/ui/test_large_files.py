"""Large files and large trees: typing stays fast, trees are virtualized."""

from __future__ import annotations

import json

from playwright.sync_api import Browser, expect
from tests.ui.conftest import ApiSetup, OpenPage
from tests.ui.file_editor import editor, open_file, tree_item

_PREVIEWED = "word => document.querySelector('.file-preview').textContent.includes(word)"
"""Evaluated in the page: locators by role are slower than the typing in a long page."""


def _main_thread_tasks(trace: bytes) -> list[float]:
    """CPU milliseconds of every task of the page's main thread."""
    events = json.loads(trace)["traceEvents"]
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    tasks = (event for event in events if event["name"] == "RunTask" and "tdur" in event)
    return [event["tdur"] / 1000 for event in tasks if (event["pid"], event["tid"]) in threads]


def test_typing_in_a_100_kb_file_stays_fast(
    browser: Browser, signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada")
    part = "## A heading\n\nSome **words** of {{AGENT_NAME}} and a [link](https://example.com).\n\n"
    api_setup.put_file(f"/v1/agents/{agent['id']}", "long.md", part * (100_000 // len(part)))
    user = signed_in_page()
    page = open_file(user, agent, "long.md")
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
        browser.start_tracing(page=page, categories=categories)
        for word in words:
            page.keyboard.type(f"# {word} and on it goes, letter by letter\n\n")
            page.wait_for_function(_PREVIEWED, arg=word)
        tasks = _main_thread_tasks(browser.stop_tracing())
        assert len(tasks) > 100
        worst.append(max(tasks))
        if worst[-1] < 50:
            break
    # Other load only adds to the times, so the best of six runs counts.
    assert min(worst) < 50, worst


def test_a_large_tree_renders_only_visible_rows(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada")
    for number in range(510):
        api_setup.put_file(f"/v1/agents/{agent['id']}", f"zz/{number:03}.md", "x")
    user = signed_in_page()
    page = open_file(user, agent)
    tree_item(page, "memory").focus()
    assert page.get_by_role("treeitem").count() < 80
    page.keyboard.press("End")
    expect(tree_item(page, "USER.md")).to_be_focused()
    page.keyboard.press("Home")
    expect(tree_item(page, "memory")).to_be_focused()
    page.get_by_label("Filter files").fill("zz 50")
    expect(page.get_by_role("status").filter(has_text="shown")).to_contain_text("15 shown")
    expect(tree_item(page, "505.md")).to_be_visible()
    expect(page.get_by_role("treeitem")).to_have_count(16)
