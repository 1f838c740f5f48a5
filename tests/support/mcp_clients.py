"""A server with MCP in a thread, and the protocol's own client."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

import httpx
import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent
from tests.support.live_server import serving
from tests.support.server_process import PLAIN

from carrel.settings import load
from carrel.wiring.server_app import ServerApp

OWNER = "carrel_owner_of_the_mcp_tests"
PLATFORM = "carrel_platform_of_the_mcp_tests"
MODERN = "2026-07-28"
MODES = ("legacy", MODERN)
"""With a handshake as until 2025, and without as since 2026."""


@dataclass(frozen=True)
class McpServer:
    """A running server."""

    url: str

    def as_(self, token: str | None = OWNER) -> httpx.AsyncClient:
        head = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(base_url=self.url, headers=head, timeout=60, verify=PLAIN)

    async def agent(self, **facts: Any) -> str:
        """Create an agent and return its slug."""
        slug = "a" + secrets.token_hex(6)
        async with self.as_() as owner:
            response = await owner.post("/v1/agents", json={"slug": slug, "name": slug, **facts})
            assert response.status_code == 201, response.text
        return slug

    async def key(self, **facts: Any) -> str:
        async with self.as_() as owner:
            response = await owner.post("/v1/keys", json={"name": "a key", **facts})
            assert response.status_code == 201, response.text
            return str(response.json()["key"])

    async def own_key(self, slug: str) -> str:
        """The key of an agent."""
        async with self.as_() as owner:
            id = (await owner.get(f"/v1/agents/{slug}")).json()["id"]
        return await self.key(kind="agent", agentId=id)

    async def foreign_token(self) -> str:
        """The token of the owner of another tenant."""
        slug = "t" + secrets.token_hex(6)
        body = {"slug": slug, "name": slug, "owner": {"name": "Eve", "email": f"e@{slug}.example"}}
        async with self.as_(PLATFORM) as platform:
            response = await platform.post("/v1/tenants", json=body)
            assert response.status_code == 201, response.text
            return str(response.json()["ownerToken"])

    @asynccontextmanager
    async def client(
        self, slug: str, mode: str = MODERN, token: str = OWNER, query: str = "", **more: Any
    ) -> AsyncIterator[Client]:
        head = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=head, timeout=60, verify=PLAIN) as http:
            wire = streamable_http_client(f"{self.url}/mcp/agents/{slug}{query}", http_client=http)
            async with Client(wire, mode=mode, **more) as client:
                yield client


@contextmanager
def run_mcp_server(directory: File) -> Iterator[McpServer]:
    settings = {"data": str(directory), "owner_token": OWNER, "platform_token": PLATFORM}
    loaded = load({**settings, "log_level": "error"}, environ={}, file=File("no such file"))
    with serving(_with_tenant(ServerApp(loaded), loaded)) as port:
        yield McpServer(f"http://127.0.0.1:{port}")


def _with_tenant(server: ServerApp, settings: Any) -> Any:
    """The server, with its first tenant created before the first request."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            from carrel.actions.accounts import tenants  # noqa: PLC0415 - imported only when needed
            from carrel.wiring.ports import open_ports  # noqa: PLC0415 - as above

            async with open_ports(settings) as opened:
                await tenants.bootstrap(opened.ports, settings.owner_token)
        await server(scope, receive, send)

    return app


def meta(**values: Any) -> Any:
    """Metadata of a request."""
    return {f"carrel/{name}": value for name, value in values.items()}


def text_of(result: Any) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text
