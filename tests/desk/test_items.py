"""Items: read, written and deleted, with nothing lost where two write at once."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Route, expect
from tests.desk.browsing import NARROW, answered
from tests.desk.conftest import Office, Seating


def _write(office: Office, agent: Any, key: str, value: str) -> None:
    body = {"arguments": {"key": key, "value": value}}
    office.ask("POST", f"/v1/agents/{agent['id']}/tools/workspace_write", body)


def test_an_item_is_written_conflicts_lose_nothing_and_versions_come_back(
    seat: Seating, office: Office
) -> None:
    agent = office.agent("Front desk", isShared=True)
    someone = seat()
    someone.expected = {409, 412, 404}
    page = someone.page
    someone.visit(f"/agents/{agent['id']}/items")
    expect(page.get_by_text("Private agents reach them only by publishing")).to_be_visible()
    page.get_by_role("button", name="New item").click()
    form = page.get_by_role("dialog", name="New item")
    form.get_by_label("Key").fill("shopping/list")
    form.get_by_label("Value").fill("milk")
    with answered(page, "PUT", "/items/"):
        form.get_by_role("button", name="Write").click()
    expect(form).to_have_count(0)
    value = page.get_by_label("Value", exact=True)
    expect(value).to_have_value("milk")
    _write(office, agent, "shopping/list", "milk, tea")
    expect(value).to_have_value("milk, tea")

    value.fill("milk, eggs")
    _write(office, agent, "shopping/list", "milk, rum")
    expect(page.get_by_text("Somebody wrote version 3 meanwhile")).to_be_visible()
    page.get_by_role("button", name="Save").click()
    conflict = page.get_by_role("region", name="Conflict")
    expect(conflict).to_contain_text("milk, rum")
    expect(conflict).to_contain_text("milk, eggs")
    someone.look_for_barriers()
    with answered(page, "PUT", "/items/"):
        conflict.get_by_role("button", name="Write mine over theirs").click()
    expect(value).to_have_value("milk, eggs")
    now = office.ask("GET", f"/v1/agents/{agent['id']}/items/shopping%2Flist")
    assert (now["value"], now["version"]) == ("milk, eggs", 4)

    page.get_by_role("button", name="Earlier versions").click()
    expect(page.get_by_role("region", name="Value at version 3")).to_contain_text("milk, rum")
    page.get_by_role("button", name="Version before").click()
    page.get_by_role("button", name="Take it up again").click()
    with answered(page, "PUT", "/items/"):
        value.press("Control+s")
    expect(page.get_by_text("The item is written.").last).to_be_visible()
    expect(page.get_by_role("list", name="Items")).to_contain_text("milk, tea")
    page.get_by_role("button", name="Delete the item").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No items yet")).to_be_visible()


def test_what_was_saved_stays_in_sight_before_it_is_read_again(
    seat: Seating, office: Office
) -> None:
    agent = office.agent("Front desk", isShared=True)
    _write(office, agent, "hours", "9 to 5")
    someone = seat()
    page = someone.page
    someone.visit(f"/agents/{agent['id']}/items?key=hours")
    value = page.get_by_label("Value", exact=True)
    expect(value).to_have_value("9 to 5")
    held: list[Route] = []

    def reading_waits(route: Route) -> None:
        if route.request.method == "GET":
            held.append(route)
        else:
            route.continue_()

    page.route("**/items/hours", reading_waits)
    value.fill("8 to 6")
    with answered(page, "PUT", "/items/hours"):
        page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("definition").filter(has_text=re.compile("^2$"))).to_be_visible()
    expect(value).to_have_value("8 to 6")
    for route in held:
        route.continue_()


def test_private_agents_of_a_person_share_one_set_that_other_members_never_see(
    seat: Seating, office: Office
) -> None:
    mia, ben = office.person(f"Mia {office.mark}"), office.person(f"Ben {office.mark}")
    one = office.agent("Cook", ownerId=mia["id"])
    office.agent("Nurse", ownerId=mia["id"])
    office.agent("Driver", ownerId=ben["id"])
    shared = office.agent(f"Desk {office.mark}", isShared=True)
    _write(office, one, "<img src=x onerror=hurt()>", "inert\u202e <b>text</b>")
    _write(office, shared, "hours", "9 to 5")

    someone = seat(office.token_of(mia), NARROW)
    page = someone.page
    someone.visit("/items")
    whose = page.get_by_label("Whose")
    expect(whose).to_contain_text(f"Desk {office.mark}")
    expect(whose).not_to_contain_text(f"Ben {office.mark}")
    expect(page.get_by_text("every private agent of Mia")).to_be_visible()
    page.get_by_role("button", name="<img src=x").click()
    expect(page.get_by_label("Value")).to_have_value("inert\u202e <b>text</b>")
    expect(page.get_by_text("Cook")).to_be_visible()
    assert page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")
    page.get_by_role("button", name="All items").click()
    whose.select_option(label=f"Desk {office.mark}")
    expect(page.get_by_role("list", name="Items")).to_contain_text("9 to 5")
    someone.look_for_barriers()

    owner = seat()
    owner.visit(f"/items?of={ben['id']}")
    expect(owner.page.get_by_label("Whose")).to_have_value(ben["id"])
    expect(owner.page.get_by_text("No items yet")).to_be_visible()
