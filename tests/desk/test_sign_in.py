"""The door: a link from the terminal, a token, and nothing that a script could steal."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect
from tests.desk.browsing import Seat, seated
from tests.desk.conftest import Seating
from tests.e2e.servers import TOKEN, Live


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
    expect(page.get_by_role("heading", name="Agents")).to_be_visible()
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
        expect(someone.page.get_by_role("heading", name="Agents")).to_be_visible()
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
