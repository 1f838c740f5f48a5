"""Client over a store in the same process, without a server or the environment."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path as FilePath
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from carrel.actions.accounts import tenants
from carrel.actions.approvals import approvals
from carrel.core.access import PLATFORM, Actor, Role
from carrel.core.approvals import ApprovalStatus
from carrel.ports import Ports
from carrel.server.http.cookies import SiteSettings
from carrel.server.http.endpoint import Endpoint, Request
from carrel.server.http.local_app import LocalApp
from carrel.server.http.response import Response
from carrel.server.rest.accounts import invitations
from carrel.server.rest.agents import connections
from carrel.server.rest.sandbox.approvals import answer, approval_to_model
from carrel.settings import Settings, load
from carrel.tools.approved_calls import resume
from carrel.wiring.ports import open_ports
from carrel.wiring.rest_endpoints import REST_ENDPOINTS
from carrel_client.client import AsyncClient
from carrel_client.errors import NotFound
from carrel_client.in_process import InProcessDriver

_SQLITE_PREFIX: Final = "sqlite:///"
_AUTHOR: Final = "in-process"
"""Author in the history: a program that opens the store has no key."""
_CREATE_TENANT: Final = ("POST", b"/v1/tenants")


class _MsgspecCodec:
    encode: Final = staticmethod(msgspec.json.Encoder().encode)
    decode: Final = staticmethod(msgspec.json.Decoder().decode)


class InProcessClient(AsyncClient):
    """Client with the rights of a tenant's owner, over a store in this process."""

    _ports: Ports
    _app: LocalApp
    _other_tenants: list[InProcessClient]

    @classmethod
    async def of_tenant(
        cls, ports: Ports, app: LocalApp, slug: str, server: str
    ) -> InProcessClient:
        """Return the client of a tenant. Raises NotFound."""
        if await tenants.find_by_slug(ports, slug) is None:
            raise NotFound(f"no such tenant: {slug}", status=404, code="not_found")
        owner = await tenants.get_first_owner(ports, slug)
        actor = Actor(owner.tenant, _AUTHOR, role=Role.OWNER, person=owner.id)
        return cls.of_actor(ports, app, actor, server)

    @classmethod
    def of_actor(cls, ports: Ports, app: LocalApp, actor: Actor, server: str) -> InProcessClient:
        def respond(
            target: tuple[str, bytes],
            query: bytes,
            headers: Mapping[bytes, bytes],
            body: bytes | AsyncIterator[bytes],
        ) -> Awaitable[Response]:
            caller = PLATFORM if target == _CREATE_TENANT else actor
            return app.respond(caller, target, query, headers, body)

        client = cls.over(InProcessDriver(respond, _MsgspecCodec()), server)
        client._ports, client._app, client._other_tenants = ports, app, []
        return client

    async def tenant(self, slug: str) -> InProcessClient:
        """Return the client of another tenant, closed with this one. Raises NotFound."""
        client = await InProcessClient.of_tenant(self._ports, self._app, slug, self._server)
        self._other_tenants.append(client)
        return client

    async def aclose(self) -> None:
        for client in self._other_tenants:
            await client.aclose()
        await super().aclose()


@asynccontextmanager
async def open_in_process(
    location: str | os.PathLike[str], options: Mapping[str, Any]
) -> AsyncIterator[InProcessClient]:
    """Open a store and yield the client of its first tenant, created if absent.

    Raises SettingsError.
    """
    settings = settings_for(location, options)
    async with open_ports(settings) as store:
        ports = store.ports
        await tenants.bootstrap(ports, settings.owner_token or None)
        site = SiteSettings(settings.public_url)
        site_endpoints = (*invitations.endpoints(site), *connections.endpoints(site))
        endpoints = (*REST_ENDPOINTS, *site_endpoints)
        app = LocalApp(ports, tuple(map(_run_approved_calls_inline, endpoints)))
        async with await InProcessClient.of_tenant(
            ports, app, tenants.DEFAULT_TENANT_SLUG, _server_name(settings)
        ) as client:
            yield client


def _run_approved_calls_inline(endpoint: Endpoint) -> Endpoint:
    """Run an approved call with the answer, since no server may be running."""
    if endpoint is not answer:
        return endpoint

    async def answer_and_run(request: Request[Any, Any]) -> Response:
        await endpoint.run(request)
        ports, actor, approval_id = request.ports, request.actor, request.params["id"]
        approval = await approvals.get(ports, actor, approval_id)
        if approval.status is ApprovalStatus.APPROVED:
            await resume(ports, approval.tenant, approval.id)
            approval = await approvals.get(ports, actor, approval_id)
        return Response.json(await approval_to_model(ports, approval))

    return dataclasses.replace(endpoint, run=answer_and_run)


def settings_for(location: str | os.PathLike[str], options: Mapping[str, Any]) -> Settings:
    """Return settings for a directory or database URL.

    For a SQLite URL the vault key is in the file's directory.
    """
    name = os.fspath(location)
    if "://" not in name:
        defaults = {"data": name}
    else:
        defaults = {"database_url": name}
        if name.startswith(_SQLITE_PREFIX):
            defaults["data"] = str(FilePath(name.removeprefix(_SQLITE_PREFIX)).parent)
    return load({**defaults, **options}, environ={}, file=FilePath(os.devnull))


def _server_name(settings: Settings) -> str:
    """Return the store's address without credentials."""
    if file := settings.sqlite_file:
        return FilePath(file).resolve().as_uri()
    url = urlsplit(settings.database_url)
    return f"{url.scheme}://{url.hostname or ''}{url.path}"
