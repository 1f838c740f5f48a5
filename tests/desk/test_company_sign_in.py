"""The company's own sign-in, in a browser: there and back, and where nobody is known."""

from __future__ import annotations

import re
from pathlib import Path as File
from typing import Any

from playwright.sync_api import Browser, expect
from tests.desk.browsing import seated
from tests.server.rest.accounts.test_browser_oidc import CLIENT, Provider
from tests.support.live_server import serving
from tests.support.server_process import serving as carrel


class Company(Provider):
    """Sends everybody back at once, as one does who is signed in there already."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != "/authorize":
            return await super().__call__(scope, receive, send)
        asked = f"{self.url}/authorize?{scope['query_string'].decode()}"
        brought = self.sign_in(asked)
        begun = next(reversed(self.codes.values()))
        there = [(b"location", f"{begun['redirect_uri']}?{brought}".encode())]
        await send({"type": "http.response.start", "status": 302, "headers": there})
        await send({"type": "http.response.body", "body": b""})


def test_the_company_signs_one_in_and_whoever_is_unknown_is_told(
    chrome: Browser, tmp_path: File
) -> None:
    company = Company()
    with serving(company) as port:
        company.url = f"http://127.0.0.1:{port}"
        with (
            carrel(
                tmp_path,
                oidc_issuer=company.url,
                oidc_audience="api",
                oidc_client_id=CLIENT,
                oidc_name="Acme ID",
            ) as live,
            seated(chrome, live) as someone,
        ):
            page, boss = someone.page, someone.context.request.get("/v1/session").json()["person"]
            company.claims = {"email": "nobody@acme.example"}
            someone.context.clear_cookies()
            someone.expected = {401}
            someone.visit("/runs")
            page.get_by_role("link", name="Sign in with Acme ID").click()
            expect(page.get_by_role("alert")).to_contain_text("Nobody here has the address")
            someone.look_for_barriers()
            company.claims = {"email": boss["email"]}
            someone.visit("/runs")
            page.get_by_role("link", name="Sign in with Acme ID").click()
            expect(page).to_have_url(re.compile(r"/runs$"))
            expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
            assert not someone.wrong
