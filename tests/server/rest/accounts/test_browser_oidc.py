"""Browser sign-in through an OpenID Connect provider."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path as File
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx
import pytest
from joserfc import jws
from joserfc.jwk import RSAKey
from tests.support.live_server import serving
from tests.support.stores import advance_clock, open_ports

from carrel.actions.accounts import tenants
from carrel.ports import Ports
from carrel.server.http.app import create_app
from carrel.server.http.metrics import Metrics
from carrel.settings import SettingsError, load
from carrel.wiring.oidc import create_code_flow
from carrel.wiring.server_app import authenticator, endpoints, site_settings

pytestmark = pytest.mark.anyio
START, BACK = "/v1/session/oidc", "/v1/session/oidc/callback"
CLIENT = "console"


@cache
def key() -> RSAKey:
    """The provider's key, generated on first use so that collection stays fast."""
    return RSAKey.generate_key(2048, {"kid": "first"})


@dataclass
class Provider:
    """An identity provider that accepts every sign-in and issues a code."""

    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    requests: list[tuple[dict[str, str], str | None]] = field(default_factory=list)
    methods: list[str] | None = None
    status: int = 200
    endpoints: dict[str, str] = field(default_factory=dict)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = b""
        while (message := await receive()) and message["type"] == "http.request":
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        status, payload = self.respond(scope["path"], dict(parse_qsl(body.decode())), headers)
        raw = json.dumps(payload).encode()
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": raw})

    def respond(self, path: str, form: dict[str, str], headers: dict[str, str]) -> tuple[int, Any]:
        if path == "/.well-known/openid-configuration":
            metadata: dict[str, Any] = {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/jwks",
                "authorization_endpoint": f"{self.url}/authorize?tenant=1",
                "token_endpoint": f"{self.url}/token",
                **self.endpoints,
            }
            if self.methods is not None:
                metadata["token_endpoint_auth_methods_supported"] = self.methods
            return 200, metadata
        if path == "/jwks":
            return 200, {"keys": [key().as_dict(private=False)]}
        self.requests.append((form, headers.get("authorization")))
        authorization = self.codes.pop(form.get("code", ""), None)
        if self.status != 200:
            return self.status, {"error": "server_error"}
        if authorization is None or not self.fits(form, authorization):
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": "x", "id_token": self.token(authorization["nonce"])}

    def fits(self, form: dict[str, str], authorization: dict[str, str]) -> bool:
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return (form["grant_type"], form["redirect_uri"], challenge) == (
            "authorization_code",
            authorization["redirect_uri"],
            authorization["code_challenge"],
        )

    def token(self, nonce: str) -> str:
        now = int(time.time())
        claims: dict[str, Any] = {"iss": self.url, "aud": CLIENT, "sub": "ada-1", "nonce": nonce}
        claims |= {"iat": now, "exp": now + 300, "email": "ada@acme.example"}
        claims |= {"email_verified": True, **self.claims}
        present = {name: value for name, value in claims.items() if value is not None}
        return jws.serialize_compact(
            {"alg": "RS256", "kid": "first"},
            json.dumps(present).encode(),
            key(),
            algorithms=["RS256"],
        )

    def sign_in(self, address: str) -> str:
        """Sign in and return the query of the callback."""
        query = dict(parse_qsl(urlsplit(address).query))
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return f"code={code}&state={query['state']}&session_state=more"


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider_app = Provider()
    with serving(provider_app) as port:
        provider_app.url = f"http://127.0.0.1:{port}"
        yield provider_app


@pytest.fixture
async def ports(tmp_path: File) -> AsyncIterator[Ports]:
    async with open_ports(tmp_path) as opened:
        await tenants.create(opened, "acme", "Acme", "Ada", "ada@acme.example")
        yield opened


def browser(ports: Ports, provider: Provider, scheme: str = "http", **more: Any) -> Any:
    values = {"oidc_issuer": provider.url, "oidc_audience": "api", "oidc_client_id": CLIENT, **more}
    settings = load(values, environ={}, file=File("none"))
    authenticate, site = authenticator(ports, settings), site_settings(settings)
    app = create_app(ports, endpoints(settings), authenticate, metrics=Metrics(), site=site)
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url=f"{scheme}://carrel.example"
    )


def error_of(answer: httpx.Response) -> str:
    assert answer.status_code in {302, 303}, answer.text
    path, _, error = answer.headers["location"].partition("?error=")
    assert path == "/sign-in"
    session_cookies = [
        cookie for cookie in answer.headers.get_list("set-cookie") if "carrel_session" in cookie
    ]
    assert session_cookies == []
    return str(error)


async def test_a_browser_signs_in_through_the_provider(ports: Ports, provider: Provider) -> None:
    page = browser(ports, provider)
    ways = (await page.get("/v1/session/ways")).json()
    assert ways == {"link": True, "token": True, "oidc": {"name": "127.0.0.1", "start": START}}
    out = await page.get(START, params={"return": "/agents/reed?tab=2"})
    assert out.status_code == 302
    address = urlsplit(out.headers["location"])
    assert f"{address.scheme}://{address.netloc}{address.path}" == f"{provider.url}/authorize"
    query = {name: value for name, [value] in parse_qs(address.query).items()}
    assert query["redirect_uri"] == f"http://carrel.example{BACK}"
    assert (query["tenant"], query["client_id"], query["response_type"]) == ("1", CLIENT, "code")
    assert (query["code_challenge_method"], query["scope"]) == ("S256", "openid email")
    cookie = out.headers["set-cookie"]
    assert cookie.endswith(f"; HttpOnly; SameSite=Lax; Path={START}; Max-Age=600")
    for secret in (query["state"], query["nonce"]):
        assert secret not in cookie
    back = await page.get(f"{BACK}?{provider.sign_in(out.headers['location'])}")
    assert (back.status_code, back.headers["location"]) == (303, "/agents/reed?tab=2")
    assert back.headers["cache-control"] == "no-store"
    session_cookie, cleared_cookie = back.headers.get_list("set-cookie")
    assert session_cookie.endswith("; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000")
    assert cleared_cookie == f"carrel_oidc=; HttpOnly; SameSite=Lax; Path={START}; Max-Age=0"
    session_body = (await page.get("/v1/session")).json()
    assert (session_body["person"]["email"], session_body["role"]) == ("ada@acme.example", "owner")
    names = [key["name"] for key in (await page.get("/v1/keys")).json()["items"]]
    assert "browser" in names
    [(form, basic)] = provider.requests
    assert ("client_secret" in form, basic) == (False, None)


@pytest.mark.parametrize("methods", [None, ["client_secret_basic"], ["client_secret_post"]])
async def test_a_client_with_a_secret_sends_it(
    ports: Ports, provider: Provider, methods: list[str] | None
) -> None:
    provider.methods = methods
    page = browser(ports, provider, oidc_client_secret="hush: 1", oidc_name="Acme ID")
    assert (await page.get("/v1/session/ways")).json()["oidc"]["name"] == "Acme ID"
    out = await page.get(START)
    back = await page.get(f"{BACK}?{provider.sign_in(out.headers['location'])}")
    assert back.headers["location"] == "/"
    [(form, basic)] = provider.requests
    if methods == ["client_secret_post"]:
        assert (form["client_secret"], basic) == ("hush: 1", None)
    else:
        assert basic is not None
        assert base64.b64decode(basic.removeprefix("Basic ")) == b"console:hush%3A+1"
        assert "client_secret" not in form


async def test_the_redirect_uri_uses_the_configured_public_url(
    ports: Ports, provider: Provider
) -> None:
    page = browser(ports, provider, "https", public_url="https://console.example.com/")
    out = await page.get(START)
    query = dict(parse_qsl(urlsplit(out.headers["location"]).query))
    assert query["redirect_uri"] == f"https://console.example.com{BACK}"
    assert out.headers["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "api"},
        {"aud": ["console", "api"]},
        {"aud": ["console", "api"], "azp": "api"},
        {"token_use": "access"},
        {"iss": "https://elsewhere.example"},
        {"exp": 1},
        {"email_verified": False},
        {"email": "unknown@acme.example"},
        {"email": None},
    ],
    ids=str,
)
async def test_a_token_with_wrong_claims_does_not_sign_in(
    ports: Ports, provider: Provider, claims: dict[str, Any]
) -> None:
    provider.claims = claims
    page = browser(ports, provider)
    out = await page.get(START)
    back = await page.get(f"{BACK}?{provider.sign_in(out.headers['location'])}")
    assert error_of(back) == "unknown"
    assert (await page.get("/v1/session")).status_code == 401


async def test_a_callback_needs_the_same_browser_once_within_ten_minutes(
    ports: Ports, provider: Provider
) -> None:
    page, other = browser(ports, provider), browser(ports, provider)
    out = await page.get(START)
    callback_query = provider.sign_in(out.headers["location"])
    assert error_of(await other.get(f"{BACK}?{callback_query}")) == "expired"
    await other.get(START)
    assert error_of(await other.get(f"{BACK}?{callback_query}")) == "expired"
    for wrong in ("code=x&state=", "code=x", "state=x", "", "code=x&state=%C3%A9"):
        out = await page.get(START)
        assert error_of(await page.get(f"{BACK}?{wrong}")) == "expired"
    for sealed in ("", "x", "v1.x.y", "é" * 9, out.headers["set-cookie"].split(";")[0][12:-4]):
        cookie = {"Cookie": f"carrel_oidc={sealed}".encode()}
        assert error_of(await browser(ports, provider).get(BACK, headers=cookie)) == "expired"
    out = await page.get(START)
    callback_query = provider.sign_in(out.headers["location"])
    advance_clock(ports, 600_000)
    assert error_of(await page.get(f"{BACK}?{callback_query}")) == "expired"
    assert provider.requests == []


async def test_a_refused_code_does_not_sign_in(ports: Ports, provider: Provider) -> None:
    page = browser(ports, provider)
    out = await page.get(START)
    callback_query = provider.sign_in(out.headers["location"])
    provider.codes.clear()
    assert error_of(await page.get(f"{BACK}?{callback_query}")) == "unknown"
    out = await page.get(START)
    state = dict(parse_qsl(urlsplit(out.headers["location"]).query))["state"]
    assert error_of(await page.get(f"{BACK}?state={state}")) == "unknown"
    assert error_of(await page.get(f"{BACK}?error=access_denied&state={state}")) == "denied"
    out = await page.get(START)
    callback_query = provider.sign_in(out.headers["location"])
    assert error_of(await page.get(f"{BACK}?{callback_query}&iss=https://evil.example")) == "denied"


async def test_an_unavailable_provider_is_reported(ports: Ports, provider: Provider) -> None:
    page = browser(ports, provider)
    out = await page.get(START)
    callback_query = provider.sign_in(out.headers["location"])
    provider.status = 500
    assert error_of(await page.get(f"{BACK}?{callback_query}")) == "unavailable"
    gone = browser(ports, Provider("http://127.0.0.1:1"))
    assert error_of(await gone.get(START)) == "unavailable"
    for wrong in ("javascript:alert(1)", "http://a b/", "http://a/\r\nx: y", "/authorize"):
        provider.endpoints = {"authorization_endpoint": wrong}
        assert error_of(await browser(ports, provider).get(START)) == "unavailable"


@pytest.mark.parametrize(
    "home",
    [
        *("//evil.example", "/\\evil.example", "https://evil.example", "/\t/evil.example"),
        *("", "evil", "/a\n", "/a b", "/a\\b", "/é"),
    ],
)
async def test_a_return_url_on_another_site_is_400(
    ports: Ports, provider: Provider, home: str
) -> None:
    answer = await browser(ports, provider).get(START, params={"return": home})
    assert answer.status_code == 400


async def test_without_a_client_id_oidc_is_not_offered(ports: Ports, provider: Provider) -> None:
    page = browser(ports, provider, oidc_client_id="")
    assert (await page.get("/v1/session/ways")).json()["oidc"] is None
    assert error_of(await page.get(START)) == "not_offered"
    assert error_of(await page.get(BACK)) == "not_offered"


def test_a_client_without_an_issuer_is_a_settings_error() -> None:
    for values in ({"oidc_client_id": "a"}, {"oidc_client_secret": "b"}):
        with pytest.raises(SettingsError, match="OIDC_CLIENT"):
            create_code_flow(load(values, environ={}, file=File("none")))
