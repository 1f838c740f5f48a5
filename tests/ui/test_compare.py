"""Comparisons in the console: pickers, results, and the ways that lead there."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect
from tests.support.fleet_store import agent_slug
from tests.support.server_process import ServerProcess
from tests.ui.browser import NARROW, sign_in
from tests.ui.conftest import ApiSetup, OpenPage


def _is_comparison(response: object) -> bool:
    return "/v1/compare?" in getattr(response, "url", "")


def _choose(page: Page, side: str, name: str) -> None:
    page.get_by_role("group", name=side).get_by_label("Name").fill(name)


def test_two_agents_are_compared_file_by_file(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    template = api_setup.create_template("Support", SOUL_md="{{AGENT_NAME}} is brisk.")
    ada, bob = (api_setup.create_agent(name, template) for name in ("Ada", "Bob"))
    api_setup.put_file(f"/v1/agents/{ada['id']}", "notes/plan.md", "Ask Ines.")
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{ada['id']}/workspace")
    page.get_by_role("link", name="Compare").click()
    expect(page.get_by_role("heading", name="Choose two sides")).to_be_visible()
    expect(page.get_by_role("group", name="Left").get_by_label("Name")).to_have_value(ada["slug"])
    _choose(page, "Right", bob["slug"])
    with page.expect_response(_is_comparison):
        page.get_by_role("button", name="Compare").click()

    files = page.get_by_role("navigation", name="Compared files")
    files.get_by_role("link", name="SOUL.md").click()
    soul = page.get_by_role("article", name="SOUL.md")
    expect(soul).to_contain_text("-Ada is brisk.")
    expect(soul).to_contain_text("+Bob is brisk.")
    user.check_accessibility()

    with page.expect_response(_is_comparison):
        page.get_by_label("Ignore placeholder values").click()
    expect(files.get_by_role("link")).to_have_count(1)
    expect(files.get_by_role("link", name="notes/plan.md")).to_contain_text("only left")
    expect(page.get_by_role("article", name="notes/plan.md")).to_contain_text("-Ask Ines.")
    with page.expect_response(_is_comparison):
        page.get_by_label("Show equal files").click()
    expect(files.get_by_role("link", name="SOUL.md")).to_contain_text("same")
    page.go_back()

    page.get_by_role("button", name="Swap").click()
    with page.expect_response(_is_comparison):
        page.get_by_role("button", name="Compare").click()
    expect(page).to_have_url(re.compile(f"left=agent%3A{bob['slug']}"))


def test_a_run_is_compared_with_now_and_versions_from_the_history(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    agent = api_setup.create_agent("Ada")
    own = f"/v1/agents/{agent['id']}"
    api_setup.put_file(own, "notes/plan.md", "First.")
    run = api_setup.request("POST", "/v1/runs", {"agentId": agent["id"]})["runId"]
    api_setup.put_file(own, "notes/plan.md", "Second.")
    user = signed_in_page(size=NARROW)
    page = user.page
    user.visit(f"/runs/{run}")
    with page.expect_response(_is_comparison):
        page.get_by_role("link", name="Compare").click()
    expect(page.get_by_role("article", name="notes/plan.md")).to_contain_text("+Second.")
    user.check_accessibility()

    user.visit(f"/agents/{agent['id']}/workspace?file=notes/plan.md&panel=history")
    page.get_by_role("button", name="Text").last.click()
    expect(page.get_by_role("region", name="Text of version 1")).to_contain_text("First.")
    page.get_by_role("button", name="Read by").last.click()
    readers = page.get_by_role("region", name="Runs that read version 1")
    expect(readers.get_by_role("link", name="agent")).to_have_attribute(
        "href", re.compile(f"/runs/{run}")
    )
    page.get_by_label("Compare version 1").check()
    page.get_by_label("Compare version 2").check()
    with page.expect_response(_is_comparison):
        page.get_by_role("link", name="Full page").click()
    expect(page.get_by_role("article", name="notes/plan.md")).to_contain_text("-First.")


def test_pickers_find_agents_of_a_fleet_on_the_server(
    browser: Browser, fleet_server: ServerProcess
) -> None:
    with sign_in(browser, fleet_server) as user:
        page = user.page
        user.visit("/compare")
        for side, number in (("Left", 1), ("Right", 900)):
            slug = agent_slug(number)
            with page.expect_response(lambda response: "/graphql" in response.url):
                _choose(page, side, slug)
            group = page.get_by_role("group", name=side)
            expect(group.locator(f"option[value='{slug}']")).to_be_attached()
        with page.expect_response(_is_comparison):
            page.get_by_role("button", name="Compare").click()
        files = page.get_by_role("navigation", name="Compared files")
        expect(files.get_by_role("link").first).to_be_visible()
        assert not user.errors
