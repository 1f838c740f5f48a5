"""Connect: a new agent's key and snippets, until its first request arrives."""

from __future__ import annotations

import re
import subprocess

from playwright.sync_api import expect
from tests.ui.browser import NARROW, wait_for_clipboard, wait_for_response
from tests.ui.conftest import ApiSetup, OpenPage


def test_a_new_agent_is_connected_by_a_copied_snippet(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    user = signed_in_page()
    page = user.page
    user.visit("/agents")
    page.get_by_role("button", name="New agent").first.click()
    form = page.get_by_role("dialog", name="New agent")
    form.get_by_label("Name").fill(f"Connected {api_setup.suffix}")
    form.get_by_role("button", name="Create agent").click()
    expect(page).to_have_url(re.compile("/connect$"))
    expect(page.get_by_text("has no key yet")).to_be_visible()
    snippet = page.get_by_role("region", name="Snippet", exact=True)
    expect(snippet).to_contain_text("carrel_YOUR_KEY")
    with wait_for_response(page, "POST", "/v1/keys"):
        page.get_by_role("button", name="Create key").click()
    key = page.get_by_role("status", name="API key").inner_text()
    expect(snippet).to_contain_text(key)
    expect(page.get_by_text("Waiting for the first request")).to_be_visible()
    user.check_accessibility()

    page.get_by_role("button", name="Copy snippet").click()
    wait_for_clipboard(page, snippet.inner_text())
    command = page.evaluate("navigator.clipboard.readText()")
    subprocess.run(["bash", "-c", command], check=True, capture_output=True, timeout=60)
    expect(page.get_by_text("Connected.")).to_be_visible()
    user.check_accessibility()


def test_every_snippet_is_shown_and_names_where_it_belongs(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada")
    body = {"name": "the runtime", "kind": "agent", "agentId": agent["id"]}
    api_setup.request("POST", "/v1/keys", body)
    user = signed_in_page(size=NARROW)
    page = user.page
    user.visit(f"/agents/{agent['id']}/connect")
    keys = page.get_by_role("list", name="Keys of the agent")
    expect(keys).to_contain_text("the runtime")
    expect(keys).to_contain_text("never used")
    connection = api_setup.request("GET", f"/v1/agents/{agent['id']}/connection")
    text = page.get_by_role("region", name="Snippet", exact=True)
    for snippet in connection["snippets"]:
        page.get_by_role("button", name=snippet["name"], exact=True).click()
        expect(text).to_have_text(snippet["text"])
        if snippet["file"]:
            expect(page.get_by_text(f"Add to {snippet['file']}")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == NARROW[0]


def test_a_member_sees_the_snippets_without_a_key(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    member = api_setup.create_person("Lena")
    agent = api_setup.create_agent("Front", isShared=True)
    user = signed_in_page(api_setup.create_token(member))
    user.visit(f"/agents/{agent['id']}/connect")
    expect(user.page.get_by_text("Only owners and admins can create keys")).to_be_visible()
    expect(user.page.get_by_role("button", name="Create key")).to_have_count(0)
    expect(user.page.get_by_role("button", name="LangGraph")).to_be_visible()
