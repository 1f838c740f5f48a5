"""Templates and defaults: files, impact of edits, and packaged updates."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from tests.ui.browser import NARROW, wait_for_response
from tests.ui.conftest import ApiSetup, OpenPage
from tests.ui.file_editor import replace_text, save_file, tree_item


def test_a_template_is_created_renamed_and_deleted(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    user = signed_in_page()
    user.expected_statuses = {404, 409}
    page = user.page
    user.visit("/agent-templates")
    page.get_by_role("button", name="New template").first.click()
    dialog = page.get_by_role("dialog", name="New template")
    dialog.get_by_label("Name").fill(f"Böök Keeper {api_setup.suffix}")
    expect(dialog.get_by_label("Slug")).to_have_value(f"book-keeper-{api_setup.suffix}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=f"Böök Keeper {api_setup.suffix}")).to_be_visible()
    expect(page.get_by_role("link", name="Used by 0 agents")).to_be_visible()
    page.get_by_role("button", name="Rename").click()
    page.get_by_role("dialog").get_by_label("Name").fill("<b>Clerk</b>\u202e")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="<b>Clerk</b>␣")).to_be_visible()

    user.visit("/agent-templates")
    row = page.get_by_role("row").filter(has_text=f"book-keeper-{api_setup.suffix}")
    expect(row).to_contain_text("0 agents")
    user.check_accessibility()
    page.get_by_role("button", name="New template").first.click()
    dialog.get_by_label("Name").fill(f"Book Keeper {api_setup.suffix}")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    page.keyboard.press("Escape")
    question = page.get_by_role("dialog", name="Discard unsaved changes?")
    question.get_by_role("button", name="Discard").click()
    expect(dialog).to_be_hidden()
    row.get_by_role("link", name="<b>Clerk</b>␣").click()
    page.get_by_role("button", name="Delete template").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Templates", exact=True)).to_be_visible()
    expect(row).to_be_hidden()


def test_a_template_shows_inherited_defaults_and_the_impact_of_a_save(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    template = api_setup.create_template(SOUL_md="# Soul\n", GUARDRAILS_md="# Rules\n")
    agents = [api_setup.create_agent(name, template) for name in ("Ada", "Bob", "Cleo")]
    api_setup.put_file(f"/v1/agents/{agents[0]['id']}", "SOUL.md", "# Mine\n")
    user = signed_in_page()
    user.expected_statuses = {404}
    page = user.page
    user.visit(f"/agent-templates/{template['id']}?file=SOUL.md")
    expect(page.get_by_role("link", name="Used by 3 agents")).to_be_visible()
    expect(page.get_by_role("button", name="Delete template")).to_be_disabled()
    bar = page.get_by_role("form", name="Save")
    expect(bar).to_contain_text("2 agents update immediately")
    expect(bar).to_contain_text("1 agent overrides this file")
    tree_item(page, "GUARDRAILS.md").click()
    expect(bar).to_contain_text("3 agents need review")
    replace_text(page, "# Rules\n\n- Never.\n")
    save_file(page)
    expect(page.get_by_role("link", name=re.compile("Review 3 updates"))).to_have_attribute(
        "href", f"/agent-templates/{template['id']}/review"
    )

    item = tree_item(page, "ROUTER.md")
    expect(item).to_have_accessible_name("ROUTER.md, From defaults")
    expect(item.locator(".badge")).to_have_css("content", '"defaults"', pseudo="before")
    item.click()
    expect(page.get_by_role("heading", name="ROUTER.md")).to_be_visible()
    replace_text(page, "# Ours\n")
    save_file(page)
    expect(item).to_have_accessible_name("ROUTER.md, Template file")
    replace_text(page, "# Ours, again\n")
    save_file(page)
    served = api_setup.request("GET", f"/v1/agents/{agents[1]['id']}/files/ROUTER.md")
    assert served["content"] == "# Ours, again\n"
    page.get_by_role("button", name="Revert to defaults").click()
    with wait_for_response(page, "DELETE", "/files/"):
        page.get_by_role("dialog").get_by_role("button", name="Revert to defaults").click()
    expect(item).to_have_accessible_name("ROUTER.md, From defaults")
    expect(page.get_by_role("textbox", name="Text of ROUTER.md")).not_to_contain_text("Ours")
    user.check_accessibility()


def test_concurrent_overrides_of_a_default_are_merged(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    template = api_setup.create_template()
    first, second = signed_in_page(), signed_in_page()
    first.expected_statuses = second.expected_statuses = {404, 409}
    for user in (first, second):
        user.visit(f"/agent-templates/{template['id']}?file=ROUTER.md")
    replace_text(first.page, "# First\n")
    replace_text(second.page, "# Second\n")
    save_file(first.page)
    second.page.keyboard.press("ControlOrMeta+s")
    dialog = second.page.get_by_role("dialog", name="Merge ROUTER.md")
    dialog.get_by_role("group", name="Conflict 1").get_by_label("Both (mine first)").check()
    with wait_for_response(second.page, "PUT", "/files/"):
        dialog.get_by_role("button", name="Save merge").click()
    expect(dialog).to_be_hidden()
    stored = api_setup.request("GET", f"/v1/templates/{template['id']}/files/ROUTER.md")["content"]
    assert "# First" in stored
    assert "# Second" in stored


def test_edited_defaults_are_compared_with_the_packaged_version(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    api_setup.create_agent("Ada")
    before = api_setup.request("GET", "/v1/defaults/files/MEMORY_GUIDE.md?raw=true")["content"]
    user = signed_in_page(size=NARROW)
    page = user.page
    user.visit("/agent-templates/defaults")
    expect(page.get_by_text("Up to date with version")).to_be_visible()
    tree_item(page, "MEMORY_GUIDE.md").click()
    bar = page.get_by_role("form", name="Save")
    expect(bar).to_contain_text(re.compile(r"agents? updates? immediately"))
    replace_text(page, before + "\nOne more line.\n")
    bar.get_by_label("Reason (optional)").fill("we learnt something")
    with wait_for_response(page, "PUT", "/files/"):
        bar.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    # The defaults belong to the tenant, so other tests may have changed some too.
    states = {
        row["path"]: row["state"] for row in api_setup.request("GET", "/v1/defaults")["files"]
    }
    assert states["MEMORY_GUIDE.md"] == "edited"
    changed = sum(state in {"edited", "deleted"} for state in states.values())
    expect(page.get_by_text(f"{changed} of {len(states)} files changed here")).to_be_visible()
    page.get_by_role("button", name="History").click()
    panel = page.get_by_role("complementary", name="History")
    expect(panel.get_by_role("listitem").first).to_contain_text("we learnt something")
    wide = "document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth"
    assert page.evaluate(wide) == 0
    user.check_accessibility()
    api_setup.put_file("/v1/defaults", "MEMORY_GUIDE.md", before)


def test_templates_are_read_only_for_members(signed_in_page: OpenPage, api_setup: ApiSetup) -> None:
    template = api_setup.create_template(SOUL_md="# Soul\n")
    user = signed_in_page(api_setup.create_token(api_setup.create_person("Max Member")))
    user.visit("/agent-templates")
    expect(user.page.get_by_role("heading", name="Templates", exact=True)).to_be_visible()
    expect(user.page.get_by_role("button", name="New template")).to_be_hidden()
    user.visit(f"/agent-templates/{template['id']}?file=SOUL.md")
    expect(user.page.get_by_text("only owners and admins can change this file")).to_be_visible()
    expect(user.page.get_by_role("button", name="Rename")).to_be_hidden()
