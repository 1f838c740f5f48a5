"""Duplicates, new agents of a template, previews as an agent, and changes of many agents."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.ui.browser import wait_for_response
from tests.ui.conftest import ApiSetup, OpenPage


def test_an_agent_and_its_template_are_duplicated(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    mark = api_setup.suffix
    template = api_setup.create_template("Crew", SOUL_md="# Soul\n")
    ada = api_setup.create_agent(f"Ada {mark}", template)
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{ada['id']}/workspace")
    page.get_by_role("button", name="Duplicate").click()
    dialog = page.get_by_role("dialog", name=f"Duplicate Ada {mark}")
    expect(dialog).to_contain_text("keys and items are not duplicated")
    user.check_accessibility()
    dialog.get_by_label("Name").fill(f"Bea {mark}")
    with wait_for_response(page, "POST", f"/v1/agents/{ada['id']}/duplicate"):
        dialog.get_by_role("button", name="Duplicate").click()
    expect(page.get_by_role("heading", name=f"Bea {mark}")).to_be_visible()
    user.visit(f"/agent-templates/{template['id']}")
    page.get_by_role("button", name="Duplicate template").click()
    dialog = page.get_by_role("dialog", name="Duplicate Crew")
    dialog.get_by_label("Name").fill(f"Fleet {mark}")
    with wait_for_response(page, "POST", f"/v1/templates/{template['id']}/duplicate"):
        dialog.get_by_role("button", name="Duplicate").click()
    expect(page.get_by_role("heading", name=f"Fleet {mark}")).to_be_visible()
    assert api_setup.request("GET", f"/v1/templates/fleet-{mark}")["agentCount"] == 0
    assert not user.errors


def test_a_template_file_is_previewed_as_an_agent_and_has_new_agents(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    mark = api_setup.suffix
    template = api_setup.create_template("Crew", SOUL_md="I am {{AGENT_NAME}}.\n")
    api_setup.create_agent(f"Ada {mark}", template)
    user = signed_in_page()
    page = user.page
    user.visit(f"/agent-templates/{template['id']}?file=SOUL.md")
    preview = page.get_by_role("region", name="Preview")
    picker = preview.get_by_role("combobox", name="Preview as")
    picker.click()
    picker.fill(f"Ada {mark}")
    with wait_for_response(page, "POST", "/files/SOUL.md/render"):
        preview.get_by_role("option", name=f"Ada {mark}").click()
    expect(preview).to_contain_text(f"I am Ada {mark}.")
    page.get_by_role("button", name="New agent").click()
    dialog = page.get_by_role("dialog", name="New agent")
    expect(dialog.get_by_label("Template")).to_have_value(template["id"])
    dialog.get_by_label("Name").fill(f"Cleo {mark}")
    with wait_for_response(page, "POST", "/v1/agents"):
        dialog.get_by_role("button", name="Create agent").click()
    expect(page.get_by_role("heading", name=f"Cleo {mark}")).to_be_visible()
    assert not user.errors


def test_selected_agents_are_tagged_after_a_dry_run(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    mark = api_setup.suffix
    for name in ("Ada", "Bea", "Cleo"):
        api_setup.create_agent(f"{name} {mark}")
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents?q={mark}")
    page.get_by_role("checkbox", name=f"Select Ada {mark}").check()
    page.get_by_role("checkbox", name=f"Select Bea {mark}").check()
    bar = page.get_by_role("region", name="Selected agents")
    expect(bar).to_contain_text("2 selected")
    user.check_accessibility()
    bar.get_by_role("button", name="Tag…").click()
    dialog = page.get_by_role("dialog", name="Change tags")
    dialog.get_by_label("Add tags").fill(f"t-{mark}")
    with wait_for_response(page, "POST", "/v1/agent-changes"):
        dialog.get_by_role("button", name="Check 2 agents").click()
    expect(dialog.get_by_role("status", name="What changes")).to_contain_text("2 agents")
    user.check_accessibility()
    with wait_for_response(page, "POST", "/v1/agent-changes"):
        dialog.get_by_role("button", name="Change 2 agents").click()
    expect(bar).to_be_hidden()
    tags = {tag["tag"]: tag["agents"] for tag in api_setup.request("GET", "/v1/tags")["items"]}
    assert tags[f"t-{mark}"] == 2
    assert not user.errors
