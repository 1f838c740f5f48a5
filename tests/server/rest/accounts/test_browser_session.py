"""A browser's session through the wire: what its cookie opens, and for whose page."""

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
OURS = {"X-Carrel-Csrf": "1"}
SAID = {"content": "Be kind.\n"}


@pytest.fixture
async def here(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


def token_of(client: httpx.AsyncClient) -> str:
    return str(client.headers["Authorization"]).partition(" ")[2]


async def signed_in(here: FullApp, owner: httpx.AsyncClient) -> httpx.AsyncClient:
    browser = here.as_(None)
    done = await browser.post("/v1/session", json={"token": token_of(owner)})
    assert done.status_code == 200, done.text
    return browser


async def test_a_token_begins_a_session_that_holds_a_key_of_its_own(here: FullApp) -> None:
    owner = await here.owner()
    browser = here.as_(None)
    done = await browser.post("/v1/session", json={"token": token_of(owner)})
    assert done.status_code == 200
    kept = done.headers["set-cookie"]
    told, _, rest_of_it = kept.partition("; ")
    assert rest_of_it == "HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000"
    assert told.startswith("carrel_session=carrel_")
    assert token_of(owner) not in kept
    assert done.headers["cache-control"] == "no-store"
    shown = await browser.get("/v1/session")
    assert shown.json() == done.json()
    body = shown.json()
    assert (body["person"]["name"], body["tenant"]["slug"]) == ("Ada", "acme")
    assert (body["kind"], body["role"]) == ("person", "owner")
    assert "tenant:admin" in body["permissions"]
    assert body["expiresAt"] is not None
    names = [key["name"] for key in (await owner.get("/v1/keys")).json()["items"]]
    assert names.count("browser") == 1


async def test_a_one_time_code_begins_one_session(here: FullApp) -> None:
    made = await tenants.create(here.ports, "acme", "Acme", "Ada", "ada@acme.example")
    code = await sign_in.issue_code(here.ports, made.tenant.id, made.owner.id)
    browser = here.as_(None)
    assert (await browser.post("/v1/session", json={"code": code})).status_code == 200
    assert (await browser.get("/v1/session")).json()["person"]["id"] == made.owner.id
    again = await here.as_(None).post("/v1/session", json={"code": code})
    assert again.status_code == 401
    assert "set-cookie" not in again.headers
    names = [key["name"] for key in (await browser.get("/v1/keys")).json()["items"]]
    assert "browser" in names


async def test_the_end_of_a_session_revokes_its_key_and_clears_its_cookie(here: FullApp) -> None:
    owner = await here.owner()
    browser = await signed_in(here, owner)
    kept = browser.cookies[SESSION_COOKIE]
    done = await browser.delete("/v1/session", headers=OURS)
    assert done.status_code == 204
    assert done.headers["set-cookie"].startswith("carrel_session=; HttpOnly")
    assert "Max-Age=0" in done.headers["set-cookie"]
    assert SESSION_COOKIE not in browser.cookies
    assert (await here.as_(kept).get("/v1/session")).status_code == 401
    assert (await here.as_(None).get("/v1/session")).status_code == 401
    assert (await owner.get("/v1/session")).status_code == 200


async def test_a_session_ends_when_its_key_is_revoked_or_a_month_is_over(here: FullApp) -> None:
    owner = await here.owner()
    first, second = await signed_in(here, owner), await signed_in(here, owner)
    keys = (await owner.get("/v1/keys")).json()["items"]
    revoked = (await credentials.authenticate(here.ports, first.cookies[SESSION_COOKIE])).key
    assert revoked in {key["id"] for key in keys}
    await owner.delete(f"/v1/keys/{revoked}")
    assert (await first.get("/v1/session")).status_code == 401
    assert (await second.get("/v1/session")).status_code == 200
    advance_clock(here.ports, 30 * DAY)
    assert (await second.get("/v1/session")).status_code == 401


async def test_only_people_have_sessions(here: FullApp) -> None:
    owner = await here.owner()
    agent = (await owner.post("/v1/agents", json={"name": "Reed", "slug": "reed"})).json()["id"]
    wanted = ({"kind": "service"}, {"kind": "agent", "agentId": agent})
    for body in wanted:
        made = await owner.post("/v1/keys", json={"name": "robot", **body})
        done = await here.as_(None).post("/v1/session", json={"token": made.json()["key"]})
        assert done.status_code == 403
        assert done.json()["error"] == "forbidden"
        assert str(body["kind"]) in done.json()["message"]
        assert "set-cookie" not in done.headers
        robot = here.as_(made.json()["key"])
        seen = (await robot.get("/v1/session")).json()
        assert (seen["person"], seen["kind"], seen["expiresAt"]) == (None, body["kind"], None)


async def test_a_session_is_worth_no_more_than_the_token_it_began_with(here: FullApp) -> None:
    owner = await here.owner()
    body = {"name": "narrow", "kind": "person", "scopes": ["workspace:read", "tenant:read"]}
    until = here.ports.clock.now() + DAY
    body["expiresAt"] = rfc3339(until)
    made = await owner.post("/v1/keys", json=body)
    browser = here.as_(None)
    done = await browser.post("/v1/session", json={"token": made.json()["key"]})
    assert done.json()["permissions"] == ["tenant:read", "workspace:read"]
    assert done.json()["expiresAt"] == made.json()["expiresAt"]
    refused = await browser.put(f"{FILES}/SOUL.md", json=SAID, headers=OURS)
    assert refused.status_code == 403
    advance_clock(here.ports, DAY)
    assert (await browser.get("/v1/session")).status_code == 401


@pytest.mark.parametrize(
    "body",
    [{}, {"code": "", "token": ""}, {"code": "a", "token": "b"}, {"code": 1}, {"key": "x"}, []],
)
async def test_what_begins_no_session_is_400(here: FullApp, body: Any) -> None:
    done = await here.as_(None).post("/v1/session", json=body)
    assert done.status_code == 400


@pytest.mark.parametrize("body", [{"code": "code_no"}, {"token": "carrel_no"}, {"token": "\x00é"}])
async def test_what_nobody_knows_is_401(here: FullApp, body: Any) -> None:
    done = await here.as_(None).post("/v1/session", json=body)
    assert done.status_code == 401
    assert "set-cookie" not in done.headers


async def test_the_cookie_opens_every_face(here: FullApp) -> None:
    browser = await signed_in(here, await here.owner())
    assert (await browser.get(FILES)).status_code == 200
    asked = {"query": "{ __typename }"}
    assert (await browser.post("/graphql", json=asked, headers=OURS)).status_code == 200
    assert (await browser.get("/accounts/me/workspaces")).status_code == 200
    assert (await browser.get("/v1/nowhere")).status_code == 404
    assert (await here.as_(None).get("/v1/nowhere")).status_code == 401


async def test_what_a_session_is_shown_is_for_no_cache_between(here: FullApp) -> None:
    owner = await here.owner()
    browser = await signed_in(here, owner)
    assert (await browser.get("/v1/keys")).headers["cache-control"] == "private"
    assert "cache-control" not in (await owner.get("/v1/keys")).headers


async def test_a_header_wins_over_the_cookie(here: FullApp) -> None:
    ada = await here.owner()
    browser = await signed_in(here, ada)
    other = await here.owner("other")
    seen = await browser.get(
        "/v1/session", headers={"Authorization": other.headers["Authorization"]}
    )
    assert seen.json()["tenant"]["slug"] == "other"
    assert (
        await browser.get("/v1/session", headers={"Authorization": "Bearer x"})
    ).status_code == 401
    lane = {"x-api-key": "x", "x-tenant-id": "acme"}
    assert (await browser.get("/v1/session", headers=lane)).status_code == 401
    put = await browser.put(
        f"{FILES}/SOUL.md", json=SAID, headers={"Authorization": other.headers["Authorization"]}
    )
    assert put.status_code == 200, "a header needs no mark of our page"


async def test_what_ends_no_session_is_told_so(here: FullApp) -> None:
    owner = await here.owner()
    assert (await owner.delete("/v1/session")).status_code == 400
    assert (await owner.get("/v1/session")).status_code == 200
    assert (await here.as_(None).delete("/v1/session")).status_code == 401


STRANGE: list[dict[str, str]] = [
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
OWN: list[dict[str, str]] = [
    {},
    {"Origin": "http://carrel"},
    {"Origin": "https://carrel"},
    {"Origin": "http://CARREL", "Sec-Fetch-Site": "same-origin"},
]


@pytest.mark.parametrize("said", STRANGE)
async def test_a_page_of_another_site_changes_nothing(here: FullApp, said: dict[str, str]) -> None:
    owner = await here.owner()
    browser = await signed_in(here, owner)
    for method, url, body in (
        ("PUT", f"{FILES}/SOUL.md", SAID),
        ("POST", "/graphql", {"query": "{ __typename }"}),
        ("DELETE", "/v1/session", None),
        ("POST", "/v1/session", {"token": token_of(owner)}),
        ("POST", "/v1/nowhere", None),
    ):
        done = await browser.request(method, url, json=body, headers={**OURS, **said})
        assert done.status_code == 403, (method, url)
        assert "origin" in done.json()["message"]
        assert "set-cookie" not in done.headers
    assert (await browser.get(FILES, headers=said)).status_code == 200
    before = (await owner.get("/v1/keys")).json()["items"]
    assert [key["name"] for key in before].count("browser") == 1


@pytest.mark.parametrize("said", OWN)
async def test_our_own_page_does(here: FullApp, said: dict[str, str]) -> None:
    owner = await here.owner()
    browser = await signed_in(here, owner)
    put = await browser.put(f"{FILES}/SOUL.md", json=SAID, headers={**OURS, **said})
    assert put.status_code == 200
    again = await browser.post("/v1/session", json={"token": token_of(owner)}, headers=said)
    assert again.status_code == 200
    assert (await browser.delete("/v1/session", headers={**OURS, **said})).status_code == 204


@pytest.mark.parametrize("mark", [{}, {"X-Carrel-Csrf": "0"}, {"X-Carrel-Csrf": ""}])
async def test_without_the_mark_of_our_page_a_cookie_changes_nothing(
    here: FullApp, mark: dict[str, str]
) -> None:
    browser = await signed_in(here, await here.owner())
    ways = (("PUT", f"{FILES}/SOUL.md"), ("DELETE", "/v1/session"), ("POST", "/graphql"))
    for method, url in ways:
        done = await browser.request(method, url, json=SAID, headers=mark)
        assert done.status_code == 403
        assert done.json()["error"] == "forbidden"
        assert "X-Carrel-Csrf: 1" in done.json()["message"]
    assert (await browser.get("/v1/session")).status_code == 200


async def test_over_https_the_cookie_goes_over_https_alone(here: FullApp) -> None:
    owner = await here.owner()
    transport = httpx.ASGITransport(app=here.app)
    async with httpx.AsyncClient(transport=transport, base_url="https://carrel") as browser:
        plain = {"Origin": "http://carrel"}
        body = {"token": token_of(owner)}
        assert (await browser.post("/v1/session", json=body, headers=plain)).status_code == 403
        done = await browser.post("/v1/session", json=body, headers={"Origin": "https://carrel"})
        assert done.headers["set-cookie"].endswith("; Secure")
        gone = await browser.delete("/v1/session", headers=OURS)
        assert gone.headers["set-cookie"].endswith("; Secure")


async def test_a_server_whose_address_is_known_knows_its_origin_behind_a_proxy(
    here: FullApp,
) -> None:
    owner = await here.owner()
    settings = load({"public_url": "https://desk.example.com/"}, environ={}, file=File("none"))
    known = authenticator(here.ports, settings)
    app = create_app(
        here.ports, endpoints(settings), known, metrics=Metrics(), site=site_settings(settings)
    )
    body = {"token": token_of(owner)}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://inside:8787"
    ) as browser:
        ours = {"Origin": "https://desk.example.com"}
        done = await browser.post("/v1/session", json=body, headers=ours)
        assert done.status_code == 200
        assert done.headers["set-cookie"].endswith("; Secure")
        kept = {"Cookie": f"{SESSION_COOKIE}={done.cookies[SESSION_COOKIE]}", **OURS}
        put = await browser.put(f"{FILES}/A.md", json=SAID, headers={**kept, **ours})
        assert put.status_code == 200
        other = {"Origin": "https://desk.example.com.evil.example"}
        put = await browser.put(f"{FILES}/A.md", json=SAID, headers={**kept, **other})
        assert put.status_code == 403


def test_an_address_that_is_none_is_nobodys_origin() -> None:
    for url in ("https://[carrel", "carrel.example", "x"):
        with pytest.raises(Forbidden):
            SiteSettings(url).require_same_origin({b"origin": b"://", b"host": b"carrel"}, False)


@given(st.text(st.characters(codec="latin-1")), st.text(st.characters(codec="latin-1")))
def test_no_cookie_header_breaks_the_reading_of_it(before: str, after: str) -> None:
    raw = f"{before}; {SESSION_COOKIE}=x; {after}".encode("latin-1")
    found = find_cookie({b"cookie": raw}, SESSION_COOKIE)
    assert found is not None
    assert find_cookie({b"cookie": f"a=b,{SESSION_COOKIE}=x".encode()}, SESSION_COOKIE) == "x"


@given(st.binary(), st.sampled_from(["PUT", "POST", "PATCH", "DELETE", "X"]), st.booleans())
def test_no_origin_but_our_own_changes_anything(origin: bytes, method: str, https: bool) -> None:
    headers = {b"cookie": b"carrel_session=x", b"x-carrel-csrf": b"1", b"host": b"carrel"}
    ours = origin.lower() in {b"https://carrel", b"http://carrel"}
    if not ours:
        with pytest.raises(Forbidden):
            SiteSettings().with_session_token({**headers, b"origin": origin}, method, https)
    assert b"authorization" in SiteSettings().with_session_token(headers, method, https)


async def test_tabs_that_sign_in_at_once_all_succeed(here: FullApp) -> None:
    body = {"token": token_of(await here.owner())}
    tabs = [here.as_(None) for _ in range(4)]
    done = await asyncio.gather(*(tab.post("/v1/session", json=body) for tab in tabs))
    assert [one.status_code for one in done] == [200] * 4
    assert len({tab.cookies[SESSION_COOKIE] for tab in tabs}) == 4
