"""A memory is edited in the console, and its line in MEMORY.md follows."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.ui.browser import wait_for_response
from tests.ui.conftest import ApiSetup, OpenPage


def test_a_memory_is_edited_and_keeps_its_id(signed_in_page: OpenPage, api_setup: ApiSetup) -> None:
    agent = api_setup.create_agent("Ada")
    url = f"/v1/agents/{agent['id']}/memories"
    body = {"content": "Luis likes tea", "tags": ["drinks"]}
    memory = api_setup.request("POST", url, body)
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{agent['id']}/memory")
    page.get_by_role("button", name="Edit: Luis likes tea").click()
    form = page.get_by_role("dialog", name="Edit memory")
    expect(form.get_by_label("Tags")).to_have_value("drinks")
    form.get_by_label("Content").fill("Luis likes coffee")
    user.check_accessibility()
    with wait_for_response(page, "PATCH", "/memories/"):
        form.get_by_role("button", name="Save").click()
    expect(page.get_by_role("list", name="Memories")).to_contain_text("Luis likes coffee")
    [stored] = api_setup.request("GET", url)["items"]
    assert (stored["id"], stored["content"]) == (memory["id"], "Luis likes coffee")
