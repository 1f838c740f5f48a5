"""The agents: found among ten thousand, made, renamed, moved, paired, deleted."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect
from tests.desk.browsing import NARROW, answered
from tests.desk.conftest import Office, Seating


def _row(page: Page, name: str) -> Any:
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=True))


def _find(page: Page, words: str) -> None:
    page.get_by_role("searchbox", name=re.compile("^Find an agent")).fill(words)


def test_agents_are_found_sorted_and_filtered_by_what_one_knows_of_them(
    seat: Seating, office: Office
) -> None:
    mark = office.mark
    template = office.template("Crew", GUARDRAILS_md="# One\n")
    human = office.person(f"Zoë Ångström {mark}", email=f"zoe.{mark}@example.com")
    ada = office.agent(f"Ada {mark}", template, humanPairId=human["id"])
    bob = office.agent(f"Bob {mark}", isShared=True)
    office.put(f"/v1/agents/{ada['id']}", "SOUL.md", "# Her own\n")
    office.put(f"/v1/templates/{template['id']}", "GUARDRAILS.md", "# Two\n")
    office.ask("POST", "/v1/runs", {"agentId": bob["id"], "workflowId": "chat"})
    someone = seat()
    page = someone.page
    someone.visit("/agents")
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
    someone.look_for_barriers()
    page.get_by_label("Updates waiting").check()
    expect(rows).to_have_count(2)
    expect(page).to_have_url(re.compile(f"q={mark}&updates=1&sort=run&down=1"))
    page.get_by_label("Updates waiting").uncheck()
    page.get_by_label("Shared or private").select_option("Shared")
    expect(rows.nth(1)).to_contain_text("Bob")
    page.get_by_label("Template", exact=True).select_option(template["id"])
    expect(page.get_by_role("heading", name="No agent is like that")).to_be_visible()
    page.get_by_role("button", name="Show all agents").click()
    _find(page, mark)
    office.ask("PATCH", f"/v1/agents/{bob['id']}", {"name": f"Bobbie {mark}"})
    expect(_row(page, f"Bobbie {mark}")).to_be_visible()
    _row(page, ada["name"]).get_by_role("cell").nth(2).click(force=True)
    expect(page).to_have_url(re.compile(f"/agents/{ada['id']}/workspace"))


def test_an_agent_is_made_renamed_and_deleted(seat: Seating, office: Office) -> None:
    template = office.template("Bakery", IDENTITY_md="- **Name:** someone\n- **Vibe:** warm\n")
    someone = seat(size=NARROW)
    page = someone.page
    someone.visit("/agents")
    page.get_by_role("button", name="New agent").click()
    dialog = page.get_by_role("dialog", name="New agent")
    dialog.get_by_label("Name").fill(f"Zoë Müller {office.mark}")
    expect(dialog.get_by_label("Slug")).to_have_value(f"zoe-muller-{office.mark}")
    dialog.get_by_label("Template").select_option(template["id"])
    dialog.get_by_role("button", name="Create the agent").click()
    expect(page.get_by_role("heading", name=f"Zoë Müller {office.mark}")).to_be_visible()
    expect(page.get_by_role("link", name="Bakery")).to_be_visible()

    someone.visit(f"/agents/zoe-muller-{office.mark}/settings")
    form = page.get_by_role("form", name="Name")
    form.get_by_label("Name", exact=True).fill(f"Amélie {office.mark}")
    form.get_by_label("Slug").fill(f"amelie-{office.mark}")
    with answered(page, "PATCH", "/v1/agents/"):
        form.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name=f"Amélie {office.mark}")).to_be_visible()
    identity = office.ask("GET", f"/v1/agents/amelie-{office.mark}/files/IDENTITY.md")["content"]
    assert f"Amélie {office.mark}" in identity
    assert "**Vibe:** warm" in identity
    someone.look_for_barriers()
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]

    # The event of its end may come while the page still stands on it.
    someone.expected = {404}
    page.get_by_role("button", name="Delete…").click()
    gone = page.get_by_role("dialog")
    expect(gone.get_by_role("button", name="Delete for good")).to_be_disabled()
    gone.get_by_role("textbox").fill(f"amelie-{office.mark}")
    with answered(page, "DELETE", "/v1/agents/"):
        gone.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text("The agent is deleted.")).to_be_visible()
    expect(page).to_have_url(re.compile("/agents$"))
    assert office.http.get(f"/v1/agents/amelie-{office.mark}").status_code == 404


def test_reassigning_the_human_rewrites_what_the_agent_knows_of_them(
    seat: Seating, office: Office
) -> None:
    kim = office.person("Kim Park", title="Head of support", timezone="Europe/Paris")
    lee = office.person("Lee Stone", title="Analyst", pronouns="they/them")
    agent = office.agent("Robin", humanPairId=kim["id"])
    before = office.ask("GET", f"/v1/agents/{agent['id']}/files/USER.md")["content"]
    assert "Kim Park" in before
    someone = seat()
    page = someone.page
    someone.visit(f"/agents/{agent['id']}/settings")
    form = page.get_by_role("form", name="Human")
    form.get_by_label("Works for").select_option(lee["id"])
    with answered(page, "PATCH", "/v1/agents/"):
        form.get_by_role("button", name="Save").click()
    expect(page.get_by_text("works for Lee Stone")).to_be_visible()
    after = office.ask("GET", f"/v1/agents/{agent['id']}/files/USER.md")["content"]
    assert "Lee Stone" in after
    assert "they/them" in after
    assert "Kim" not in after
    form.get_by_label("Works for").select_option("")
    with answered(page, "PATCH", "/v1/agents/"):
        form.get_by_role("button", name="Save").click()
    expect(page.get_by_text("works for nobody in particular")).to_be_visible()
    blank = office.ask("GET", f"/v1/agents/{agent['id']}/files/USER.md")["content"]
    assert "Lee" not in blank
    assert "—" in blank


def test_moving_to_another_template_keeps_the_pins_and_the_config_has_fields(
    seat: Seating, office: Office
) -> None:
    old = office.template("Old", GUARDRAILS_md="# Old rules\n")
    new = office.template("New", GUARDRAILS_md="# New rules\n")
    agent = office.agent("Mo", old, config={"color": "blue", "model": "small"})
    place = f"/v1/agents/{agent['id']}"
    someone = seat()
    page = someone.page
    someone.visit(f"/agents/{agent['id']}/settings")
    form = page.get_by_role("form", name="Template")
    form.get_by_label("Template").select_option(new["id"])
    with answered(page, "PATCH", "/v1/agents/"):
        form.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name="1 update waits")).to_be_visible()
    assert office.ask("GET", f"{place}/files/GUARDRAILS.md")["content"] == "# Old rules\n"

    runtime = page.get_by_role("form", name="Runtime")
    runtime.get_by_label("Timezone").fill("Mars/Olympus")
    runtime.get_by_label("Allowed tools").fill("recall\nworkspace_*\n")
    someone.expected = {400}
    runtime.get_by_role("button", name="Save").click()
    expect(runtime.get_by_role("alert")).to_be_visible()
    runtime.get_by_label("Timezone").fill("Europe/Paris")
    runtime.get_by_label("Model").fill("")
    with answered(page, "PATCH", "/v1/agents/"):
        runtime.get_by_role("button", name="Save").click()
    expect(runtime.get_by_role("button", name="Undo")).to_have_count(0)
    habits = page.get_by_role("form", name="Dreaming and git")
    habits.get_by_label(re.compile("^Dreams")).check()
    habits.get_by_label(re.compile("^Git")).check()
    with answered(page, "PATCH", "/v1/agents/"):
        habits.get_by_role("button", name="Save").click()
    expect(habits.get_by_role("button", name="Undo")).to_have_count(0)
    rest = page.get_by_role("form", name="Other config")
    rest.get_by_label("JSON").fill('{"color": ')
    expect(rest.get_by_role("alert")).to_contain_text("not JSON")
    rest.get_by_label("JSON").fill('{"color": "green"}')
    with answered(page, "PATCH", "/v1/agents/"):
        rest.get_by_role("button", name="Save").click()
    expect(rest.get_by_role("button", name="Undo")).to_have_count(0)
    config = office.ask("GET", place)["config"]
    assert config == {
        "color": "green",
        "timezone": "Europe/Paris",
        "allowedTools": ["recall", "workspace_*"],
        "dreaming": {"enabled": True},
        "workspaceGit": {"enabled": True},
    }


def test_members_read_settings_and_hostile_names_stay_text(seat: Seating, office: Office) -> None:
    name = f"<img src=x onerror=alert(1)> \u202egpj.exe {office.mark} " + "x" * 100
    agent = office.agent("Plain")
    office.ask("PATCH", f"/v1/agents/{agent['id']}", {"name": name})
    someone = seat(token=office.token_of(office.person("Mel")), size=NARROW)
    page = someone.page
    someone.visit("/agents")
    expect(page.get_by_role("button", name="New agent")).to_be_disabled()
    _find(page, f"gpj {office.mark}")
    link = page.get_by_role("link", name=re.compile(r"^<img src=x"))
    expect(link).to_contain_text("␣gpj.exe")
    link.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("<img src=x")
    someone.visit(f"/agents/{agent['id']}/settings")
    expect(page.get_by_text("Only an owner or an admin changes agents")).to_be_visible()
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    expect(page.get_by_role("textbox", name="Slug")).to_be_disabled()
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
