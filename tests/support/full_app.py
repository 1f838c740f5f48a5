"""The complete REST API over temporary ports, assembled as wiring does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

import httpx
from tests.support.stores import open_ports

from carrel.actions.accounts import keys, tenants
from carrel.actions.accounts.credentials import authenticate
from carrel.actions.accounts.keys import KeySpec
from carrel.core.access import CredentialKind, Permission
from carrel.ports import Ports
from carrel.server.http.app import HttpApp, Mount, create_app
from carrel.server.http.cookies import SiteSettings
from carrel.server.http.metrics import Metrics
from carrel.server.mcp import http as mcp_http
from carrel.settings import Settings, load
from carrel.wiring import ports as wiring_ports
from carrel.wiring.server_app import authenticator, endpoints

FILES = "/v1/host/workspace/files"


@dataclass(frozen=True)
class FullApp:
    ports: Ports
    app: HttpApp

    def as_(self, token: str | None) -> httpx.AsyncClient:
        """A client with this token, or without one."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.app), base_url="http://carrel", headers=headers
        )

    async def owner(self, slug: str = "acme") -> httpx.AsyncClient:
        """The owner of a new tenant."""
        created = await tenants.create(self.ports, slug, slug.title(), "Ada", f"ada@{slug}.example")
        return self.as_(created.token)

    async def key(
        self, owner: httpx.AsyncClient, *scopes: Permission, **bound: Any
    ) -> httpx.AsyncClient:
        """A service key of the owner's tenant, with these permissions or the default ones."""
        actor = await authenticate(self.ports, owner.headers["Authorization"].partition(" ")[2])
        permissions = frozenset(scopes) if scopes else None
        spec = KeySpec("a service", CredentialKind.SERVICE, scopes=permissions, **bound)
        return self.as_((await keys.create(self.ports, actor, spec)).token)


async def create_tool_config(owner: httpx.AsyncClient) -> dict[str, Any]:
    """The part of an agent's config that gives it all tools, without approvals."""
    body = {"name": "box", "config": {"permissionMode": "bypass", "persistent": True}}
    sandbox = (await owner.post("/accounts/me/sandboxes", json=body)).json()["sandboxId"]
    workspace = (await owner.post("/accounts/me/workspaces", json={"name": "notes"})).json()
    attached = {"name": "notes", "workspaceId": workspace["workspaceId"]}
    return {"sandbox": sandbox, "workspaces": [attached], "workspaceGit": {"enabled": True}}


def create_rest_app(ports: Ports, mounts: Sequence[Mount] = ()) -> HttpApp:
    settings = load(environ={}, file=File("no such file"))
    authenticate = authenticator(ports, settings)
    return create_app(ports, endpoints(settings), authenticate, metrics=Metrics(), mounts=mounts)


@asynccontextmanager
async def open_full_app(directory: File) -> AsyncIterator[FullApp]:
    async with open_ports(directory) as ports:
        yield FullApp(ports, create_rest_app(ports))


def settings_in(directory: File, **changes: str) -> Settings:
    """Settings of a data directory, with these changes and no others."""
    variables = {f"CARREL_{name.upper()}": value for name, value in changes.items()}
    return load(environ={"CARREL_DATA": str(directory), **variables}, file=File("no such file"))


@asynccontextmanager
async def open_configured_app(settings: Settings, *, mcp: bool = False) -> AsyncIterator[FullApp]:
    """The REST API, and MCP if asked for, over the store that the settings name."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(wiring_ports.open_ports(settings))
        mounts = []
        if mcp:
            site = SiteSettings(hosts=frozenset({"carrel"}))
            authenticate = authenticator(store.ports, settings)
            mount = mcp_http.mount(store.ports, authenticate, asyncio.Event(), site)
            mounts.append(await stack.enter_async_context(mount))
        yield FullApp(store.ports, create_rest_app(store.ports, mounts))
