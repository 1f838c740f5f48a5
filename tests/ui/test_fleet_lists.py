"""Lists of the fleet: filters, counts and pickers that the server answers."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Route, expect
from tests.support.fleet_store import RUN_COUNT, run_status
from tests.support.server_process import ServerProcess
from tests.ui.browser import sign_in, wait_for_response

from carrel.core.runs import RunStatus


def test_a_picker_searches_people_on_the_server(
    browser: Browser, fleet_server: ServerProcess
) -> None:
    with sign_in(browser, fleet_server) as user:
        page = user.page
        user.visit("/settings/audit")
        field = page.get_by_role("combobox", name="Author")
        with wait_for_response(page, "GET", "/v1/people"):
            field.click()
        options = page.get_by_role("listbox", name="Author").get_by_role("option")
        expect(options.last).to_have_text(re.compile("^2[0-9]+ more"))
        searches: list[Route] = []

        def hold(route: Route) -> None:
            searches.append(route)

        page.route(re.compile(r"/v1/people\?.*q="), hold)
        with page.expect_request(re.compile(r"/v1/people\?.*q=")):
            field.fill("person 249")
        field.press("Enter")  # Nothing is chosen before the server answers.
        expect(field).to_have_value("person 249")
        searches[0].continue_()
        expect(options).to_have_count(1)
        user.check_accessibility()
        field.press("Enter")
        expect(field).to_have_value("Person 249")
        expect(page.get_by_text("No matching entries")).to_be_visible()
        assert not user.errors


def test_runs_are_filtered_and_counted_by_the_server(
    browser: Browser, fleet_server: ServerProcess
) -> None:
    failed = sum(run_status(number) is RunStatus.FAILED for number in range(RUN_COUNT))
    with sign_in(browser, fleet_server) as user:
        page = user.page
        user.visit("/runs")
        status = page.get_by_role("status").filter(has_text="runs")
        expect(status).to_have_text(f"50 of {RUN_COUNT:,} runs")
        with wait_for_response(page, "POST", "/graphql"):
            page.get_by_label("Status").select_option("failed")
        expect(status).to_have_text(f"50 of {failed:,} runs")
        with wait_for_response(page, "POST", "/graphql"):
            page.get_by_role("button", name="Load more").click()
        expect(status).to_have_text(f"100 of {failed:,} runs")
        with wait_for_response(page, "POST", "/graphql"):
            page.get_by_label("To").fill("2001-01-01")
        expect(page.get_by_text("No matching runs.")).to_be_visible()
        user.check_accessibility()
        assert not user.errors


def test_the_audit_log_is_filtered_by_the_server_and_kept_in_the_url(
    browser: Browser, fleet_server: ServerProcess
) -> None:
    with sign_in(browser, fleet_server) as user:
        page = user.page
        user.visit("/settings/audit")
        table = page.get_by_role("table", name="Audit log")
        expect(page.get_by_role("status").filter(has_text=" of ")).to_have_text(
            re.compile(r"^100 of [1-9],[0-9]{3}$")
        )
        with wait_for_response(page, "GET", "/v1/audit"):
            page.get_by_label("Action").select_option("write files")
        expect(table.get_by_role("link", name="Defaults: PLATFORM.md").first).to_be_visible()
        with wait_for_response(page, "GET", "/v1/audit"):
            page.get_by_label("Records").select_option("template")
        expect(table.get_by_role("link", name="Team 16: GUARDRAILS.md").first).to_be_visible()
        expect(page).to_have_url(re.compile("action=write\\+files&object=template$"))
        user.check_accessibility()
        with page.expect_download() as download:
            page.get_by_role("link", name="Export CSV").click()
        text = download.value.path().read_text("utf-8")
        assert text.startswith("at,by,") and "GUARDRAILS.md" in text
        assert not user.errors
