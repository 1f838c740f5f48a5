"""OpenID Connect sign-in in a browser, for known and unknown users."""

from __future__ import annotations

import re
from pathlib import Path as File
from typing import Any

from playwright.sync_api import Browser, expect
from tests.server.rest.accounts.test_browser_oidc import CLIENT, Provider
from tests.support.live_server import serving
from tests.support.server_process import serving as serving_carrel
from tests.ui.browser import sign_in


class InstantProvider(Provider):
    """Identity provider that redirects back at once, as with an existing session."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != "/authorize":
            return await super().__call__(scope, receive, send)
        authorize_url = f"{self.url}/authorize?{scope['query_string'].decode()}"
        callback_query = self.sign_in(authorize_url)
        request = next(reversed(self.codes.values()))
        headers = [(b"location", f"{request['redirect_uri']}?{callback_query}".encode())]
        await send({"type": "http.response.start", "status": 302, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def test_known_users_sign_in_and_unknown_users_see_an_error(
    browser: Browser, tmp_path: File
) -> None:
    provider = InstantProvider()
    with serving(provider) as port:
        provider.url = f"http://127.0.0.1:{port}"
        with (
            serving_carrel(
                tmp_path,
                oidc_issuer=provider.url,
                oidc_audience="api",
                oidc_client_id=CLIENT,
                oidc_name="Acme ID",
            ) as live_server,
            sign_in(browser, live_server) as user,
        ):
            page, owner = user.page, user.context.request.get("/v1/session").json()["person"]
            provider.claims = {"email": "nobody@acme.example"}
            user.context.clear_cookies()
            user.expected_statuses = {401}
            user.visit("/runs")
            page.get_by_role("link", name="Sign in with Acme ID").click()
            expect(page.get_by_role("alert")).to_contain_text("No account has this email address")
            user.check_accessibility()
            provider.claims = {"email": owner["email"]}
            user.visit("/runs")
            page.get_by_role("link", name="Sign in with Acme ID").click()
            expect(page).to_have_url(re.compile(r"/runs$"))
            expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
            assert not user.errors
