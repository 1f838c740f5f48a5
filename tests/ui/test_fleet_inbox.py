"""Inbox and templates of a fleet: groups, true counts and pages."""

from __future__ import annotations

from playwright.sync_api import Browser, Locator, Page, expect
from tests.support import fleet_store
from tests.support.fleet_store import PLATFORM_REVIEWS, REVIEW_COUNT
from tests.support.server_process import ServerProcess
from tests.ui.browser import sign_in, wait_for_response


def group(page: Page, path: str, source: str) -> Locator:
    heading = page.get_by_role("heading", name=f"{path} {source}", exact=True)
    return page.locator("section.inbox-group").filter(has=heading)


def test_an_edit_of_the_defaults_is_one_review_and_every_count_is_true(
    browser: Browser, fleet_server: ServerProcess
) -> None:
    with sign_in(browser, fleet_server) as user:
        page = user.page
        user.visit("/inbox?all")
        all_tab = page.get_by_role("navigation", name="Inbox").get_by_role("link", name="All")
        expect(all_tab).to_contain_text(f"{REVIEW_COUNT:,}")
        sections = page.locator("section.inbox-group")
        expect(sections).to_have_count(1 + len(fleet_store.RULES_EDITED))
        defaults = group(page, "PLATFORM.md", "Defaults")
        expect(defaults).to_contain_text(f"{PLATFORM_REVIEWS} agents")
        with wait_for_response(page, "GET", "/v1/inbox/pins"):
            defaults.get_by_role("button", name="Show more agents").click()
        expect(defaults.get_by_role("listitem")).to_have_count(56)
        expect(defaults).to_contain_text(f"56 of {PLATFORM_REVIEWS}")
        user.check_accessibility()

        rules = group(page, "GUARDRAILS.md", "Team 10")
        with wait_for_response(page, "GET", "/v1/inbox/pins"):
            rules.get_by_role("button", name="3 overrides").click()
        expect(rules.get_by_role("listitem")).to_have_count(fleet_store.FIRST_OWN_OVERRIDES)
        expect(rules.get_by_text("overridden")).to_have_count(fleet_store.FIRST_OWN_OVERRIDES)
        assert not user.errors


def test_templates_show_how_many_updates_wait_for_their_agents(
    browser: Browser, fleet_server: ServerProcess
) -> None:
    with sign_in(browser, fleet_server) as user:
        user.visit("/agent-templates")
        rows = user.page.get_by_role("row")
        for team, count in (("Team 13", 80), ("Team 05", 0), ("Team 20", 40)):
            row = rows.filter(has=user.page.get_by_role("link", name=team, exact=True))
            expect(row.get_by_role("cell").nth(2)).to_contain_text(str(count) if count else "")
        assert not user.errors
