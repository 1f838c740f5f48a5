"""Reviews for many agents of a fleet: a part first, the rest, declines and roll backs."""

from __future__ import annotations

import re
from typing import Any

import httpx
from playwright.sync_api import Browser, Page, expect
from tests.support.fleet_store import AGENTS_PER_TEMPLATE, FIRST_OWN_OVERRIDES
from tests.support.server_process import TOKEN, ServerProcess
from tests.ui.browser import sign_in, wait_for_response

RULES = "GUARDRAILS.md"
POLICY = "policies/refunds.md"


def request(server: ServerProcess, method: str, path: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    response = httpx.request(method, server.url + path, json=body, headers=headers, timeout=60)
    assert response.is_success, response.text
    return response.json() if response.content else None


def confirm(page: Page, name: str, path: str) -> None:
    with wait_for_response(page, "POST", path):
        page.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()


def test_a_share_is_accepted_then_the_rest_and_all_of_it_is_rolled_back(
    browser: Browser, own_fleet_server: ServerProcess
) -> None:
    template = request(own_fleet_server, "GET", "/v1/templates/team-13")["id"]
    versions = f"/v1/templates/{template}/pins/{RULES}/versions"
    before = request(own_fleet_server, "GET", versions)
    with sign_in(browser, own_fleet_server) as user:
        page = user.page
        user.visit(f"/agent-templates/{template}/review?file={RULES}")
        expect(page.get_by_role("heading", name="40 agents to update")).to_be_visible()
        page.get_by_label("Accept first for").select_option("25 % of the agents")
        page.get_by_role("button", name="Accept for this part").click()
        expect(page.get_by_role("dialog")).to_contain_text("25 % of the agents that inherit")
        confirm(page, "Accept update", "/accept")
        results = page.get_by_role("region", name="Results")
        expect(results).to_contain_text("10 accepted")
        expect(page.get_by_role("heading", name="30 agents to update")).to_be_visible()
        bar = page.get_by_role("region", name=f"Versions of {RULES} in use")
        expect(bar.get_by_role("listitem").first).to_have_text(re.compile(r"\(latest\): 10$"))
        user.check_accessibility()

        page.get_by_label("Accept first for").select_option("a number of agents")
        page.get_by_role("spinbutton", name="Number of agents").fill("12")
        page.get_by_role("button", name="Accept for this part").click()
        confirm(page, "Accept update", "/accept")
        expect(page.get_by_role("heading", name="28 agents to update")).to_be_visible()
        page.get_by_label("Accept first for").select_option("all agents")
        page.get_by_role("button", name="Accept for all 28 agents").click()
        confirm(page, "Accept update", "/accept")
        expect(results).to_contain_text(f"{AGENTS_PER_TEMPLATE} accepted")
        accepted = request(own_fleet_server, "GET", versions)
        assert [item["agents"] for item in accepted["versions"]] == [AGENTS_PER_TEMPLATE]

        user.visit("/inbox?done")
        for rows_left in (2, 1, 0):
            page.get_by_role("button", name="Roll back", exact=True).first.click()
            confirm(page, "Roll back", "/rollback")
            button = page.get_by_role("button", name="Roll back", exact=True)
            expect(button).to_have_count(rows_left)
        assert request(own_fleet_server, "GET", versions) == before
        assert sum(item["overridden"] for item in before["versions"]) == FIRST_OWN_OVERRIDES
        assert not user.errors


def test_a_removal_is_declined_for_all_and_the_template_says_who_and_why(
    browser: Browser, own_fleet_server: ServerProcess
) -> None:
    rule = {"classes": [{"pattern": "policies/**", "class": "pinned"}]}
    request(own_fleet_server, "PUT", "/v1/policy", rule)
    template = request(own_fleet_server, "GET", "/v1/templates/team-20")["id"]
    url = f"/v1/templates/{template}"
    text = request(own_fleet_server, "PUT", f"{url}/files/{POLICY}", {"content": "Refund all."})
    sha256 = text["sha256"].removeprefix("sha256:")
    request(own_fleet_server, "POST", f"{url}/pins/{POLICY}/accept", {"sha256": sha256})
    request(own_fleet_server, "DELETE", f"{url}/files/{POLICY}")
    with sign_in(browser, own_fleet_server) as user:
        page = user.page
        user.visit(f"/agent-templates/{template}/review?file={POLICY}")
        expect(page.get_by_role("button", name="Accept removal for all 40 agents")).to_be_enabled()
        page.get_by_role("button", name="Decline for all").click()
        page.get_by_label("Reason").fill("Still needed")
        user.check_accessibility()
        confirm(page, "Decline update", "/decline")
        expect(page.get_by_role("region", name="Results")).to_contain_text("40 declined")

        user.visit(f"/agent-templates/{template}")
        with wait_for_response(page, "GET", "/v1/reviews"):
            page.get_by_role("link", name="Updates", exact=True).click()
        row = page.get_by_role("listitem").filter(has_text="Still needed")
        expect(row).to_contain_text(f"{AGENTS_PER_TEMPLATE} agents")
        expect(row).to_contain_text(POLICY)
        bar = page.get_by_role("region", name=f"Versions of {RULES} in use")
        expect(bar.get_by_role("listitem").first).to_be_visible()
        user.check_accessibility()
        user.visit("/agent-templates/defaults/updates")
        expect(bar.get_by_role("listitem").first).to_be_visible()
        assert not user.errors


def test_the_agents_with_a_tag_get_an_update_first(
    browser: Browser, own_fleet_server: ServerProcess
) -> None:
    template = request(own_fleet_server, "GET", "/v1/templates/team-11")["id"]
    versions = f"/v1/templates/{template}/pins/{RULES}/versions"
    with sign_in(browser, own_fleet_server) as user:
        page = user.page
        user.visit(f"/agent-templates/{template}/review?file={RULES}")
        page.get_by_label("Accept first for").select_option("agents with a tag")
        expect(page.get_by_role("button", name=re.compile("^Accept for"))).to_be_disabled()
        page.get_by_label("Tag", exact=True).select_option("vip")
        page.get_by_role("button", name="Accept for this part").click()
        expect(page.get_by_role("dialog")).to_contain_text("agents with the tag vip")
        confirm(page, "Accept update", "/accept")
        expect(page.get_by_role("region", name="Results")).to_contain_text("accepted")
        counted = request(own_fleet_server, "GET", versions)
        latest = [v for v in counted["versions"] if v["sha256"] == counted["offeredSha256"]]
        assert 0 < latest[0]["agents"] < AGENTS_PER_TEMPLATE
        assert not user.errors
