"""Skills of agents and templates."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.ui.browser import NARROW
from tests.ui.conftest import ApiSetup, OpenPage

_REFUNDS = "---\nname: refunds\ndescription: How to pay back <b>money</b>.\n---\nAsk first.\n"
_INVALID = "---\nname: other\nhomepage: x\n---\n"


def test_skills_of_an_agent_are_listed_with_their_layer_class_digest_and_problems(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    template = api_setup.create_template(**{"skills/refunds/SKILL_md": _REFUNDS})
    agent = api_setup.create_agent("Ada", template)
    url = f"/v1/agents/{agent['id']}"
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{agent['id']}/workspace")
    page.get_by_role("navigation", name="Agent").get_by_role("link", name="Skills").click()
    rows = page.get_by_role("table", name="Skills").get_by_role("row")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("How to pay back <b>money</b>.")
    expect(rows.nth(1)).to_contain_text("valid")
    expect(rows.nth(1)).to_contain_text("template")
    expect(rows.nth(1)).to_contain_text("live")
    [skill] = api_setup.request("GET", f"{url}/skills")["items"]
    digest = rows.nth(1).get_by_title(skill["digest"])
    expect(digest).to_have_text(skill["digest"].removeprefix("sha256:")[:12])
    user.check_accessibility()

    # The list follows files that are written elsewhere.
    api_setup.put_file(url, "skills/broken/SKILL.md", _INVALID)
    expect(rows).to_have_count(3)
    broken = rows.filter(has_text="broken")
    expect(broken).to_contain_text("not offered")
    [problem, *_] = api_setup.request("GET", f"{url}/skills")["items"][0]["problems"]
    expect(broken).to_contain_text(problem)
    api_setup.put_file(url, "skills/refunds/limits.md", "100\n")
    expect(rows.filter(has_text="refunds")).to_contain_text("template, agent")
    user.check_accessibility()
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    expect(rows).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    page.get_by_role("link", name="refunds").click()
    file = "skills%2Frefunds%2FSKILL.md"
    expect(page).to_have_url(f"{user.url}/agents/{agent['id']}/workspace?file={file}")


def test_skills_of_a_template_are_a_tab_beside_its_files(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    template = api_setup.create_template(**{"SOUL_md": "# Soul\n"})
    user = signed_in_page()
    page = user.page
    user.visit(f"/agent-templates/{template['id']}")
    tabs = page.get_by_role("navigation", name="Template")
    expect(tabs.get_by_role("link", name="Files")).to_have_attribute("aria-current", "page")
    tabs.get_by_role("link", name="Skills").click()
    expect(page.get_by_role("heading", name="No skills")).to_be_visible()
    expect(tabs.get_by_role("link", name="Skills")).to_have_attribute("aria-current", "page")
    user.check_accessibility()
    api_setup.put_file(f"/v1/templates/{template['id']}", "skills/refunds/SKILL.md", _REFUNDS)
    row = page.get_by_role("row").filter(has_text="refunds")
    expect(row).to_contain_text("valid")
    row.get_by_role("link", name="refunds").click()
    expect(page.get_by_role("form", name="Save")).to_be_visible()
    expect(tabs.get_by_role("link", name="Files")).to_have_attribute("aria-current", "page")
