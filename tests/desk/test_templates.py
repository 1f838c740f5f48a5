"""Templates and defaults: what they say, whom an edit reaches, and what is told before."""

from __future__ import annotations

import re

from playwright.sync_api import expect
from tests.desk.browsing import NARROW, answered
from tests.desk.conftest import Office, Seating
from tests.desk.files import line, save, write_over


def test_a_template_is_made_renamed_and_deleted(seat: Seating, office: Office) -> None:
    someone = seat()
    someone.expected = {404, 409}
    page = someone.page
    someone.visit("/agent-templates")
    page.get_by_role("button", name="New template").first.click()
    dialog = page.get_by_role("dialog", name="New template")
    dialog.get_by_label("Name").fill(f"Böök Keeper {office.mark}")
    expect(dialog.get_by_label("Slug")).to_have_value(f"book-keeper-{office.mark}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=f"Böök Keeper {office.mark}")).to_be_visible()
    expect(page.get_by_role("link", name="Used by 0 agents")).to_be_visible()
    page.get_by_role("button", name="Rename").click()
    page.get_by_role("dialog").get_by_label("Name").fill("<b>Clerk</b>\u202e")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="<b>Clerk</b>␣")).to_be_visible()

    someone.visit("/agent-templates")
    row = page.get_by_role("row").filter(has_text=f"book-keeper-{office.mark}")
    expect(row).to_contain_text("0 agents")
    someone.look_for_barriers()
    page.get_by_role("button", name="New template").first.click()
    dialog.get_by_label("Name").fill(f"Book Keeper {office.mark}")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    page.keyboard.press("Escape")
    row.get_by_role("link", name="<b>Clerk</b>␣").click()
    page.get_by_role("button", name="Delete the template").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Templates", exact=True)).to_be_visible()
    expect(row).to_be_hidden()


def test_a_template_shows_the_defaults_through_and_says_what_a_save_will_do(
    seat: Seating, office: Office
) -> None:
    template = office.template(SOUL_md="# Soul\n", GUARDRAILS_md="# Rules\n")
    agents = [office.agent(name, template) for name in ("Ada", "Bob", "Cleo")]
    office.put(f"/v1/agents/{agents[0]['id']}", "SOUL.md", "# Mine\n")
    someone = seat()
    someone.expected = {404}
    page = someone.page
    someone.visit(f"/agent-templates/{template['id']}?file=SOUL.md")
    expect(page.get_by_role("link", name="Used by 3 agents")).to_be_visible()
    expect(page.get_by_role("button", name="Delete the template")).to_be_disabled()
    bar = page.get_by_role("form", name="Save")
    expect(bar).to_contain_text("2 agents change at once")
    expect(bar).to_contain_text("1 agent overrides it and keeps its own")
    line(page, "GUARDRAILS.md").click()
    expect(bar).to_contain_text("3 agents will be asked")
    write_over(page, "# Rules\n\n- Never.\n")
    save(page)
    expect(page.get_by_role("link", name=re.compile("Review 3 updates"))).to_have_attribute(
        "href", f"/agent-templates/{template['id']}/review"
    )

    borrowed = line(page, "ROUTER.md")
    expect(borrowed).to_have_accessible_name("ROUTER.md, From the defaults")
    expect(borrowed).to_have_css("content", '"defaults"', pseudo="after")
    borrowed.click()
    expect(page.get_by_role("heading", name="ROUTER.md")).to_be_visible()
    write_over(page, "# Ours\n")
    save(page)
    expect(borrowed).to_have_accessible_name("ROUTER.md, This template’s own")  # noqa: RUF001
    write_over(page, "# Ours, again\n")
    save(page)
    served = office.ask("GET", f"/v1/agents/{agents[1]['id']}/files/ROUTER.md")
    assert served["content"] == "# Ours, again\n"
    page.get_by_role("button", name="Revert to the defaults").click()
    with answered(page, "DELETE", "/files/"):
        page.get_by_role("dialog").get_by_role("button", name="Revert to the defaults").click()
    expect(borrowed).to_have_accessible_name("ROUTER.md, From the defaults")
    expect(page.get_by_role("textbox", name="Text of ROUTER.md")).not_to_contain_text("Ours")
    someone.look_for_barriers()


def test_two_override_the_same_default_at_once(seat: Seating, office: Office) -> None:
    template = office.template()
    one, other = seat(), seat()
    one.expected = other.expected = {404, 409}
    for someone in (one, other):
        someone.visit(f"/agent-templates/{template['id']}?file=ROUTER.md")
    write_over(one.page, "# First\n")
    write_over(other.page, "# Second\n")
    save(one.page)
    other.page.keyboard.press("ControlOrMeta+s")
    dialog = other.page.get_by_role("dialog", name="Two texts of ROUTER.md")
    dialog.get_by_role("group", name="Conflict 1").get_by_label("Both, mine first").check()
    with answered(other.page, "PUT", "/files/"):
        dialog.get_by_role("button", name="Save both").click()
    expect(dialog).to_be_hidden()
    stored = office.ask("GET", f"/v1/templates/{template['id']}/files/ROUTER.md")["content"]
    assert "# First" in stored
    assert "# Second" in stored


def test_the_defaults_are_edited_and_told_from_the_packaged_ones(
    seat: Seating, office: Office
) -> None:
    office.agent("Ada")
    before = office.ask("GET", "/v1/defaults/files/MEMORY_GUIDE.md?raw=true")["content"]
    someone = seat(size=NARROW)
    page = someone.page
    someone.visit("/agent-templates/defaults")
    expect(page.get_by_text("Up to date with version")).to_be_visible()
    line(page, "MEMORY_GUIDE.md").click()
    bar = page.get_by_role("form", name="Save")
    expect(bar).to_contain_text(re.compile(r"agents? changes? at once"))
    write_over(page, before + "\nOne more line.\n")
    bar.get_by_label("Reason (optional)").fill("we learnt something")
    with answered(page, "PUT", "/files/"):
        bar.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile("1 of 11 changed here, and kept"))).to_be_visible()
    page.get_by_role("button", name="History").click()
    panel = page.get_by_role("complementary", name="History")
    expect(panel.get_by_role("listitem").first).to_contain_text("we learnt something")
    wide = "document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth"
    assert page.evaluate(wide) == 0
    someone.look_for_barriers()
    office.put("/v1/defaults", "MEMORY_GUIDE.md", before)


def test_a_member_looks_and_changes_nothing(seat: Seating, office: Office) -> None:
    template = office.template(SOUL_md="# Soul\n")
    someone = seat(office.token_of(office.person("Max Member")))
    someone.visit("/agent-templates")
    expect(someone.page.get_by_role("heading", name="Templates", exact=True)).to_be_visible()
    expect(someone.page.get_by_role("button", name="New template")).to_be_hidden()
    someone.visit(f"/agent-templates/{template['id']}?file=SOUL.md")
    expect(someone.page.get_by_text("Owners and admins change it.")).to_be_visible()
    expect(someone.page.get_by_role("button", name="Rename")).to_be_hidden()
