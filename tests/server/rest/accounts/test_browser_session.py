"""Browser sessions: the session cookie, its limits and CSRF protection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.full_app import FILES, FullApp, open_full_app
from tests.support.stores import advance_clock

from carrel.actions.accounts import credentials, sign_in, tenants
from carrel.core.errors import Forbidden
from carrel.server.http.app import create_app
from carrel.server.http.cookies import SESSION_COOKIE, SiteSettings, find_cookie
from carrel.server.http.metrics import Metrics
from carrel.server.rest.files.file_models import rfc3339
from carrel.settings import load
from carrel.wiring.server_app import authenticator, endpoints, site_settings

pytestmark = pytest.mark.anyio
DAY = 86_400_000
CSRF = {"X-Carrel-Csrf": "1"}
CONTENT = {"content": "Be kind.\n"}


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


def token_of(client: httpx.AsyncClient) -> str:
    return str(client.headers["Authorization"]).partition(" ")[2]


async def open_session(server: FullApp, owner: httpx.AsyncClient) -> httpx.AsyncClient:
    browser = server.as_(None)
    done = await browser.post("/v1/session", json={"token": token_of(owner)})
    assert done.status_code == 200, done.text
    return browser


async def test_a_token_starts_a_session_with_its_own_key(server: FullApp) -> None:
    owner = await server.owner()
    browser = server.as_(None)
    done = await browser.post("/v1/session", json={"token": token_of(owner)})
    assert done.status_code == 200
    cookie = done.headers["set-cookie"]
    pair, _, attributes = cookie.partition("; ")
    assert attributes == "HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000"
    assert pair.startswith("carrel_session=carrel_")
    assert token_of(owner) not in cookie
    assert done.headers["cache-control"] == "no-store"
    fetched = await browser.get("/v1/session")
    assert fetched.json() == done.json()
    body = fetched.json()
    assert (body["person"]["name"], body["tenant"]["slug"]) == ("Ada", "acme")
    assert (body["kind"], body["role"]) == ("person", "owner")
    assert "tenant:admin" in body["permissions"]
    assert body["expiresAt"] is not None
    names = [key["name"] for key in (await owner.get("/v1/keys")).json()["items"]]
    assert names.count("browser") == 1


async def test_a_one_time_code_starts_one_session(server: FullApp) -> None:
    created = await tenants.create(server.ports, "acme", "Acme", "Ada", "ada@acme.example")
    code = await sign_in.issue_code(server.ports, created.tenant.id, created.owner.id)
    browser = server.as_(None)
    assert (await browser.post("/v1/session", json={"code": code})).status_code == 200
    assert (await browser.get("/v1/session")).json()["person"]["id"] == created.owner.id
    again = await server.as_(None).post("/v1/session", json={"code": code})
    assert again.status_code == 401
    assert "set-cookie" not in again.headers
    names = [key["name"] for key in (await browser.get("/v1/keys")).json()["items"]]
    assert "browser" in names


async def test_ending_a_session_revokes_its_key_and_clears_its_cookie(server: FullApp) -> None:
    owner = await server.owner()
    browser = await open_session(server, owner)
    token = browser.cookies[SESSION_COOKIE]
    done = await browser.delete("/v1/session", headers=CSRF)
    assert done.status_code == 204
    assert done.headers["set-cookie"].startswith("carrel_session=; HttpOnly")
    assert "Max-Age=0" in done.headers["set-cookie"]
    assert SESSION_COOKIE not in browser.cookies
    assert (await server.as_(token).get("/v1/session")).status_code == 401
    assert (await server.as_(None).get("/v1/session")).status_code == 401
    assert (await owner.get("/v1/session")).status_code == 200


async def test_a_session_ends_when_its_key_is_revoked_or_after_30_days(server: FullApp) -> None:
    owner = await server.owner()
    first, second = await open_session(server, owner), await open_session(server, owner)
    keys = (await owner.get("/v1/keys")).json()["items"]
    revoked = (await credentials.authenticate(server.ports, first.cookies[SESSION_COOKIE])).key
    assert revoked in {key["id"] for key in keys}
    await owner.delete(f"/v1/keys/{revoked}")
    assert (await first.get("/v1/session")).status_code == 401
    assert (await second.get("/v1/session")).status_code == 200
    advance_clock(server.ports, 30 * DAY)
    assert (await second.get("/v1/session")).status_code == 401


async def test_only_a_persons_key_starts_a_session(server: FullApp) -> None:
    owner = await server.owner()
    agent = (await owner.post("/v1/agents", json={"name": "Reed", "slug": "reed"})).json()["id"]
    bodies = ({"kind": "service"}, {"kind": "agent", "agentId": agent})
    for body in bodies:
        created = await owner.post("/v1/keys", json={"name": "robot", **body})
        done = await server.as_(None).post("/v1/session", json={"token": created.json()["key"]})
        assert done.status_code == 403
        assert done.json()["error"] == "forbidden"
        assert str(body["kind"]) in done.json()["message"]
        assert "set-cookie" not in done.headers
        robot = server.as_(created.json()["key"])
        session = (await robot.get("/v1/session")).json()
        assert (session["person"], session["kind"], session["expiresAt"]) == (
            None,
            body["kind"],
            None,
        )


async def test_a_session_has_the_scopes_and_expiry_of_its_token(server: FullApp) -> None:
    owner = await server.owner()
    body = {"name": "narrow", "kind": "person", "scopes": ["workspace:read", "tenant:read"]}
    until = server.ports.clock.now() + DAY
    body["expiresAt"] = rfc3339(until)
    created = await owner.post("/v1/keys", json=body)
    browser = server.as_(None)
    done = await browser.post("/v1/session", json={"token": created.json()["key"]})
    assert done.json()["permissions"] == ["tenant:read", "workspace:read"]
    assert done.json()["expiresAt"] == created.json()["expiresAt"]
    refused = await browser.put(f"{FILES}/SOUL.md", json=CONTENT, headers=CSRF)
    assert refused.status_code == 403
    advance_clock(server.ports, DAY)
    assert (await browser.get("/v1/session")).status_code == 401


@pytest.mark.parametrize(
    "body",
    [{}, {"code": "", "token": ""}, {"code": "a", "token": "b"}, {"code": 1}, {"key": "x"}, []],
)
async def test_an_invalid_sign_in_body_is_400(server: FullApp, body: Any) -> None:
    done = await server.as_(None).post("/v1/session", json=body)
    assert done.status_code == 400


@pytest.mark.parametrize("body", [{"code": "code_no"}, {"token": "carrel_no"}, {"token": "\x00é"}])
async def test_an_unknown_code_or_token_is_401(server: FullApp, body: Any) -> None:
    done = await server.as_(None).post("/v1/session", json=body)
    assert done.status_code == 401
    assert "set-cookie" not in done.headers


async def test_the_cookie_works_on_every_protocol(server: FullApp) -> None:
    browser = await open_session(server, await server.owner())
    assert (await browser.get(FILES)).status_code == 200
    document = {"query": "{ __typename }"}
    assert (await browser.post("/graphql", json=document, headers=CSRF)).status_code == 200
    assert (await browser.get("/accounts/me/workspaces")).status_code == 200
    assert (await browser.get("/v1/nowhere")).status_code == 404
    assert (await server.as_(None).get("/v1/nowhere")).status_code == 401


async def test_responses_to_a_session_are_private_to_caches(server: FullApp) -> None:
    owner = await server.owner()
    browser = await open_session(server, owner)
    assert (await browser.get("/v1/keys")).headers["cache-control"] == "private"
    assert "cache-control" not in (await owner.get("/v1/keys")).headers


async def test_an_authorization_header_wins_over_the_cookie(server: FullApp) -> None:
    ada = await server.owner()
    browser = await open_session(server, ada)
    other = await server.owner("other")
    response = await browser.get(
        "/v1/session", headers={"Authorization": other.headers["Authorization"]}
    )
    assert response.json()["tenant"]["slug"] == "other"
    assert (
        await browser.get("/v1/session", headers={"Authorization": "Bearer x"})
    ).status_code == 401
    service_headers = {"x-api-key": "x", "x-tenant-id": "acme"}
    assert (await browser.get("/v1/session", headers=service_headers)).status_code == 401
    put = await browser.put(
        f"{FILES}/SOUL.md", json=CONTENT, headers={"Authorization": other.headers["Authorization"]}
    )
    assert put.status_code == 200, "a request with a token needs no CSRF header"


async def test_ending_a_session_without_a_cookie_is_refused(server: FullApp) -> None:
    owner = await server.owner()
    assert (await owner.delete("/v1/session")).status_code == 400
    assert (await owner.get("/v1/session")).status_code == 200
    assert (await server.as_(None).delete("/v1/session")).status_code == 401


FOREIGN_ORIGINS: list[dict[str, str]] = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Origin": "http://carrel:8080"},
    {"Origin": "http://carrel.evil.example"},
    {"Origin": "ftp://carrel"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": "http://carrel", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"},
]
OWN_ORIGINS: list[dict[str, str]] = [
    {},
    {"Origin": "http://carrel"},
    {"Origin": "https://carrel"},
    {"Origin": "http://CARREL", "Sec-Fetch-Site": "same-origin"},
]


@pytest.mark.parametrize("origin_headers", FOREIGN_ORIGINS)
async def test_a_write_from_another_origin_is_403(
    server: FullApp, origin_headers: dict[str, str]
) -> None:
    owner = await server.owner()
    browser = await open_session(server, owner)
    for method, url, body in (
        ("PUT", f"{FILES}/SOUL.md", CONTENT),
        ("POST", "/graphql", {"query": "{ __typename }"}),
        ("DELETE", "/v1/session", None),
        ("POST", "/v1/session", {"token": token_of(owner)}),
        ("POST", "/v1/nowhere", None),
    ):
        done = await browser.request(method, url, json=body, headers={**CSRF, **origin_headers})
        assert done.status_code == 403, (method, url)
        assert "origin" in done.json()["message"]
        assert "set-cookie" not in done.headers
    assert (await browser.get(FILES, headers=origin_headers)).status_code == 200
    before = (await owner.get("/v1/keys")).json()["items"]
    assert [key["name"] for key in before].count("browser") == 1


@pytest.mark.parametrize("origin_headers", OWN_ORIGINS)
async def test_a_write_from_the_own_origin_succeeds(
    server: FullApp, origin_headers: dict[str, str]
) -> None:
    owner = await server.owner()
    browser = await open_session(server, owner)
    put = await browser.put(f"{FILES}/SOUL.md", json=CONTENT, headers={**CSRF, **origin_headers})
    assert put.status_code == 200
    again = await browser.post(
        "/v1/session", json={"token": token_of(owner)}, headers=origin_headers
    )
    assert again.status_code == 200
    assert (
        await browser.delete("/v1/session", headers={**CSRF, **origin_headers})
    ).status_code == 204


@pytest.mark.parametrize("csrf_header", [{}, {"X-Carrel-Csrf": "0"}, {"X-Carrel-Csrf": ""}])
async def test_a_write_with_a_cookie_but_no_csrf_header_is_403(
    server: FullApp, csrf_header: dict[str, str]
) -> None:
    browser = await open_session(server, await server.owner())
    requests = (("PUT", f"{FILES}/SOUL.md"), ("DELETE", "/v1/session"), ("POST", "/graphql"))
    for method, url in requests:
        done = await browser.request(method, url, json=CONTENT, headers=csrf_header)
        assert done.status_code == 403
        assert done.json()["error"] == "forbidden"
        assert "X-Carrel-Csrf: 1" in done.json()["message"]
    assert (await browser.get("/v1/session")).status_code == 200


async def test_over_https_the_cookie_is_secure(server: FullApp) -> None:
    owner = await server.owner()
    transport = httpx.ASGITransport(app=server.app)
    async with httpx.AsyncClient(transport=transport, base_url="https://carrel") as browser:
        plain = {"Origin": "http://carrel"}
        body = {"token": token_of(owner)}
        assert (await browser.post("/v1/session", json=body, headers=plain)).status_code == 403
        done = await browser.post("/v1/session", json=body, headers={"Origin": "https://carrel"})
        assert done.headers["set-cookie"].endswith("; Secure")
        gone = await browser.delete("/v1/session", headers=CSRF)
        assert gone.headers["set-cookie"].endswith("; Secure")


async def test_the_public_url_defines_the_origin_behind_a_proxy(server: FullApp) -> None:
    owner = await server.owner()
    settings = load({"public_url": "https://console.example.com/"}, environ={}, file=File("none"))
    authenticate = authenticator(server.ports, settings)
    app = create_app(
        server.ports,
        endpoints(settings),
        authenticate,
        metrics=Metrics(),
        site=site_settings(settings),
    )
    body = {"token": token_of(owner)}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://inside:8787"
    ) as browser:
        own_origin = {"Origin": "https://console.example.com"}
        done = await browser.post("/v1/session", json=body, headers=own_origin)
        assert done.status_code == 200
        assert done.headers["set-cookie"].endswith("; Secure")
        cookie = {"Cookie": f"{SESSION_COOKIE}={done.cookies[SESSION_COOKIE]}", **CSRF}
        put = await browser.put(f"{FILES}/A.md", json=CONTENT, headers={**cookie, **own_origin})
        assert put.status_code == 200
        other = {"Origin": "https://console.example.com.evil.example"}
        put = await browser.put(f"{FILES}/A.md", json=CONTENT, headers={**cookie, **other})
        assert put.status_code == 403


def test_an_invalid_public_url_matches_no_origin() -> None:
    for url in ("https://[carrel", "carrel.example", "x"):
        with pytest.raises(Forbidden):
            SiteSettings(url).require_same_origin({b"origin": b"://", b"host": b"carrel"}, False)


@given(st.text(st.characters(codec="latin-1")), st.text(st.characters(codec="latin-1")))
def test_any_cookie_header_can_be_parsed(before: str, after: str) -> None:
    raw = f"{before}; {SESSION_COOKIE}=x; {after}".encode("latin-1")
    value = find_cookie({b"cookie": raw}, SESSION_COOKIE)
    assert value is not None
    assert find_cookie({b"cookie": f"a=b,{SESSION_COOKIE}=x".encode()}, SESSION_COOKIE) == "x"


@given(st.binary(), st.sampled_from(["PUT", "POST", "PATCH", "DELETE", "X"]), st.booleans())
def test_only_the_own_origin_may_write(origin: bytes, method: str, https: bool) -> None:
    headers = {b"cookie": b"carrel_session=x", b"x-carrel-csrf": b"1", b"host": b"carrel"}
    ours = origin.lower() in {b"https://carrel", b"http://carrel"}
    if not ours:
        with pytest.raises(Forbidden):
            SiteSettings().with_session_token({**headers, b"origin": origin}, method, https)
    assert b"authorization" in SiteSettings().with_session_token(headers, method, https)


async def test_concurrent_sign_ins_all_succeed(server: FullApp) -> None:
    body = {"token": token_of(await server.owner())}
    tabs = [server.as_(None) for _ in range(4)]
    done = await asyncio.gather(*(tab.post("/v1/session", json=body) for tab in tabs))
    assert [response.status_code for response in done] == [200] * 4
    assert len({tab.cookies[SESSION_COOKIE] for tab in tabs}) == 4
