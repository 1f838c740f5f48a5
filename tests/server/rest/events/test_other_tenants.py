"""Nothing that a tenant sees moves when another tenant writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, create_rest_app
from tests.support.stores import open_ports, ports_over

from carrel.actions.accounts.credentials import authenticate
from carrel.actions.events import streams
from carrel.adapters.postgres import open_store
from carrel.core.store.event import EventFilter

pytestmark = pytest.mark.anyio
QUERY = "{ audit { next items { id at by why } } agents { items { id } } runs { items { id } } }"
EXCHANGES = ("date", "x-request-id", "request-id")
"""Headers that differ between any two responses."""

OF_THE_CALLER = {"/", "/v1/keys", "/metrics", "/readyz"}
"""A nonce, the times of the caller's own requests, and the operator's pages."""


@pytest.fixture(params=["sqlite", "postgres"])
async def server(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    if request.param == "postgres":
        async with open_store(request.getfixturevalue("postgres_url")) as store:
            ports = ports_over(store, directory=tmp_path)
            yield FullApp(ports, create_rest_app(ports))
        return
    async with open_ports(tmp_path) as ports:
        yield FullApp(ports, create_rest_app(ports))


async def fill(client: httpx.AsyncClient, name: str) -> None:
    """Write every kind of thing that has an id, a version or a cursor."""
    agent = {"slug": name, "name": name}
    webhook = {"url": f"https://{name}.example", "events": ["workspace.updated"]}
    for method, path, body in (
        ("POST", "/v1/templates", agent),
        ("POST", "/v1/agents", {**agent, "isShared": True}),  # reading it is not audited
        ("PUT", f"/v1/agents/{name}/files/notes/a.md", {"content": "x"}),
        ("PUT", f"/v1/defaults/files/{name}.md", {"content": "x"}),
        ("POST", f"/v1/agents/{name}/memories", {"content": f"remember {name}"}),
        ("POST", f"/v1/agents/{name}/sessions", {}),
        ("POST", "/v1/runs", {"agentId": name}),
        ("PUT", f"/v1/agents/{name}/items/{name}", {"value": "x"}),
        ("POST", "/v1/keys", {"name": name, "kind": "service"}),
        ("POST", "/v1/webhooks", webhook),
        ("POST", "/accounts/me/workspaces", {"name": name}),
        ("POST", "/accounts/me/sandboxes", {"name": name, "config": {}}),
    ):
        response = await client.request(method, path, json=body)
        assert response.status_code < 300, (path, response.text)


async def load_views(server: FullApp, client: httpx.AsyncClient) -> dict[str, Any]:
    """Every list of the API with its headers, GraphQL, and the start of the event stream."""
    described = (await client.get("/openapi.json")).json()["paths"]
    paths = [path for path, methods in described.items() if "get" in methods and "{" not in path]
    paths += [
        path.replace("{id}", "first")
        for path, methods in described.items()
        if path.startswith("/v1/agents/{id}/") and "get" in methods and path.count("{") == 1
    ]
    views: dict[str, Any] = {}
    for path in paths:
        if path.endswith("/events") or path in OF_THE_CALLER:
            continue
        response = await client.get(path, params={"limit": "1"} if path == "/v1/audit" else {})
        headers = {k: v for k, v in response.headers.items() if k not in EXCHANGES}
        views[path] = (response.status_code, response.content, headers)
    views["graphql"] = (await client.post("/graphql", json={"query": QUERY})).json()
    actor = await authenticate(server.ports, client.headers["Authorization"].partition(" ")[2])
    views["start"], batches = await streams.listen(server.ports, EventFilter(actor.tenant))
    await batches.aclose()
    assert len(views) > 20
    return views


async def test_what_a_tenant_sees_does_not_move_with_the_writes_of_another(
    server: FullApp,
) -> None:
    ours, theirs = await server.owner("acme"), await server.owner("globex")
    await fill(ours, "first")
    assert await put_version(ours, "one") == 1
    before = await load_views(server, ours)
    for name in ("first", "second", "third"):
        await fill(theirs, name)
    after = await load_views(server, ours)

    assert {path for path in before if before[path] != after[path]} == set()
    assert await put_version(ours, "two") == 2


async def put_version(client: httpx.AsyncClient, content: str) -> int:
    response = await client.put("/v1/agents/first/files/notes/b.md", json={"content": content})
    assert response.status_code == 200, response.text
    return int(response.json()["version"])


async def test_request_ids_are_not_counted(server: FullApp) -> None:
    client = server.as_(None)
    ids = [(await client.get("/healthz")).headers["x-request-id"] for _ in range(3)]
    assert len({id[:12] for id in ids}) == 3
