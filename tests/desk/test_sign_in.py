"""The door: a link from the terminal, a token, and nothing that a script could steal."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect
from tests.desk.browsing import Seat, seated
from tests.desk.conftest import Office, Seating
from tests.desk.files import editor, opened, save, stored, write_over
from tests.support.server_process import TOKEN, Live


def test_a_token_opens_the_desk_and_is_kept_where_no_script_can_read_it(
    chrome: Browser, live: Live, seat: Seating
) -> None:
    someone = seat()
    someone.context.clear_cookies()
    someone.expected = {401}
    someone.visit("/agents")
    page = someone.page
    expect(page).to_have_url(re.compile(r"/sign-in\?return=%2Fagents$"))
    page.get_by_label("Token").fill("carrel_nobody_has_this_one")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Agents", exact=True)).to_be_visible()
    kept = page.evaluate("JSON.stringify({...localStorage, ...sessionStorage}) + document.cookie")
    assert "carrel_owner" not in kept
    assert "carrel_session" not in kept
    cookie = next(each for each in someone.context.cookies() if each["name"] == "carrel_session")
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert cookie["value"] != TOKEN


def test_the_link_of_the_terminal_signs_in_once(chrome: Browser, live: Live) -> None:
    link = re.search(r"http://\S+#code=\S+", live.welcome)
    assert link, live.welcome
    with seated(chrome, live) as someone:
        someone.context.clear_cookies()
        someone.page.goto(link[0])
        expect(someone.page.get_by_role("heading", name="Agents", exact=True)).to_be_visible()
        assert "code" not in someone.page.url
        someone.context.clear_cookies()
        someone.page.goto("about:blank")
        someone.page.goto(link[0])
        expect(someone.page.get_by_role("alert")).to_be_visible()


def test_signing_out_ends_the_session(seat: Seating) -> None:
    someone: Seat = seat()
    someone.expected = {401}
    someone.visit("/agents")
    someone.page.get_by_role("button", name="You and your settings").click()
    someone.page.get_by_role("button", name="Sign out").click()
    expect(someone.page.get_by_label("Token")).to_be_visible()
    someone.visit("/agents")
    expect(someone.page).to_have_url(re.compile("/sign-in"))


def test_a_session_that_ends_under_a_draft_takes_nothing_with_it(
    seat: Seating, office: Office
) -> None:
    agent = office.agent("Ada")
    office.put(f"/v1/agents/{agent['id']}", "plan.md", "one\n")
    someone = seat()
    someone.expected = {401}
    page = opened(someone, agent, "plan.md")
    write_over(page, "what I wrote\n")
    someone.context.request.delete("/v1/session", headers={"X-Carrel-Csrf": "1"})
    page.keyboard.press("ControlOrMeta+s")
    dialog = page.get_by_role("dialog", name="You are signed out")
    expect(dialog).to_be_visible()
    dialog.get_by_label("Token").fill("carrel_nobody_has_this_one")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_be_visible()
    dialog.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(editor(page)).to_contain_text("what I wrote")
    editor(page).click()
    save(page)
    assert stored(office, agent, "plan.md") == "what I wrote\n"
    # With nothing under the pen one is shown the door: at the next step, or as soon as the stream
    # of events has ended, whichever comes first.
    someone.context.request.delete("/v1/session", headers={"X-Carrel-Csrf": "1"})
    page.evaluate("document.querySelector('a[href=\"/agent-templates\"]')?.click()")
    expect(page).to_have_url(re.compile(r"/sign-in\?return="))


def test_a_screen_that_cannot_be_loaded_leaves_the_frame_and_can_be_tried_again(
    seat: Seating,
) -> None:
    someone = seat()
    someone.visit("/agents")
    page = someone.page
    expect(page.get_by_role("heading", name="Agents", exact=True)).to_be_visible()
    page.route("**/ui/approvals-*.js", lambda route: route.fulfill(status=404))
    someone.expected = {404}
    page.get_by_role("link", name="Approvals").click()
    expect(page.get_by_text("could not be loaded")).to_be_visible()
    expect(page.get_by_role("navigation", name="Screens")).to_be_visible()
    page.unroute("**/ui/approvals-*.js")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", name="Approvals", exact=True)).to_be_visible()
