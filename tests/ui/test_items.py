"""Items: create, edit, delete, and resolve conflicts."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Route, expect
from tests.ui.browser import NARROW, wait_for_response
from tests.ui.conftest import ApiSetup, OpenPage


def _write(api_setup: ApiSetup, agent: Any, key: str, value: str) -> None:
    body = {"arguments": {"key": key, "value": value}}
    api_setup.request("POST", f"/v1/agents/{agent['id']}/tools/workspace_write", body)


def test_an_item_is_edited_conflicts_lose_nothing_and_versions_are_restored(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Reception", isShared=True)
    user = signed_in_page()
    user.expected_statuses = {409, 412, 404}
    page = user.page
    user.visit(f"/agents/{agent['id']}/items")
    expect(page.get_by_text("Private agents can add to them only by publishing")).to_be_visible()
    page.get_by_role("button", name="New item").click()
    form = page.get_by_role("dialog", name="New item")
    form.get_by_label("Key").fill("shopping/list")
    form.get_by_label("Value").fill("milk")
    with wait_for_response(page, "PUT", "/items/"):
        form.get_by_role("button", name="Create").click()
    expect(form).to_have_count(0)
    value = page.get_by_label("Value", exact=True)
    expect(value).to_have_value("milk")
    _write(api_setup, agent, "shopping/list", "milk, tea")
    expect(value).to_have_value("milk, tea")

    value.fill("milk, eggs")
    _write(api_setup, agent, "shopping/list", "milk, rum")
    expect(page.get_by_text("Version 3 was saved meanwhile")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    conflict = page.get_by_role("region", name="Conflict")
    expect(conflict).to_contain_text("milk, rum")
    expect(conflict).to_contain_text("milk, eggs")
    user.check_accessibility()
    with wait_for_response(page, "PUT", "/items/"):
        conflict.get_by_role("button", name="Overwrite with my version").click()
    expect(value).to_have_value("milk, eggs")
    item = api_setup.request("GET", f"/v1/agents/{agent['id']}/items/shopping%2Flist")
    assert (item["value"], item["version"]) == ("milk, eggs", 4)

    page.get_by_role("button", name="Earlier versions").click()
    expect(page.get_by_role("region", name="Value at version 3")).to_contain_text("milk, rum")
    page.get_by_role("button", name="Older").click()
    page.get_by_role("button", name="Restore this version").click()
    with wait_for_response(page, "PUT", "/items/"):
        value.press("Control+s")
    expect(page.get_by_text("Item saved").last).to_be_visible()
    expect(page.get_by_role("list", name="Items")).to_contain_text("milk, tea")
    page.get_by_role("button", name="Delete item").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No items yet")).to_be_visible()


def test_a_saved_value_stays_visible_until_it_is_refetched(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent("Reception", isShared=True)
    _write(api_setup, agent, "hours", "9 to 5")
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{agent['id']}/items?key=hours")
    value = page.get_by_label("Value", exact=True)
    expect(value).to_have_value("9 to 5")
    held_routes: list[Route] = []

    def hold_reads(route: Route) -> None:
        if route.request.method == "GET":
            held_routes.append(route)
        else:
            route.continue_()

    page.route("**/items/hours", hold_reads)
    value.fill("8 to 6")
    with wait_for_response(page, "PUT", "/items/hours"):
        page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("definition").filter(has_text=re.compile("^2$"))).to_be_visible()
    expect(value).to_have_value("8 to 6")
    for route in held_routes:
        route.continue_()


def test_private_agents_of_a_person_share_items_that_other_members_cannot_see(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    mia, ben = (
        api_setup.create_person(f"Mia {api_setup.suffix}"),
        api_setup.create_person(f"Ben {api_setup.suffix}"),
    )
    cook = api_setup.create_agent("Cook", ownerId=mia["id"])
    api_setup.create_agent("Nurse", ownerId=mia["id"])
    api_setup.create_agent("Driver", ownerId=ben["id"])
    shared = api_setup.create_agent(f"Reception {api_setup.suffix}", isShared=True)
    _write(api_setup, cook, "<img src=x onerror=hurt()>", "inert\u202e <b>text</b>")
    _write(api_setup, shared, "hours", "9 to 5")

    user = signed_in_page(api_setup.create_token(mia), NARROW)
    page = user.page
    user.visit("/items")
    owner_select = page.get_by_label("Owner")
    expect(owner_select).to_contain_text(f"Reception {api_setup.suffix}")
    expect(owner_select).not_to_contain_text(f"Ben {api_setup.suffix}")
    expect(page.get_by_text("private agents of Mia")).to_be_visible()
    page.get_by_role("button", name="<img src=x").click()
    expect(page.get_by_label("Value")).to_have_value("inert\u202e <b>text</b>")
    expect(page.get_by_text("Cook")).to_be_visible()
    assert page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")
    page.get_by_role("button", name="All items").click()
    owner_select.select_option(label=f"Reception {api_setup.suffix}")
    expect(page.get_by_role("list", name="Items")).to_contain_text("9 to 5")
    user.check_accessibility()

    owner = signed_in_page()
    owner.visit(f"/items?of={ben['id']}")
    expect(owner.page.get_by_label("Owner")).to_have_value(ben["id"])
    expect(owner.page.get_by_text("No items yet")).to_be_visible()
