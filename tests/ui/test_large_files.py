"""Large files and large trees: little is rendered again, trees are virtualized."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.ui.conftest import ApiSetup, OpenPage
from tests.ui.file_editor import editor, open_file, tree_item

MARK_CHUNKS = """() => {
  for (const chunk of document.querySelectorAll(".markdown-chunk")) chunk.dataset.rendered = "";
}"""
COUNT_CHUNKS = """() => ({
  all: document.querySelectorAll(".markdown-chunk").length,
  unchanged: document.querySelectorAll(".markdown-chunk[data-rendered]").length,
})"""


def test_typing_in_a_100_kb_file_renders_only_the_changed_chunk(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada")
    part = "## A heading\n\nSome **words** of {{AGENT_NAME}} and a [link](https://example.com).\n\n"
    api_setup.put_file(f"/v1/agents/{agent['id']}", "long.md", part * (100_000 // len(part)))
    page = open_file(signed_in_page(), agent, "long.md")
    preview = page.get_by_role("region", name="Preview")
    expect(preview).to_contain_text("Some words of Ada")
    before = page.evaluate(COUNT_CHUNKS)
    assert before["all"] > 50
    page.evaluate(MARK_CHUNKS)
    editor(page).click()
    page.keyboard.press("ControlOrMeta+Home")
    page.keyboard.type("# Warm and on it goes\n\n")
    expect(preview).to_contain_text("Warm and on it goes")
    after = page.evaluate(COUNT_CHUNKS)
    assert after["all"] - after["unchanged"] <= 2
    assert page.locator(".cm-line").count() < 200


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
