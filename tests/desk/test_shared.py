"""Workspaces and sandboxes: described, changed, deleted, and who uses them."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect
from tests.desk.browsing import NARROW, answered
from tests.desk.conftest import Office, Seating


def test_a_sandbox_is_described_and_changed_with_its_variables_unseen(
    seat: Seating, office: Office
) -> None:
    someone = seat()
    someone.expected = {400}
    page, name = someone.page, f"usual {office.mark}"
    someone.visit("/sandboxes")
    page.get_by_role("button", name="New sandbox").click()
    form = page.get_by_role("dialog", name="New sandbox")
    form.get_by_label("Name", exact=True).fill(name)
    form.get_by_label("Seconds of a command").fill("601")
    form.get_by_role("button", name="Add a variable").click()
    form.get_by_label("Name of the variable").fill("API_TOKEN")
    form.get_by_label("Value of API_TOKEN").fill("open-sesame")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_role("alert")).to_contain_text(
        "config.timeout must be an integer from 1 to 600", ignore_case=True
    )
    form.get_by_label("Seconds of a command").fill("60")
    form.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    described = page.get_by_role("region", name="What it is")
    expect(described).to_contain_text("60 seconds")
    expect(described).to_contain_text("API_TOKEN")
    tier = office.ask("GET", "/readyz")["sandbox"]["tier"]
    expect(page.get_by_role("region", name="What keeps commands apart")).to_contain_text(tier)
    assert "open-sesame" not in page.content()
    id = page.url.rsplit("/", 1)[1]

    page.get_by_role("button", name="Change").click()
    form = page.get_by_role("dialog", name="Change the sandbox")
    expect(form.get_by_label("Value of API_TOKEN")).to_have_value("")
    form.get_by_label("Seconds of a command").fill("")
    form.get_by_role("button", name="Add a variable").click()
    form.get_by_label("Name of the variable").nth(1).fill("LEVEL")
    form.get_by_label("Value of LEVEL").fill("3")
    form.get_by_label("A person is asked").select_option("edit")
    someone.look_for_barriers()
    with answered(page, "PATCH", "/accounts/me/sandboxes/"):
        form.get_by_role("button", name="Save").click()
    expect(described).to_contain_text("LEVEL")
    expect(described).to_contain_text("30 seconds (usual)")
    kept = office.ask("GET", f"/accounts/me/sandboxes/{id}")["config"]
    assert kept["envVars"] == {"API_TOKEN": "********", "LEVEL": "********"}
    assert kept["permissionMode"] == "edit"


def test_deleting_names_the_agents_that_would_miss_it(seat: Seating, office: Office) -> None:
    made = office.ask("POST", "/accounts/me/sandboxes", {"name": f"old {office.mark}"})
    office.agent("Marco Polo", config={"sandbox": made["sandboxId"]})
    someone = seat()
    page = someone.page
    someone.visit(f"/sandboxes/{made['sandboxId']}")
    expect(page.get_by_role("region", name="Used by")).to_contain_text("Marco Polo")
    page.get_by_role("button", name="Delete").click()
    asked = page.get_by_role("dialog", name="Delete the sandbox?")
    expect(asked).to_contain_text("1 agent refers to it: Marco Polo")
    asked.get_by_role("button", name="Delete").click()
    expect(page).to_have_url(re.compile(r"/sandboxes$"))
    expect(page.get_by_role("link", name=f"old {office.mark}")).to_have_count(0)


def test_a_workspace_has_its_files_and_says_who_may_only_read(
    seat: Seating, office: Office
) -> None:
    someone = seat()
    page, name = someone.page, f"Team notes {office.mark}"
    someone.visit("/workspaces")
    page.get_by_role("button", name="New workspace").click()
    form = page.get_by_role("dialog", name="New workspace")
    form.get_by_label("Name").fill(name)
    form.get_by_label("Description").fill("What sales found out.")
    form.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    id = page.url.rsplit("/", 1)[1]
    office.put(f"/v1/workspaces/{id}", "MEMORY.md", "Acme pays late.")
    expect(page.get_by_role("treeitem", name="MEMORY.md")).to_be_visible()

    attached = {"name": "notes", "workspaceId": id, "sandbox": None}
    office.agent("Rhea", config={"workspaces": [attached]})
    page.reload()
    expect(page.get_by_role("region", name="Used by")).to_contain_text("Rhea as notes, read-only")
    someone.look_for_barriers()
    page.get_by_role("button", name="Change").click()
    form = page.get_by_role("dialog", name="Change the workspace")
    form.get_by_label("Prompts tell agents").uncheck()
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_role("region", name="What it is")).to_contain_text("without how to use it")
    page.get_by_role("button", name="Delete", exact=True).click()
    asked = page.get_by_role("dialog", name="Delete the workspace and its files?")
    expect(asked).to_contain_text("Rhea")
    asked.get_by_role("button", name="Delete").click()
    expect(page).to_have_url(re.compile(r"/workspaces$"))


def test_members_look_and_hostile_names_stay_inert_on_a_phone(
    seat: Seating, office: Office
) -> None:
    name = f"<script>window.hurt = 1</script>\u202e{office.mark}" + "x" * 100
    made: Any = office.ask("POST", "/accounts/me/sandboxes", {"name": name})
    member = office.token_of(office.person("Mia"))
    someone = seat(member, NARROW)
    page = someone.page
    someone.visit("/sandboxes")
    expect(page.get_by_role("button", name="New sandbox")).to_be_disabled()
    page.get_by_role("link", name=re.compile(office.mark)).click()
    expect(page).to_have_url(re.compile(made["sandboxId"]))
    expect(page.get_by_role("region", name="What it is")).to_be_visible()
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)
    assert page.evaluate("window.hurt") is None
    assert page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")
