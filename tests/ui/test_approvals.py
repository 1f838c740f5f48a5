"""Approvals: live list, literal input, one decision per call."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Route, expect
from tests.ui.conftest import ApiSetup, OpenPage

NASTY = "rm -r old\nls \u202ehidden\u200b <b>bold</b>"


def _agent_with_approvals(api_setup: ApiSetup, name: str = "Marco", **more: Any) -> Any:
    """An agent whose calls need approval."""
    sandbox = api_setup.request(
        "POST", "/accounts/me/sandboxes", {"name": f"asks {api_setup.suffix}"}
    )
    workspace = api_setup.request(
        "POST", "/accounts/me/workspaces", {"name": f"notes {api_setup.suffix}"}
    )
    attached = {"name": "notes", "workspaceId": workspace["workspaceId"]}
    config = {"sandbox": sandbox["sandboxId"], "workspaces": [attached]}
    return api_setup.create_agent(name, config=config, **more)


def _call(api_setup: ApiSetup, agent: Any, tool: str, **arguments: str) -> Any:
    body = {"arguments": arguments}
    return api_setup.request("POST", f"/v1/agents/{agent['id']}/tools/{tool}", body)["approval"]


def test_a_pending_call_appears_live_and_is_denied_with_a_reason(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    user = signed_in_page()
    page, agent = user.page, _agent_with_approvals(api_setup, f"Marco {api_setup.suffix}")
    user.visit("/approvals")
    expect(page.get_by_role("img", name=re.compile("^Connected"))).to_be_visible()
    _call(api_setup, agent, "bash", command=NASTY)
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
    user.check_accessibility()
    page.get_by_label("Reason").fill("Not on Fridays")
    page.get_by_role("button", name="Deny").click()
    outcome = page.get_by_role("region", name="Result")
    expect(outcome).to_contain_text("Denied, not run.")
    expect(outcome).to_contain_text("Owner decided")
    expect(row).to_have_count(0)
    page.get_by_role("navigation", name="Approvals").get_by_text("Decided").click()
    page.get_by_role("link", name=agent["name"]).first.click()
    expect(outcome).to_contain_text("Not on Fridays")
    expect(page.get_by_role("region", name="Response to the model")).to_contain_text(
        "denied by a person"
    )


def test_an_approved_call_runs_once_and_shows_its_result(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    user = signed_in_page()
    page, agent = user.page, _agent_with_approvals(api_setup)
    approval = _call(api_setup, agent, "write", file_path="plan.md", content="Ship it.")
    user.visit(f"/approvals/{approval['id']}")
    page.get_by_role("button", name="Approve").click()
    outcome = page.get_by_role("region", name="Result")
    expect(outcome).to_contain_text("Approved and run.")
    expect(outcome).to_contain_text("Wrote plan.md")


def test_an_approved_command_shows_its_structured_result(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    user = signed_in_page()
    page, agent = user.page, _agent_with_approvals(api_setup)
    approval = _call(api_setup, agent, "bash", command="echo x > 'a b.txt'; exit 3")
    user.visit(f"/approvals/{approval['id']}")
    page.get_by_role("button", name="Approve").click()
    result = page.get_by_role("region", name="Tool outcome", exact=True)
    expect(result).to_contain_text("Exit code3")
    expect(result).to_contain_text(re.compile(r"Duration\d+\.\d\d s"))
    expect(result).to_contain_text("created a b.txt version 1")
    result.get_by_text("As JSON").click()
    json = page.get_by_role("region", name="Tool outcome as JSON")
    expect(json).to_contain_text('"exitCode": 3')
    user.check_accessibility()
    result.get_by_role("link", name="a b.txt").click()
    expect(page).to_have_url(re.compile(rf"/workspaces/{approval['workspaceId']}\?file=a"))
    expect(page.get_by_role("heading", name="a b.txt")).to_be_visible()


def test_a_long_call_is_approved_only_after_it_was_shown_whole(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    user = signed_in_page()
    page, agent = user.page, _agent_with_approvals(api_setup)
    text = "echo ok\n" * 3000 + "rm -r \u2800\ufe01end"
    approval = _call(api_setup, agent, "bash", command=text)
    user.visit(f"/approvals/{approval['id']}")
    expect(page.get_by_role("button", name="Deny")).to_be_enabled()
    expect(page.get_by_role("button", name="Approve")).to_be_disabled()
    page.get_by_role("button", name="Show the whole call").click()
    expect(page.get_by_role("region", name="command")).to_contain_text("rm -r U+2800U+FE01end")
    expect(page.get_by_role("button", name="Approve")).to_be_enabled()


def test_late_decisions_show_why_they_were_refused(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    user = signed_in_page()
    user.expected_statuses = {409, 410}
    page, agent = user.page, _agent_with_approvals(api_setup)
    first = _call(api_setup, agent, "bash", command="ls")
    second = _call(api_setup, agent, "bash", command="pwd")

    def decide_first(route: Route) -> None:
        if route.request.method == "POST":
            decision = {"approved": False, "reason": "I was here first"}
            api_setup.request("POST", f"/v1/approvals/{first['id']}", decision)
        route.continue_()

    def answer_expired(route: Route) -> None:
        body = {"error": "gone", "message": "no answer in time; the call is not run"}
        if route.request.method == "POST":
            route.fulfill(status=410, json=body)
        else:
            route.continue_()

    page.route(f"**/v1/approvals/{first['id']}", decide_first)
    page.route(f"**/v1/approvals/{second['id']}", answer_expired)
    user.visit(f"/approvals/{first['id']}")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Already denied.")).to_be_visible()
    expect(page.get_by_role("region", name="Result")).to_contain_text("I was here first")
    user.visit(f"/approvals/{second['id']}")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("This approval has expired.")).to_be_visible()


def test_members_decide_only_for_their_own_agents(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    mia = api_setup.create_person("Mia")
    own_approval = _call(
        api_setup, _agent_with_approvals(api_setup, humanPairId=mia["id"]), "bash", command="ls"
    )
    other_agent = _agent_with_approvals(api_setup, isShared=True)
    other_approval = _call(api_setup, other_agent, "bash", command="ls")
    user = signed_in_page(api_setup.create_token(mia))
    page = user.page
    user.visit(f"/approvals/{other_approval['id']}")
    expect(page.get_by_text("Only owners, admins and the agent")).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    user.visit(f"/approvals/{own_approval['id']}")
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("region", name="Result")).to_contain_text("Mia decided")
