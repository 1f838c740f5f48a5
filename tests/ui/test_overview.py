"""Overview of a fleet: the first page of the console."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect
from tests.support.fleet_store import AGENT_COUNT, PLATFORM_REVIEWS, REVIEW_COUNT
from tests.support.server_process import ServerProcess
from tests.ui.browser import NARROW, WIDE, sign_in
from tests.ui.conftest import ApiSetup, OpenPage


@pytest.mark.parametrize("dark", [False, True])
def test_the_overview_is_the_first_page_and_its_charts_are_tables_for_screen_readers(
    browser: Browser, fleet_server: ServerProcess, dark: bool
) -> None:
    with sign_in(browser, fleet_server, dark=dark) as user:
        page = user.page
        user.visit("/")
        expect(page).to_have_url(re.compile("/overview$"))
        expect(page.get_by_text(f"{AGENT_COUNT:,} agents", exact=True)).to_be_visible()
        tiles = page.get_by_role("region", name="Needs attention")
        expect(tiles.get_by_role("link", name="Updates to review")).to_contain_text(
            f"{REVIEW_COUNT:,}"
        )
        runs = page.get_by_role("table", name="Runs by day and status")
        expect(runs.get_by_role("row")).to_have_count(31)
        drift = page.get_by_role("table", name="Agents by versions behind, for each pinned file")
        platform = drift.get_by_role("row").filter(has_text="PLATFORM.md")
        expect(platform.get_by_role("cell").first).to_have_text(str(AGENT_COUNT - PLATFORM_REVIEWS))
        expect(page.get_by_role("table", name=re.compile("^Average tokens"))).to_have_count(2)
        user.check_accessibility()
        page.get_by_role("button", name="Hour").click()
        hours = page.get_by_role("table", name="Runs by hour and status")
        expect(hours.get_by_role("row")).to_have_count(25)
        assert not user.errors


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_the_overview_fits_its_window(
    browser: Browser, fleet_server: ServerProcess, size: tuple[int, int]
) -> None:
    with sign_in(browser, fleet_server, size=size) as user:
        user.visit("/overview")
        expect(user.page.get_by_role("heading", name="Memory", exact=True)).to_be_visible()
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert user.page.evaluate(overflow) <= 0


def test_the_activity_shows_a_run_that_starts(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    agent = api_setup.create_agent(f"Live {api_setup.suffix}")
    user = signed_in_page()
    user.visit("/overview")
    activity = user.page.get_by_role("region", name="Activity")
    expect(activity.get_by_role("listitem").first).to_be_visible()
    run = api_setup.request("POST", "/v1/runs", {"agentId": agent["id"]})
    link = activity.locator(f'a[href="/runs/{run["runId"]}"]')
    expect(link).to_be_visible()
    api_setup.request("PATCH", f"/v1/runs/{run['runId']}", {"status": "failed"})
    expect(link).to_contain_text("failed")
