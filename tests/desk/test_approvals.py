"""The inbox of calls that wait for a yes: live, inert, and answered once."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Route, expect
from tests.desk.conftest import Office, Seating

NASTY = "rm -r old\nls \u202ehidden\u200b <b>bold</b>"


def _asking(office: Office, name: str = "Marco", **more: Any) -> Any:
    """An agent that has to ask before it does anything."""
    sandbox = office.ask("POST", "/accounts/me/sandboxes", {"name": f"asks {office.mark}"})
    workspace = office.ask("POST", "/accounts/me/workspaces", {"name": f"notes {office.mark}"})
    attached = {"name": "notes", "workspaceId": workspace["workspaceId"]}
    config = {"sandbox": sandbox["sandboxId"], "workspaces": [attached]}
    return office.agent(name, config=config, **more)


def _call(office: Office, agent: Any, tool: str, **arguments: str) -> Any:
    body = {"arguments": arguments}
    return office.ask("POST", f"/v1/agents/{agent['id']}/tools/{tool}", body)["approval"]


def test_a_call_appears_by_itself_and_is_denied_with_a_reason(
    seat: Seating, office: Office
) -> None:
    someone = seat()
    page, agent = someone.page, _asking(office, f"Marco {office.mark}")
    someone.visit("/approvals")
    expect(page.get_by_role("img", name=re.compile("^Live"))).to_be_visible()
    _call(office, agent, "bash", command=NASTY)
    row = page.get_by_role("list", name="Approvals").get_by_role("link", name=agent["name"])
    expect(row).to_contain_text("expires in 23 hours")
    for _ in range(page.get_by_role("list", name="Approvals").get_by_role("link").count()):
        page.keyboard.press("j")
    page.keyboard.press("k")
    row.focus()
    page.keyboard.press("Enter")
    command = page.get_by_role("region", name="command")
    expect(command).to_contain_text("rm -r old↵")
    expect(command).to_contain_text("U+202Ehidden")
    expect(command).to_contain_text("U+200B <b>bold</b>")
    someone.look_for_barriers()
    page.get_by_label("Reason").fill("Not on Fridays")
    page.get_by_role("button", name="Deny").click()
    outcome = page.get_by_role("region", name="What became of it")
    expect(outcome).to_contain_text("It was denied and did not run.")
    expect(outcome).to_contain_text("Owner answered")
    expect(row).to_have_count(0)
    page.get_by_role("navigation", name="Which approvals").get_by_text("Answered").click()
    page.get_by_role("link", name=agent["name"]).first.click()
    expect(outcome).to_contain_text("Not on Fridays")
    expect(page.get_by_role("region", name="What the model was told")).to_contain_text(
        "denied by a person"
    )


def test_what_is_approved_runs_once_and_tells_what_came_of_it(
    seat: Seating, office: Office
) -> None:
    someone = seat()
    page, agent = someone.page, _asking(office)
    asked = _call(office, agent, "write", file_path="plan.md", content="Ship it.")
    someone.visit(f"/approvals/{asked['id']}")
    page.get_by_role("button", name="Approve").click()
    outcome = page.get_by_role("region", name="What became of it")
    expect(outcome).to_contain_text("It was approved and ran.")
    expect(outcome).to_contain_text("Wrote plan.md")


def test_whoever_answers_too_late_is_told_why(seat: Seating, office: Office) -> None:
    someone = seat()
    someone.expected = {409, 410}
    page, agent = someone.page, _asking(office)
    first = _call(office, agent, "bash", command="ls")
    second = _call(office, agent, "bash", command="pwd")

    def quicker(route: Route) -> None:
        if route.request.method == "POST":
            said = {"approved": False, "reason": "I was here first"}
            office.ask("POST", f"/v1/approvals/{first['id']}", said)
        route.continue_()

    def expired(route: Route) -> None:
        told = {"error": "gone", "message": "nobody answered in time, and it is not run"}
        if route.request.method == "POST":
            route.fulfill(status=410, json=told)
        else:
            route.continue_()

    page.route(f"**/v1/approvals/{first['id']}", quicker)
    page.route(f"**/v1/approvals/{second['id']}", expired)
    someone.visit(f"/approvals/{first['id']}")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Somebody was quicker: it was denied before.")).to_be_visible()
    expect(page.get_by_role("region", name="What became of it")).to_contain_text("I was here first")
    someone.visit(f"/approvals/{second['id']}")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Too late: nobody answered in time")).to_be_visible()


def test_members_answer_for_the_agents_that_work_for_them_only(
    seat: Seating, office: Office
) -> None:
    mia = office.person("Mia")
    theirs = _call(office, _asking(office, humanPairId=mia["id"]), "bash", command="ls")
    others = _call(office, _asking(office), "bash", command="ls")
    someone = seat(office.token_of(mia))
    page = someone.page
    someone.visit(f"/approvals/{others['id']}")
    expect(page.get_by_text("Owners, admins and the person whom")).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    someone.visit(f"/approvals/{theirs['id']}")
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("region", name="What became of it")).to_contain_text("Mia answered")
