"""Writes whose response was lost: a retry gets the response of the first request."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, open_full_app

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    return await server.owner()


class Killed(BaseException):
    """The process died between the commit and the response."""


@pytest.mark.parametrize("root", ["host/workspace", "agents/marco"])
async def test_a_create_retried_after_a_crash_gets_the_response_of_the_first(
    server: FullApp, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    body = {"slug": "marco", "name": "Marco"}
    assert (await ada.post("/v1/agents", json=body)).is_success

    async def die(*_: object) -> None:
        raise Killed

    async def create(name: str, key: str) -> httpx.Response:
        headers = {"If-None-Match": "*", "Idempotency-Key": key}
        body = {"content": "I am {{AGENT_NAME}}"}
        return await ada.put(f"/v1/{root}/files/{name}", json=body, headers=headers)

    expected = (await create("a.md", "k1")).json()
    with monkeypatch.context() as crash, pytest.raises(Killed):
        crash.setattr(server.ports.idempotency, "complete", die, raising=False)
        await create("b.md", "k2")

    for _ in range(2):
        retried = await create("b.md", "k2")
        assert retried.status_code == 200
        assert retried.headers["openwop-idempotent-replay"] == "true"
        assert retried.headers["etag"] == retried.json()["etag"]
        names = ("updatedAt", "fileId")
        varying = {"path": "b.md"} | {
            name: retried.json()[name] for name in names if name in expected
        }
        assert retried.json() == expected | varying


async def lose(
    server: FullApp, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, **request: Any
) -> None:
    """Send a request whose process dies between its commit and its response."""

    async def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as crash, pytest.raises(Killed):
        crash.setattr(server.ports.idempotency, "complete", die, raising=False)
        await client.request(**request)


async def test_a_lost_response_does_not_depend_on_what_others_wrote_since(
    server: FullApp, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, key = "/v1/host/workspace/files/a.md", {"Idempotency-Key": "k"}
    create: dict[str, Any] = {
        "method": "PUT",
        "url": url,
        "json": {"content": "mine"},
        "headers": key | {"If-None-Match": "*"},
    }
    await lose(server, ada, monkeypatch, **create)
    first = (await ada.get(url)).json()
    await ada.put(url, json={"content": "of another"})
    await ada.delete(url)

    retried = await ada.request(**create)
    assert (retried.status_code, retried.json()) == (200, first)
    assert (await ada.get(url)).status_code == 404, "nothing is written again"

    replace: dict[str, Any] = create | {
        "json": {"content": "new"},
        "headers": {"Idempotency-Key": "k2"},
    }
    current = (await ada.put(url, json={"content": "current"})).headers["etag"]
    replace["headers"] |= {"If-Match": current}
    await lose(server, ada, monkeypatch, **replace)
    retried = await ada.request(**replace)
    assert (retried.status_code, retried.json()["content"]) == (200, "new")
    delete: dict[str, Any] = {"method": "DELETE", "url": url, "headers": {"Idempotency-Key": "k3"}}
    delete["headers"]["If-Match"] = retried.headers["etag"]
    await lose(server, ada, monkeypatch, **delete)
    assert (await ada.request(**delete)).status_code == 204


async def test_lost_responses_of_reviews_and_restores_are_rebuilt(
    server: FullApp, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent whose responses are lost gets those of another that lost none."""
    path = "GUARDRAILS.md"
    await ada.post("/v1/templates", json={"slug": "support", "name": "Support"})
    await ada.put(f"/v1/templates/support/files/{path}", json={"content": "one"})
    for slug in ("calm", "lost"):
        agent = {"slug": slug, "name": slug.title(), "templateId": "support"}
        assert (await ada.post("/v1/agents", json=agent)).is_success
        for text in ("first", "second"):
            await ada.put(f"/v1/agents/{slug}/files/notes/a.md", json={"content": text})
    await ada.put(f"/v1/templates/support/files/{path}", json={"content": "two"})

    operations: list[tuple[str, dict[str, Any]]] = [
        (f"pins/{path}/accept", {"sha256": hashlib.sha256(b"two").hexdigest()}),
        (f"pins/{path}/rollback", {}),
        ("files/notes/a.md/restore", {"version": 1}),
    ]
    for number, (operation, body) in enumerate(operations):
        expected = await ada.post(f"/v1/agents/calm/{operation}", json=body)
        assert expected.status_code == 200, expected.text
        request: dict[str, Any] = {
            "method": "POST",
            "url": f"/v1/agents/lost/{operation}",
            "json": body,
            "headers": {"Idempotency-Key": f"k{number}"},
        }
        await lose(server, ada, monkeypatch, **request)
        retried = await ada.request(**request)
        assert retried.status_code == 200, retried.text
        varying = retried.json().keys() & {"updatedAt", "etag", "fileId"}
        assert retried.json() == expected.json() | {name: retried.json()[name] for name in varying}
