"""Sandboxes and workspaces: create, edit, delete, and usage by agents."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect
from tests.ui.browser import NARROW, wait_for_response
from tests.ui.conftest import ApiSetup, OpenPage


def test_a_sandbox_is_created_and_edited_without_showing_variable_values(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    user = signed_in_page()
    user.expected_statuses = {400}
    page, name = user.page, f"usual {api_setup.suffix}"
    user.visit("/sandboxes")
    page.get_by_role("button", name="New sandbox").click()
    form = page.get_by_role("dialog", name="New sandbox")
    form.get_by_label("Name", exact=True).fill(name)
    form.get_by_label("Timeout (seconds)").fill("601")
    form.get_by_role("button", name="Add variable").click()
    form.get_by_label("Variable name").fill("API_TOKEN")
    form.get_by_label("Value of API_TOKEN").fill("open-sesame")
    form.get_by_role("button", name="Create").click()
    expect(form.get_by_role("alert")).to_contain_text(
        "config.timeout must be an integer from 1 to 600", ignore_case=True
    )
    form.get_by_label("Timeout (seconds)").fill("60")
    form.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    details = page.get_by_role("region", name="Configuration")
    expect(details).to_contain_text("60 seconds")
    expect(details).to_contain_text("API_TOKEN")
    tier = api_setup.request("GET", "/readyz")["sandbox"]["tier"]
    expect(page.get_by_role("region", name="Isolation")).to_contain_text(tier)
    assert "open-sesame" not in page.content()
    id = page.url.rsplit("/", 1)[1]

    page.get_by_role("button", name="Edit").click()
    form = page.get_by_role("dialog", name="Edit sandbox")
    expect(form.get_by_label("Value of API_TOKEN")).to_have_value("")
    form.get_by_label("Timeout (seconds)").fill("")
    form.get_by_role("button", name="Add variable").click()
    form.get_by_label("Variable name").nth(1).fill("LEVEL")
    form.get_by_label("Value of LEVEL").fill("3")
    form.get_by_label("Approval required for").select_option("edit")
    user.check_accessibility()
    with wait_for_response(page, "PATCH", "/accounts/me/sandboxes/"):
        form.get_by_role("button", name="Save").click()
    expect(details).to_contain_text("LEVEL")
    expect(details).to_contain_text("30 seconds (default)")
    config = api_setup.request("GET", f"/accounts/me/sandboxes/{id}")["config"]
    assert config["envVars"] == {"API_TOKEN": "********", "LEVEL": "********"}
    assert config["permissionMode"] == "edit"


def test_the_delete_dialog_names_the_agents_that_use_the_sandbox(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    sandbox = api_setup.request(
        "POST", "/accounts/me/sandboxes", {"name": f"old {api_setup.suffix}"}
    )
    api_setup.create_agent("Marco Polo", config={"sandbox": sandbox["sandboxId"]})
    user = signed_in_page()
    page = user.page
    user.visit(f"/sandboxes/{sandbox['sandboxId']}")
    expect(page.get_by_role("region", name="Used by")).to_contain_text("Marco Polo")
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete sandbox?")
    expect(dialog).to_contain_text("Used by 1 agent: Marco Polo")
    dialog.get_by_role("button", name="Delete").click()
    expect(page).to_have_url(re.compile(r"/sandboxes$"))
    expect(page.get_by_role("link", name=f"old {api_setup.suffix}")).to_have_count(0)


def test_a_workspace_shows_files_and_agents_with_their_access(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    user = signed_in_page()
    page, name = user.page, f"Team notes {api_setup.suffix}"
    user.visit("/workspaces")
    page.get_by_role("button", name="New workspace").click()
    form = page.get_by_role("dialog", name="New workspace")
    form.get_by_label("Name").fill(name)
    form.get_by_label("Description").fill("What sales found out.")
    form.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    id = page.url.rsplit("/", 1)[1]
    api_setup.put_file(f"/v1/workspaces/{id}", "MEMORY.md", "Acme pays late.")
    expect(page.get_by_role("treeitem", name="MEMORY.md")).to_be_visible()

    attached = {"name": "notes", "workspaceId": id, "sandbox": None}
    api_setup.create_agent("Rhea", config={"workspaces": [attached]})
    page.reload()
    expect(page.get_by_role("region", name="Used by")).to_contain_text("Rhea as notes, read-only")
    user.check_accessibility()
    page.get_by_role("button", name="Edit").click()
    form = page.get_by_role("dialog", name="Edit workspace")
    form.get_by_label("Workspace notes in prompts").uncheck()
    form.get_by_role("button", name="Save").click()
    expect(page.get_by_role("region", name="Details")).to_contain_text("MEMORY.md only")
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog", name="Delete workspace?")
    expect(dialog).to_contain_text("Rhea")
    dialog.get_by_role("button", name="Delete").click()
    expect(page).to_have_url(re.compile(r"/workspaces$"))


def test_sandboxes_are_read_only_for_members_and_hostile_names_stay_text(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    name = f"<script>window.hurt = 1</script>\u202e{api_setup.suffix}" + "x" * 100
    sandbox: Any = api_setup.request("POST", "/accounts/me/sandboxes", {"name": name})
    member = api_setup.create_token(api_setup.create_person("Mia"))
    user = signed_in_page(member, NARROW)
    page = user.page
    user.visit("/sandboxes")
    expect(page.get_by_role("button", name="New sandbox")).to_be_disabled()
    page.get_by_role("link", name=re.compile(api_setup.suffix)).click()
    expect(page).to_have_url(re.compile(sandbox["sandboxId"]))
    expect(page.get_by_role("region", name="Configuration")).to_be_visible()
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)
    assert page.evaluate("window.hurt") is None
    assert page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")
