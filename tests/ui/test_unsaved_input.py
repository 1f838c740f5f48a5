"""Unsaved input: no form loses it, and no toast covers the button that saves it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.ui.browser import NARROW, WIDE, wait_for_response
from tests.ui.conftest import ApiSetup, OpenPage
from tests.ui.file_editor import editor, open_file, replace_text, save_file, tree_item


def _question(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Discard unsaved changes?")


def test_leaving_unsaved_settings_of_an_agent_needs_confirmation(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada")
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{agent['id']}/settings")
    config = page.get_by_role("form", name="Other config").get_by_label("JSON")
    config.fill('{"half": ')
    page.get_by_role("form", name="Runtime").get_by_label("Model").fill("large")
    page.get_by_role("link", name="Memory").click()
    expect(_question(page)).to_contain_text("Runtime")
    expect(_question(page)).to_contain_text("Other config")
    user.check_accessibility()
    _question(page).get_by_role("button", name="Cancel").click()
    expect(config).to_have_value('{"half": ')
    page.get_by_role("link", name="Templates").click()
    _question(page).get_by_role("button", name="Discard").click()
    expect(page.get_by_role("heading", name="Templates", exact=True)).to_be_visible()


def test_an_agent_with_unsaved_settings_is_deleted_without_a_question(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada")
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{agent['id']}/settings")
    page.get_by_role("form", name="Name").get_by_label("Name", exact=True).fill("Bea")
    page.get_by_role("button", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("textbox").fill(agent["slug"])
    with wait_for_response(page, "DELETE", f"/v1/agents/{agent['id']}"):
        page.get_by_role("dialog").get_by_role("button", name="Delete agent").click()
    expect(page).to_have_url(re.compile(r"/agents$"))


def test_leaving_an_unsaved_item_needs_confirmation(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Reception", isShared=True)
    for key in ("first", "second"):
        body = {"arguments": {"key": key, "value": "milk"}}
        api_setup.request("POST", f"/v1/agents/{agent['id']}/tools/workspace_write", body)
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{agent['id']}/items?key=first")
    value = page.get_by_label("Value", exact=True)
    expect(value).to_have_value("milk")
    value.fill("milk, half a list")
    items = page.get_by_role("list", name="Items")
    items.get_by_role("button", name="second").click()
    expect(_question(page)).to_contain_text("first")
    _question(page).get_by_role("button", name="Cancel").click()
    expect(value).to_have_value("milk, half a list")
    with wait_for_response(page, "PUT", "/items/"):
        page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    items.get_by_role("button", name="second").click()
    expect(page.get_by_role("heading", name="second")).to_be_visible()


def test_a_form_in_a_dialog_asks_before_it_closes_or_the_page_is_left(
    signed_in_page: OpenPage,
) -> None:
    user = signed_in_page()
    page = user.page
    user.visit("/agents")
    user.visit("/agent-templates")
    page.get_by_role("button", name="New template").first.click()
    form = page.get_by_role("dialog", name="New template")
    expect(form).to_be_visible()
    page.keyboard.press("Escape")
    expect(form).to_have_count(0)
    page.get_by_role("button", name="New template").first.click()
    form.get_by_label("Name").fill("Half a name")
    for by_key in (True, False):
        if by_key:
            page.keyboard.press("Escape")
        else:
            form.get_by_role("button", name="Close").click()
        expect(_question(page)).to_be_visible()
        page.keyboard.press("Escape")
        expect(_question(page)).to_have_count(0)
        expect(form.get_by_label("Name")).to_have_value("Half a name")
    form.get_by_role("button", name="Close").click()
    user.check_accessibility()
    _question(page).get_by_role("button", name="Discard").click()
    expect(form).to_have_count(0)


def test_going_back_from_a_dialog_with_input_needs_confirmation(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    user = signed_in_page()
    page = user.page
    user.visit("/agents")
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("button", name="Add person").click()
    form = page.get_by_role("dialog", name="Add person")
    form.get_by_label("Name").fill("Half a person")
    page.go_back()
    expect(_question(page)).to_be_visible()
    _question(page).get_by_role("button", name="Cancel").click()
    name = f"Whole {api_setup.suffix}"
    form.get_by_label("Name").fill(name)
    form.get_by_label("Email").fill(f"whole.{api_setup.suffix}@example.com")
    with wait_for_response(page, "POST", "/v1/people"):
        form.get_by_role("button", name="Add").click()
    expect(form).to_have_count(0)
    page.get_by_role("link", name="Templates").click()
    expect(page.get_by_role("heading", name="Templates", exact=True)).to_be_visible()


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_a_toast_covers_no_button_that_saves(
    signed_in_page: OpenPage, api_setup: ApiSetup, size: tuple[int, int]
) -> None:
    template = api_setup.create_template(SOUL_md="# Soul\n")
    agent = api_setup.create_agent("Reception", isShared=True)
    body = {"arguments": {"key": "list", "value": "milk"}}
    api_setup.request("POST", f"/v1/agents/{agent['id']}/tools/workspace_write", body)
    user = signed_in_page(size=size)
    page = user.page
    user.visit(f"/agent-templates/{template['id']}?file=SOUL.md")
    replace_text(page, "# Soul\n\nCalm.\n")
    save_file(page)
    _assert_uncovered(page, "Save")
    user.visit(f"/agents/{agent['id']}/items?key=list")
    page.get_by_label("Value", exact=True).fill("milk, tea")
    page.get_by_role("button", name="Save").click()
    _assert_uncovered(page, "Save")
    user.visit(f"/agents/{agent['id']}/settings")
    page.get_by_role("form", name="Name").get_by_label("Name", exact=True).fill("Front desk")
    page.get_by_role("form", name="Name").get_by_role("button", name="Save").click()
    _assert_uncovered(page, "Save")


def _assert_uncovered(page: Page, name: str) -> None:
    """Wait for a toast; no visible button of this name is beneath it."""
    toast = page.locator(".toast").last
    expect(toast).to_be_visible()
    covered = page.evaluate(
        """name => {
          const toast = document.querySelector(".toasts").getBoundingClientRect();
          const main = document.querySelector("main").getBoundingClientRect();
          return [...document.querySelectorAll("button")].filter(button => {
            const box = button.getBoundingClientRect();
            const isInView = box.top < main.bottom && box.bottom > main.top;
            return button.textContent.trim() === name && isInView
              && box.left < toast.right && box.right > toast.left
              && Math.max(box.top, main.top) < toast.bottom
              && Math.min(box.bottom, main.bottom) > toast.top;
          }).length;
        }""",
        name,
    )
    assert covered == 0
    toast.get_by_role("button", name="Dismiss").click()


@pytest.mark.parametrize("height", [700, 800, 1000])
def test_the_files_of_an_agent_and_a_template_fit_the_window(
    signed_in_page: OpenPage, api_setup: ApiSetup, height: int
) -> None:
    template = api_setup.create_template(SOUL_md="# Soul\n\n" + "Calm.\n" * 200)
    agent = api_setup.create_agent("Ada", template)
    user = signed_in_page(size=(1280, height))
    page = user.page
    for url in (
        f"/agents/{agent['id']}/workspace?file=SOUL.md",
        f"/agent-templates/{template['id']}?file=SOUL.md",
        "/agent-templates/defaults?file=SOUL.md",
    ):
        user.visit(url)
        expect(page.get_by_role("button", name="Save", exact=True)).to_be_visible()
        expect(editor(page)).to_contain_text("Soul")
        overflow = page.evaluate(
            """() => [...document.querySelectorAll("main, .agent-body")]
                 .map(area => area.scrollHeight - area.clientHeight)"""
        )
        assert max(overflow) <= 0, (url, overflow)
        box = page.locator(".file-browser").bounding_box()
        assert box and height - 30 <= box["y"] + box["height"] <= height, (url, box)


def test_the_active_tab_is_in_view_on_a_small_window(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Ada")
    user = signed_in_page(size=NARROW)
    page = user.page
    for url in (f"/agents/{agent['id']}/settings", "/settings/audit"):
        user.visit(url)
        expect(page.get_by_role("heading").first).to_be_visible()
        box = page.locator(".tabs [aria-current=page]").bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= NARROW[0], (url, box)


def test_the_tree_marks_sources_at_its_right_edge(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    person = api_setup.create_person("Grace Hopper")
    agent = api_setup.create_agent("Ada", humanPairId=person["id"])
    for path in ("SOUL.md", "notes/own.md", "GUARDRAILS.md"):
        api_setup.put_file(f"/v1/agents/{agent['id']}", path, "# Own\n")
    user = signed_in_page()
    page = open_file(user, agent)
    for name in (
        "SOUL.md, Override",
        "own.md, Own file",
        "USER.md, Managed by Carrel",
        "GUARDRAILS.md, Override, pinned",
        "PLATFORM.md, From defaults, pinned",
        "IDENTITY.md, From defaults",
    ):
        expect(tree_item(page, name)).to_have_accessible_name(name)
    tree = page.get_by_role("tree").bounding_box()
    for icon in page.locator("[role=treeitem] .status-icon").all():
        box = icon.bounding_box()
        assert tree and box and tree["x"] + tree["width"] - (box["x"] + box["width"]) <= 16
    rows = api_setup.request("GET", f"/v1/agents/{agent['id']}/files")["files"]
    overrides = sorted(row["path"] for row in rows if row["overrides"])
    assert overrides == ["GUARDRAILS.md", "SOUL.md"]
    query = {"query": "query($id: ID!) { agent(id: $id) { overrideCount } }"}
    answer = api_setup.request("POST", "/graphql", query | {"variables": {"id": agent["id"]}})
    assert answer["data"]["agent"]["overrideCount"] == len(overrides)
