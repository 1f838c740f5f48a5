"""Account settings: its name, rotated keys and invitations; shortcuts and unknown pages."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path as File

import httpx
from playwright.sync_api import Browser, expect
from tests.support.server_process import serving
from tests.ui.browser import sign_in, wait_for_response
from tests.ui.conftest import ApiSetup, OpenPage


def test_the_account_is_renamed(browser: Browser, tmp_path: File) -> None:
    with serving(tmp_path) as server, sign_in(browser, server) as user:
        page = user.page
        user.visit("/settings/account")
        page.get_by_label("Name").fill("Meridian")
        page.get_by_role("link", name="Templates").click()
        question = page.get_by_role("dialog", name="Discard unsaved changes?")
        question.get_by_role("button", name="Cancel").click()
        with wait_for_response(page, "PATCH", "/v1/tenants/me"):
            page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("banner")).to_contain_text("Meridian")
        user.check_accessibility()
        assert not user.errors


def test_a_rotated_key_and_its_successor_both_work(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    name = f"runtime {api_setup.suffix}"
    body = {"name": name, "kind": "service"}
    ends = (datetime.now(UTC) + timedelta(minutes=30)).isoformat()
    old = api_setup.request("POST", "/v1/keys", {**body, "expiresAt": ends})["key"]
    api_setup.request("POST", "/v1/keys", {**body, "name": f"endless {api_setup.suffix}"})
    user = signed_in_page()
    page = user.page
    user.visit("/settings/keys")
    page.get_by_role("button", name=f"Rotate {name}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Both work for one hour")
    user.check_accessibility()
    with wait_for_response(page, "POST", "/rotate"):
        dialog.get_by_role("button", name="Rotate").click()
    new = page.get_by_role("status", name="API key").inner_text()
    assert new != old
    for key in (old, new):
        head = {"Authorization": f"Bearer {key}"}
        assert httpx.get(f"{user.url}/v1/host/workspace/files", headers=head).is_success
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_role("button", name=f"Rotate {name}")).to_have_count(2)
    page.get_by_role("button", name=f"Rotate endless {api_setup.suffix}").click()
    expect(dialog).to_contain_text("lives longer than your session")
    user.check_accessibility()


def test_a_new_person_is_invited_by_a_link_that_signs_them_in(
    signed_in_page: OpenPage, api_setup: ApiSetup
) -> None:
    user = signed_in_page()
    page = user.page
    user.visit("/settings/people")
    page.get_by_role("button", name="Add person").click()
    form = page.get_by_role("dialog", name="Add person")
    form.get_by_label("Name").fill(f"Nora {api_setup.suffix}")
    form.get_by_label("Email").fill(f"nora.{api_setup.suffix}@example.com")
    form.get_by_label("Invite with a sign-in link").check()
    form.get_by_role("button", name="Add").click()
    invite = page.get_by_role("dialog", name=re.compile("^Invite Nora"))
    invite.get_by_role("button", name="Create link").click()
    link = page.get_by_role("status", name="Sign-in link").inner_text()
    code = link.partition("#code=")[2]
    assert api_setup.request("POST", "/v1/sign-in", {"code": code})["token"]


def test_a_question_mark_lists_the_shortcuts(signed_in_page: OpenPage) -> None:
    user = signed_in_page()
    page = user.page
    user.visit("/settings/people")
    expect(page.get_by_role("heading", name="People")).to_be_visible()
    page.keyboard.press("?")
    shortcuts = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(shortcuts).to_contain_text("⌘S or Ctrl S")
    user.check_accessibility()
    page.keyboard.press("Escape")
    expect(shortcuts).to_have_count(0)
    user.visit("/search")
    query = page.locator("main input").first
    query.press("?")
    expect(query).to_have_value("?")
    expect(shortcuts).to_have_count(0)


def test_an_unknown_page_is_a_page_in_a_browser_and_json_elsewhere(
    signed_in_page: OpenPage,
) -> None:
    user = signed_in_page()
    user.expected_statuses = {404}
    page = user.page
    response = page.goto(f"{user.url}/nope")
    assert response is not None and response.status == 404
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    user.check_accessibility()
    for accept, path in (("*/*", "/nope"), ("text/html", "/v1/nope")):
        answer = httpx.get(user.url + path, headers={"Accept": accept})
        assert answer.headers["content-type"] == "application/json"
        assert answer.status_code in {401, 404}
