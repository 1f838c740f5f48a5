"""Agents: filter, sort, create, rename, change template and human, delete."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, Route, expect
from tests.ui.browser import NARROW, wait_for_response
from tests.ui.conftest import ApiSetup, OpenPage


def _row(page: Page, name: str) -> Any:
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def _find(page: Page, words: str) -> None:
    page.get_by_role("searchbox", name=re.compile("^Filter agents")).fill(words)


def test_agents_are_filtered_and_sorted_and_rows_open_the_workspace(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    mark = api_setup.suffix
    template = api_setup.create_template("Crew", GUARDRAILS_md="# One\n")
    human = api_setup.create_person(f"Zoë Ångström {mark}", email=f"zoe.{mark}@example.com")
    ada = api_setup.create_agent(f"Ada {mark}", template, humanPairId=human["id"])
    bob = api_setup.create_agent(f"Bob {mark}", isShared=True)
    api_setup.put_file(f"/v1/agents/{ada['id']}", "SOUL.md", "# Her own\n")
    api_setup.put_file(f"/v1/templates/{template['id']}", "GUARDRAILS.md", "# Two\n")
    api_setup.request("POST", "/v1/runs", {"agentId": bob["id"], "workflowId": "chat"})
    user = signed_in_page()
    page = user.page
    user.visit("/agents")
    _find(page, f"zoe angstrom {mark}")
    expect(page.get_by_role("table", name="Agents")).to_have_attribute("aria-rowcount", "2")
    expect(_row(page, ada["name"])).to_contain_text(re.compile(r"Crew.*Zoë.*1.*1", re.DOTALL))
    _find(page, mark)
    rows = page.get_by_role("row")
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_contain_text("Ada")
    page.get_by_role("button", name="Last run").click()
    expect(page.get_by_role("columnheader", name="Last run")).to_have_attribute(
        "aria-sort", "descending"
    )
    expect(rows.nth(1)).to_contain_text("running")
    user.check_accessibility()
    page.get_by_label("Updates available").check()
    expect(rows).to_have_count(2)
    expect(page).to_have_url(re.compile(f"q={mark}&updates=1&sort=run&down=1"))
    page.get_by_label("Updates available").uncheck()
    page.get_by_label("Shared or private").select_option("Shared")
    expect(rows.nth(1)).to_contain_text("Bob")
    page.get_by_label("Template", exact=True).select_option(template["id"])
    expect(page.get_by_role("heading", name="No matching agents")).to_be_visible()
    page.get_by_role("button", name="Clear filters").click()
    _find(page, mark)
    api_setup.request("PATCH", f"/v1/agents/{bob['id']}", {"name": f"Bobbie {mark}"})
    expect(_row(page, f"Bobbie {mark}")).to_be_visible()
    _row(page, ada["name"]).get_by_role("cell").nth(2).click(force=True)
    expect(page).to_have_url(re.compile(f"/agents/{ada['id']}/workspace"))


def test_an_agent_is_created_renamed_and_deleted(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    template = api_setup.create_template(
        "Bakery", IDENTITY_md="- **Name:** user\n- **Vibe:** warm\n"
    )
    user = signed_in_page(size=NARROW)
    page = user.page
    user.visit("/agents")
    page.get_by_role("button", name="New agent").click()
    dialog = page.get_by_role("dialog", name="New agent")
    dialog.get_by_label("Name").fill(f"Zoë Müller {api_setup.suffix}")
    expect(dialog.get_by_label("Slug")).to_have_value(f"zoe-muller-{api_setup.suffix}")
    dialog.get_by_label("Template").select_option(template["id"])
    dialog.get_by_role("button", name="Create agent").click()
    expect(page.get_by_role("heading", name=f"Zoë Müller {api_setup.suffix}")).to_be_visible()
    expect(page.get_by_role("link", name="Bakery")).to_be_visible()

    user.visit(f"/agents/zoe-muller-{api_setup.suffix}/settings")
    form = page.get_by_role("form", name="Name")
    form.get_by_label("Name", exact=True).fill(f"Amélie {api_setup.suffix}")
    form.get_by_label("Slug").fill(f"amelie-{api_setup.suffix}")
    with wait_for_response(page, "PATCH", "/v1/agents/"):
        form.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name=f"Amélie {api_setup.suffix}")).to_be_visible()
    identity = api_setup.request("GET", f"/v1/agents/amelie-{api_setup.suffix}/files/IDENTITY.md")[
        "content"
    ]
    assert f"Amélie {api_setup.suffix}" in identity
    assert "**Vibe:** warm" in identity
    user.check_accessibility()
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]

    # The delete event may arrive while the page is still open.
    user.expected_statuses = {404}
    page.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Delete agent")).to_be_disabled()
    dialog.get_by_role("textbox").fill(f"amelie-{api_setup.suffix}")
    with wait_for_response(page, "DELETE", "/v1/agents/"):
        dialog.get_by_role("button", name="Delete agent").click()
    expect(page.get_by_text("Agent deleted")).to_be_visible()
    expect(page).to_have_url(re.compile("/agents$"))
    assert api_setup.http.get(f"/v1/agents/amelie-{api_setup.suffix}").status_code == 404


def test_a_change_before_the_event_stream_opens_is_shown(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent(f"Early {api_setup.suffix}")
    user = signed_in_page()
    page = user.page
    streams: list[Route] = []

    def hold(route: Route) -> None:
        streams.append(route)

    page.route("**/v1/events", hold)
    with page.expect_request("**/v1/events"):
        user.visit(f"/agents/{agent['id']}/settings")
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text(agent["name"])
    name = f"Late {api_setup.suffix}"
    api_setup.request("PATCH", f"/v1/agents/{agent['id']}", {"name": name})
    streams[0].continue_()
    expect(heading).to_contain_text(name)


def test_changing_the_human_rewrites_user_md(signed_in_page: OpenPage, api_setup: ApiSetup) -> None:
    kim = api_setup.create_person("Kim Park", title="Head of support", timezone="Europe/Paris")
    lee = api_setup.create_person("Lee Stone", title="Analyst", pronouns="they/them")
    agent = api_setup.create_agent("Robin", humanPairId=kim["id"])
    before = api_setup.request("GET", f"/v1/agents/{agent['id']}/files/USER.md")["content"]
    assert "Kim Park" in before
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{agent['id']}/settings")
    form = page.get_by_role("form", name="Human")
    form.get_by_label("Works for").select_option(lee["id"])
    with wait_for_response(page, "PATCH", "/v1/agents/"):
        form.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Human: Lee Stone")).to_be_visible()
    after = api_setup.request("GET", f"/v1/agents/{agent['id']}/files/USER.md")["content"]
    assert "Lee Stone" in after
    assert "they/them" in after
    assert "Kim" not in after
    form.get_by_label("Works for").select_option("")
    with wait_for_response(page, "PATCH", "/v1/agents/"):
        form.get_by_role("button", name="Save").click()
    expect(page.get_by_text("No human")).to_be_visible()
    blank = api_setup.request("GET", f"/v1/agents/{agent['id']}/files/USER.md")["content"]
    assert "Lee" not in blank
    assert "—" in blank


def test_changing_the_template_keeps_pins_and_config_is_edited_by_fields(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    old = api_setup.create_template("Old", GUARDRAILS_md="# Old rules\n")
    new = api_setup.create_template("New", GUARDRAILS_md="# New rules\n")
    agent = api_setup.create_agent("Mo", old, config={"color": "blue", "model": "small"})
    agent_url = f"/v1/agents/{agent['id']}"
    user = signed_in_page()
    page = user.page
    user.visit(f"/agents/{agent['id']}/settings")
    form = page.get_by_role("form", name="Template")
    form.get_by_label("Template").select_option(new["id"])
    with wait_for_response(page, "PATCH", "/v1/agents/"):
        form.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name="1 update available")).to_be_visible()
    assert (
        api_setup.request("GET", f"{agent_url}/files/GUARDRAILS.md")["content"] == "# Old rules\n"
    )

    runtime = page.get_by_role("form", name="Runtime")
    runtime.get_by_label("Timezone").fill("Mars/Olympus")
    runtime.get_by_label("Allowed tools").fill("recall\nworkspace_*\n")
    user.expected_statuses = {400}
    runtime.get_by_role("button", name="Save").click()
    expect(runtime.get_by_role("alert")).to_be_visible()
    runtime.get_by_label("Timezone").fill("Europe/Paris")
    runtime.get_by_label("Model").fill("")
    with wait_for_response(page, "PATCH", "/v1/agents/"):
        runtime.get_by_role("button", name="Save").click()
    expect(runtime.get_by_role("button", name="Discard")).to_have_count(0)
    dreaming = page.get_by_role("form", name="Dreaming and git")
    dreaming.get_by_label(re.compile("^Dreaming")).check()
    dreaming.get_by_label(re.compile("^Git")).check()
    with wait_for_response(page, "PATCH", "/v1/agents/"):
        dreaming.get_by_role("button", name="Save").click()
    expect(dreaming.get_by_role("button", name="Discard")).to_have_count(0)
    other_config = page.get_by_role("form", name="Other config")
    other_config.get_by_label("JSON").fill('{"color": ')
    expect(other_config.get_by_role("alert")).to_contain_text("Invalid JSON")
    other_config.get_by_label("JSON").fill('{"color": "green"}')
    with wait_for_response(page, "PATCH", "/v1/agents/"):
        other_config.get_by_role("button", name="Save").click()
    expect(other_config.get_by_role("button", name="Discard")).to_have_count(0)
    config = api_setup.request("GET", agent_url)["config"]
    assert config == {
        "color": "green",
        "timezone": "Europe/Paris",
        "allowedTools": ["recall", "workspace_*"],
        "dreaming": {"enabled": True},
        "workspaceGit": {"enabled": True},
    }


def test_settings_are_read_only_for_members_and_hostile_names_stay_text(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    name = f"<img src=x onerror=alert(1)> \u202egpj.exe {api_setup.suffix} " + "x" * 100
    agent = api_setup.create_agent("Plain", isShared=True)
    api_setup.request("PATCH", f"/v1/agents/{agent['id']}", {"name": name})
    user = signed_in_page(token=api_setup.create_token(api_setup.create_person("Mel")), size=NARROW)
    page = user.page
    user.visit("/agents")
    expect(page.get_by_role("button", name="New agent")).to_be_disabled()
    _find(page, f"gpj {api_setup.suffix}")
    link = page.get_by_role("link", name=re.compile(r"^<img src=x"))
    expect(link).to_contain_text("␣gpj.exe")
    link.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("<img src=x")
    user.visit(f"/agents/{agent['id']}/settings")
    expect(page.get_by_text("only owners and admins can change agents")).to_be_visible()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    expect(page.get_by_role("textbox", name="Slug")).to_be_disabled()
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]


def test_a_member_is_told_that_another_persons_agent_is_private(
    api_setup: ApiSetup, signed_in_page: OpenPage
) -> None:
    agent = api_setup.create_agent("Ada")
    api_setup.put_file(f"/v1/agents/{agent['id']}", "notes/plan.md", "a plan")
    token = api_setup.create_token(api_setup.create_person("Mia Member"))
    user = signed_in_page(token=token)
    user.expected_statuses.add(403)
    user.visit(f"/agents/{agent['id']}/memory")
    notice = user.page.get_by_text("You cannot see this agent's private files.").first
    expect(notice).to_be_visible()
    user.visit(f"/agents/{agent['id']}/workspace")
    expect(user.page.get_by_text("IDENTITY.md").first).to_be_visible()
    expect(user.page.get_by_text("plan.md")).to_have_count(0)
