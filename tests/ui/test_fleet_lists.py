"""Lists of the fleet: filters, counts and pickers that the server answers."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Route, expect
from tests.support.fleet_store import (
    BUSY_AGENT,
    BUSY_COUNT,
    KEY_COUNT,
    PERSON_COUNT,
    RUN_COUNT,
    run_status,
)
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


@pytest.mark.parametrize(
    ("tab", "noun"), [("sessions", "sessions"), ("memory", "memories"), ("items", "items")]
)
def test_lists_of_an_agent_load_page_by_page_to_their_end(
    browser: Browser, fleet_server: ServerProcess, tab: str, noun: str
) -> None:
    with sign_in(browser, fleet_server) as user:
        page = user.page
        user.visit(f"/agents/{BUSY_AGENT}/{tab}")
        count = page.get_by_role("status").filter(has_text=noun)
        for loaded in (50, 100, BUSY_COUNT):
            expect(count).to_have_text(re.compile(rf"^{loaded} of 1[0-9][0-9] {noun}$"))
            if loaded == BUSY_COUNT:
                break
            with page.expect_response(re.compile(rf"/{noun}\?.*cursor=")):
                page.get_by_role("button", name="Load more").click()
        expect(count).to_have_text(f"{BUSY_COUNT} of {BUSY_COUNT} {noun}")
        expect(page.get_by_role("button", name="Load more")).to_have_count(0)
        user.check_accessibility()
        assert not user.errors


def test_items_are_filtered_by_the_start_of_their_key_on_the_server(
    browser: Browser, fleet_server: ServerProcess
) -> None:
    with sign_in(browser, fleet_server) as user:
        page = user.page
        user.visit(f"/agents/{BUSY_AGENT}/items")
        field = page.get_by_role("searchbox", name="Filter by start of key")
        with page.expect_response(re.compile("/items.*prefix=order%2F12$")):
            field.fill("order/12")
        expect(page.get_by_role("list", name="Items").get_by_role("listitem")).to_have_count(10)
        expect(page.get_by_role("status").filter(has_text="items")).to_have_text("10 of 10 items")


def test_deliveries_of_a_webhook_load_page_by_page(
    browser: Browser, fleet_server: ServerProcess
) -> None:
    with sign_in(browser, fleet_server) as user:
        page = user.page
        user.visit("/settings/webhooks")
        page.get_by_role("link", name="hooks.example.com").click()
        count = page.get_by_role("status").filter(has_text="deliveries")
        expect(count).to_have_text(f"50 of {BUSY_COUNT} deliveries")
        with page.expect_response(re.compile(r"/deliveries\?.*cursor=msg_")):
            page.get_by_role("button", name="Load more").click()
        expect(count).to_have_text(f"100 of {BUSY_COUNT} deliveries")
        assert not user.errors


def test_people_and_keys_are_listed_to_their_end(
    browser: Browser, fleet_server: ServerProcess
) -> None:
    with sign_in(browser, fleet_server) as user:
        page = user.page
        user.visit("/settings/people")
        count = page.get_by_role("status").filter(has_text="people")
        expect(count).to_have_text(re.compile(f"^50 of {PERSON_COUNT + 1}|{PERSON_COUNT} people$"))
        with page.expect_response(re.compile(r"/v1/people\?.*cursor=")):
            page.get_by_role("button", name="Load more").click()
        expect(count).to_have_text(re.compile("^100 of "))
        with page.expect_response(re.compile(r"/v1/people\?.*q=person")):
            page.get_by_role("searchbox", name="Filter people").fill("person 249")
        expect(page.get_by_role("row").filter(has_text="Person 249")).to_be_visible()
        expect(page.get_by_role("row").filter(has_text="Person 001")).to_have_count(0)
        user.check_accessibility()
        with page.expect_response(re.compile(r"/v1/keys\?")) as listed:
            user.visit("/settings/keys")
        total = listed.value.json()["total"]
        assert total > KEY_COUNT
        count = page.get_by_role("status").filter(has_text="keys")
        expect(count).to_have_text(f"50 of {total} keys")
        page.get_by_role("button", name="Load more").click()
        expect(count).to_have_text(re.compile("^100 of "))
        assert not user.errors


def test_search_and_palette_name_whose_file_it_is(
    browser: Browser, fleet_server: ServerProcess
) -> None:
    with sign_in(browser, fleet_server) as user:
        page = user.page
        user.visit("/search")
        with wait_for_response(page, "GET", "/v1/search"):
            page.get_by_role("searchbox").fill("weather")
        hit = page.get_by_role("link", name=re.compile("How is the weather"))
        expect(hit.first).to_contain_text("Agent 0000")
        user.check_accessibility()
        page.keyboard.press("ControlOrMeta+k")
        with wait_for_response(page, "GET", "/v1/search"):
            page.get_by_role("combobox", name=re.compile("^Search")).fill("GUARDRAILS")
        results = page.get_by_role("group", name="Search results")
        hit = results.get_by_role("option", name=re.compile("(Team|Agent) [0-9]+:"))
        expect(hit.first).to_be_visible()
        assert not user.errors
