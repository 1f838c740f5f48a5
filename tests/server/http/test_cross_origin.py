"""CORS: web pages of configured origins call the API with a token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from tests.support.full_app import FILES, FullApp, open_full_app

from carrel.server.http.app import create_app
from carrel.server.http.metrics import Metrics
from carrel.settings import Settings, SettingsError, load
from carrel.wiring.server_app import (
    authenticator,
    cross_origin_access,
    endpoints,
    site_settings,
)

pytestmark = pytest.mark.anyio

PAGE = "https://app.example.com"
PREFLIGHT = {
    "Origin": PAGE,
    "Access-Control-Request-Method": "PUT",
    "Access-Control-Request-Headers": "authorization,if-match,content-type",
}


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


def app_with(server: FullApp, origins: str) -> httpx.AsyncClient:
    """A client without a token of an app that allows these origins."""
    settings = load({"cors_origins": origins}, environ={}, file=File("missing.toml"))
    app = create_app(
        server.ports,
        endpoints(settings),
        authenticator(server.ports, settings),
        metrics=Metrics(),
        site=site_settings(settings),
        cross_origin=cross_origin_access(settings),
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://carrel")


def cors_headers(answer: httpx.Response) -> dict[str, str]:
    return {name: v for name, v in answer.headers.items() if name.startswith("access-control-")}


async def test_nothing_is_shared_by_default(server: FullApp) -> None:
    owner = await server.owner()
    client = app_with(server, "")
    headers = {"Authorization": owner.headers["Authorization"], "Origin": PAGE}
    answer = await client.get(FILES, headers=headers)
    assert (answer.status_code, cors_headers(answer)) == (200, {})
    assert "vary" not in answer.headers
    assert cors_headers(await client.options(FILES, headers=PREFLIGHT)) == {}


async def test_a_page_of_an_allowed_origin_reads_and_writes_with_a_token(server: FullApp) -> None:
    owner = await server.owner()
    client = app_with(server, f"https://other.example, {PAGE}/")
    url = f"{FILES}/AGENTS.md"
    preflight = await client.options(url, headers=PREFLIGHT)
    assert (preflight.status_code, preflight.content) == (204, b"")
    assert preflight.headers["access-control-allow-origin"] == PAGE
    assert preflight.headers["access-control-allow-methods"] == "PUT"
    assert preflight.headers["access-control-allow-headers"] == (
        "authorization,if-match,content-type"
    )
    headers = {"Authorization": owner.headers["Authorization"], "Origin": PAGE}
    written = await client.put(url, json={"content": "Hi.\n"}, headers=headers)
    assert written.status_code == 200
    assert written.headers["access-control-allow-origin"] == PAGE
    assert "ETag" in written.headers["access-control-expose-headers"]
    assert "Origin" in written.headers["vary"]


async def test_a_page_may_read_the_headers_of_files(server: FullApp) -> None:
    owner = await server.owner()
    client = app_with(server, PAGE)
    headers = {"Authorization": owner.headers["Authorization"], "Origin": PAGE}
    created = await owner.post("/v1/agents", json={"slug": "kate", "name": "Kate"})
    url = f"/v1/agents/{created.json()['id']}/files"
    body = b"ghp_" + b"a1B2" * 9
    sent = {**headers, "Content-Type": "application/octet-stream"}
    written = await client.put(f"{url}/a.bin", content=body, headers=sent)
    read = await client.get(
        f"{url}/a.bin", headers={**headers, "Accept": "application/octet-stream"}
    )
    names: set[str] = set()
    for answer in (written, read, await client.get(url, headers=headers)):
        assert answer.status_code == 200, answer.text
        exposed = answer.headers["access-control-expose-headers"].lower().split(", ")
        own = {name for name in answer.headers if name.startswith("carrel-")}
        assert own <= set(exposed)
        names |= own
    assert names >= {"carrel-redacted", "carrel-version"}


async def test_errors_reach_the_page_too(server: FullApp) -> None:
    client = app_with(server, PAGE)
    for path, status in ((FILES, 401), ("/v1/missing", 401), ("/missing", 404)):
        answer = await client.get(path, headers={"Origin": PAGE})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, PAGE)
    preflight = await client.options("/v1/missing", headers=PREFLIGHT)
    assert preflight.status_code == 204


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "http://app.example.com", f"{PAGE}:8443", f"{PAGE}.evil.example"],
)
async def test_another_origin_gets_no_headers(server: FullApp, origin: str) -> None:
    client = app_with(server, PAGE)
    for answer in (
        await client.options(FILES, headers={**PREFLIGHT, "Origin": origin}),
        await client.get(FILES, headers={"Origin": origin}),
        await client.get(FILES),
    ):
        assert cors_headers(answer) == {}
        assert answer.headers["vary"] == "Origin"


async def test_cookies_are_never_shared(server: FullApp) -> None:
    client = app_with(server, PAGE)
    for answer in (
        await client.options(FILES, headers=PREFLIGHT),
        await client.get(FILES, headers={"Origin": PAGE, "Cookie": "carrel_session=x"}),
    ):
        assert "access-control-allow-credentials" not in answer.headers


async def test_the_overlay_endpoint_keeps_its_own_headers(server: FullApp) -> None:
    client = app_with(server, PAGE)
    answer = await client.post("/api/workspaces/files", json={}, headers={"Origin": PAGE})
    assert answer.headers.get_list("access-control-allow-origin") == ["*"]


@pytest.mark.parametrize(
    "text", ["*", "null", "app.example.com", "https://a.example/path", "https://*.example", "a,b"]
)
def test_a_setting_that_is_no_origin_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="CARREL_CORS_ORIGINS"):
        cross_origin_access(Settings(cors_origins=text))
