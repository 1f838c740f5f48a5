"""The REST endpoints of tenants and their records over temporary ports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path as File
from types import ModuleType
from typing import Any

import httpx
from tests.support.stores import open_ports
from tests.support.tenants import sign_in_as

from carrel.actions.accounts import credentials
from carrel.core.access import Actor
from carrel.core.errors import Unauthenticated
from carrel.core.store.idempotency import IdempotencyKey, StoredResponse
from carrel.ports import IdempotencyStore, Ports
from carrel.server.http.app import HttpApp, create_app
from carrel.server.http.cookies import SiteSettings
from carrel.server.http.endpoint import Endpoint, Headers
from carrel.server.http.metrics import Metrics
from carrel.server.rest.accounts import (
    audit,
    invitations,
    keys,
    people,
    policy,
    secrets,
    sign_in,
    tenants,
)
from carrel.server.rest.agents import (
    agents,
    dreams,
    git,
    memories,
    prompts,
    sessions,
    templates,
    tools,
)
from carrel.server.rest.files import defaults, files, history, overlay_api, pins
from carrel.server.rest.sandbox import account_records

ENDPOINT_MODULES: tuple[ModuleType, ...] = (
    account_records,
    agents,
    pins,
    memories,
    dreams,
    audit,
    defaults,
    overlay_api,
    files,
    git,
    history,
    keys,
    people,
    policy,
    prompts,
    secrets,
    sessions,
    sign_in,
    templates,
    tenants,
    tools,
)
PLATFORM = "platform-token"


@dataclass(frozen=True)
class RestServer:
    ports: Ports
    app: HttpApp

    def as_(self, token: str | None) -> httpx.AsyncClient:
        """A client with this token, or without one."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(app=self.app), base_url="http://carrel", headers=headers
        )

    async def create_tenant(self, slug: str = "acme") -> httpx.AsyncClient:
        """A client of a new tenant's owner."""
        body = {"slug": slug, "name": slug.title(), "owner": {"name": "Ada", "email": f"a@{slug}"}}
        response = await self.as_(PLATFORM).post("/v1/tenants", json=body)
        assert response.status_code == 201, response.text
        return self.as_(response.json()["ownerToken"])

    async def key(self, maker: httpx.AsyncClient, **body: Any) -> httpx.AsyncClient:
        """A client with a new key."""
        response = await maker.post("/v1/keys", json={"name": "a key", "kind": "service", **body})
        assert response.status_code == 201, response.text
        return self.as_(response.json()["key"])

    async def person(self, owner: httpx.AsyncClient, id: str) -> httpx.AsyncClient:
        """A client with the token of an invited person."""
        return self.as_(await sign_in_as(owner, id))


class ForgetfulIdempotencyStore:
    """Idempotency store that never stores a response, as if the server had crashed before."""

    def __init__(self, receipts: IdempotencyStore) -> None:
        self.claim, self.release, self.unmark = receipts.claim, receipts.release, receipts.unmark

    async def complete(self, key: IdempotencyKey, response: StoredResponse) -> None:
        return None


@asynccontextmanager
async def open_rest_server(
    directory: File, *, forgetful: bool = False, more: Sequence[Endpoint] = ()
) -> AsyncIterator[RestServer]:
    async with open_ports(directory) as opened:
        receipts = (
            ForgetfulIdempotencyStore(opened.idempotency) if forgetful else opened.idempotency
        )
        ports = replace(opened, idempotency=receipts)

        async def authenticate(headers: Headers) -> Actor:
            _, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
            if token == PLATFORM:
                return Actor("", "platform", frozenset(), platform=True)
            if not token:
                raise Unauthenticated(credentials.INVALID_CREDENTIAL)
            return await credentials.authenticate(ports, token)

        endpoints = [
            endpoint for record_type in ENDPOINT_MODULES for endpoint in record_type.ENDPOINTS
        ]
        endpoints += invitations.endpoints(SiteSettings())
        yield RestServer(
            ports, create_app(ports, [*endpoints, *more], authenticate, metrics=Metrics())
        )
