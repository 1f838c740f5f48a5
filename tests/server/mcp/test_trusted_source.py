"""MCP accepts requests that name this server and come from no foreign web page."""

from __future__ import annotations

import pytest
from tests.support.mcp_clients import McpServer

from carrel.core.errors import Forbidden
from carrel.server.http.cookies import SiteSettings
from carrel.settings import Settings
from carrel.wiring.server_app import site_settings

pytestmark = pytest.mark.anyio
SITE = site_settings(
    Settings(
        public_url="https://carrel.example.com",
        allowed_hosts="carrel.internal, Desk.Example",
        allowed_origins="https://app.example.com/",
    )
)


def is_trusted(site: SiteSettings, host: str, origin: str | None = None) -> bool:
    headers = {b"host": host.encode()} | ({} if origin is None else {b"origin": origin.encode()})
    try:
        site.require_trusted_source(headers, https=False)
    except Forbidden:
        return False
    return True


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:8787", "a.localhost", "127.0.0.1:8787", "[::1]:8787"),
        *("192.168.1.5:8787", "carrel.example.com", "carrel.example.com.:443"),
        *("carrel.internal:8787", "desk.example"),
    ],
)
def test_names_and_addresses_of_this_server_are_known_hosts(host: str) -> None:
    assert is_trusted(SITE, host)


@pytest.mark.parametrize(
    "host",
    [
        *("", "evil.example", "evil.example:8787", "localhost.evil.example", "notlocalhost"),
        *("carrel.example.com.evil.example", "127.0.0.1.evil.example", "[", "[::1", "a b"),
        "evil.example@localhost.x",
    ],
)
def test_other_names_are_unknown_hosts(host: str) -> None:
    assert not is_trusted(SITE, host)


@pytest.mark.parametrize(
    "origin",
    [
        *("http://localhost:6274", "http://127.0.0.1:3000", "http://[::1]:3000"),
        *("https://carrel.example.com", "https://app.example.com", "http://carrel.internal:8787"),
    ],
)
def test_origins_of_this_server_loopback_and_the_settings_are_trusted(origin: str) -> None:
    assert is_trusted(SITE, "carrel.internal:8787", origin)


@pytest.mark.parametrize(
    "origin",
    [
        *("null", "https://evil.example", "http://app.example.com", "http://carrel.internal"),
        *("http://192.168.1.5", "https://app.example.com.evil.example", "http://[", "x"),
    ],
)
def test_other_origins_are_foreign(origin: str) -> None:
    assert not is_trusted(SITE, "carrel.internal:8787", origin)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:80.evil.example", "127.0.0.1:x", "a@localhost", "localhost/evil.example", "[::1"],
)
def test_a_host_that_is_no_name_or_address_with_a_port_is_unknown(host: str) -> None:
    assert not is_trusted(site_settings(Settings()), host)


def test_an_asterisk_allows_all() -> None:
    site = site_settings(Settings(allowed_hosts="*", allowed_origins="*"))
    assert is_trusted(site, "evil.example", "https://evil.example")
    assert not is_trusted(site_settings(Settings()), "evil.example")


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}]
)
async def test_mcp_refuses_a_foreign_source_before_the_credential(
    server: McpServer, headers: dict[str, str]
) -> None:
    slug = await server.agent()
    for token in ("wrong", None):
        async with server.as_(token) as client:
            refused = await client.post(f"/mcp/agents/{slug}", json={}, headers=headers)
            assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
            unknown = await client.post(f"/mcp/agents/{slug}", json={})
            assert unknown.status_code == 401
