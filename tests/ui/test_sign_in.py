"""Sign-in by link and token, sign-out, and expired sessions."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect
from tests.support.server_process import TOKEN, ServerProcess
from tests.ui.browser import SignedInPage, sign_in
from tests.ui.conftest import ApiSetup, OpenPage
from tests.ui.file_editor import editor, open_file, read_stored, replace_text, save_file


def test_token_sign_in_sets_an_http_only_cookie(
    browser: Browser, live_server: ServerProcess, signed_in_page: OpenPage
) -> None:
    user = signed_in_page()
    user.context.clear_cookies()
    user.expected_statuses = {401}
    user.visit("/agents")
    page = user.page
    expect(page).to_have_url(re.compile(r"/sign-in\?return=%2Fagents$"))
    page.get_by_label("Token").fill("carrel_nobody_has_this_one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Agents", exact=True)).to_be_visible()
    storage = page.evaluate(
        "JSON.stringify({...localStorage, ...sessionStorage}) + document.cookie"
    )
    assert "carrel_owner" not in storage
    assert "carrel_session" not in storage
    cookie = next(cookie for cookie in user.context.cookies() if cookie["name"] == "carrel_session")
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert cookie["value"] != TOKEN


def test_the_sign_in_link_works_once(browser: Browser, live_server: ServerProcess) -> None:
    link = live_server.link
    with sign_in(browser, live_server) as user:
        user.context.clear_cookies()
        user.page.goto(link)
        expect(user.page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
        assert "code" not in user.page.url
        user.context.clear_cookies()
        user.page.goto("about:blank")
        user.page.goto(link)
        expect(user.page.get_by_role("alert")).to_be_visible()


def test_signing_out_ends_the_session(signed_in_page: OpenPage) -> None:
    user: SignedInPage = signed_in_page()
    user.expected_statuses = {401}
    user.visit("/agents")
    user.page.get_by_role("button", name="User menu").click()
    user.page.get_by_role("button", name="Sign out").click()
    expect(user.page.get_by_label("Token")).to_be_visible()
    user.visit("/agents")
    expect(user.page).to_have_url(re.compile("/sign-in"))


def test_an_expired_session_keeps_the_draft(signed_in_page: OpenPage, api_setup: ApiSetup) -> None:
    agent = api_setup.create_agent("Ada")
    api_setup.put_file(f"/v1/agents/{agent['id']}", "plan.md", "one\n")
    user = signed_in_page()
    user.expected_statuses = {401}
    page = open_file(user, agent, "plan.md")
    replace_text(page, "what I wrote\n")
    user.context.request.delete("/v1/session", headers={"X-Carrel-Csrf": "1"})
    page.keyboard.press("ControlOrMeta+s")
    dialog = page.get_by_role("dialog", name="Session expired")
    expect(dialog).to_be_visible()
    dialog.get_by_label("Token").fill("carrel_nobody_has_this_one")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_be_visible()
    dialog.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(editor(page)).to_contain_text("what I wrote")
    editor(page).click()
    save_file(page)
    assert read_stored(api_setup, agent, "plan.md") == "what I wrote\n"
    # Without a draft the page redirects to sign-in: at the next request, or when the event
    # stream ends, whichever comes first.
    user.context.request.delete("/v1/session", headers={"X-Carrel-Csrf": "1"})
    page.evaluate("document.querySelector('a[href=\"/agent-templates\"]')?.click()")
    expect(page).to_have_url(re.compile(r"/sign-in\?return="))


def test_a_screen_that_fails_to_load_keeps_the_layout_and_can_be_reloaded(
    signed_in_page: OpenPage,
) -> None:
    user = signed_in_page()
    user.visit("/agents")
    page = user.page
    expect(page.get_by_role("heading", name="Agents", exact=True)).to_be_visible()
    page.route("**/ui/approvals-*.js", lambda route: route.fulfill(status=404))
    user.expected_statuses = {404}
    page.get_by_role("link", name="Approvals").click()
    expect(page.get_by_text("Could not load this screen")).to_be_visible()
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    page.unroute("**/ui/approvals-*.js")
    page.get_by_role("button", name="Reload").click()
    expect(page.get_by_role("heading", name="Approvals", exact=True)).to_be_visible()
