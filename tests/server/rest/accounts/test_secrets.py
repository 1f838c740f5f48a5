"""Secrets over REST: written and never returned."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from tests.support.rest_client import RestServer

pytestmark = pytest.mark.anyio
VALUE = "hunter2-hunter2"


async def test_a_secret_is_stored_listed_deleted_and_never_returned(
    owner: httpx.AsyncClient,
) -> None:
    url = "/v1/secrets/db-password"
    stored = await owner.put(url, json={"value": VALUE})
    assert (stored.status_code, sorted(stored.json())) == (200, ["createdAt", "id", "updatedAt"])
    assert (await owner.get(url)).json() == stored.json()
    again = await owner.put(url, json={"value": VALUE + "!"})
    assert again.json()["createdAt"] == stored.json()["createdAt"]
    listed = await owner.get("/v1/secrets")
    assert listed.json() == {"items": [again.json()], "next": None, "total": 1}
    responses = [stored, again, listed, await owner.get(url), await owner.get("/v1/audit")]
    assert not [
        answer for answer in responses if "hunter2" in answer.text or "sealed" in answer.text
    ]
    assert (await owner.delete(url)).status_code == 204
    assert (await owner.get(url)).status_code == 404
    assert (await owner.delete(url)).status_code == 404


async def test_a_secret_is_redacted_from_the_next_write_on(owner: httpx.AsyncClient) -> None:
    await owner.put("/v1/secrets/token", json={"value": VALUE})
    body = {"content": f"it is {VALUE}"}
    written = await owner.put("/v1/host/workspace/files/a.md", json=body)
    assert written.json()["content"] == "it is [REDACTED:token]"


@pytest.mark.parametrize("type", [f"text/{VALUE}", f"text/plain; note={VALUE}"])
async def test_a_content_type_that_contains_a_secret_is_400_and_not_echoed(
    owner: httpx.AsyncClient, type: str
) -> None:
    await owner.put("/v1/secrets/token", json={"value": VALUE})
    file = "/v1/host/workspace/files/a.md"
    refused = await owner.put(file, json={"content": "a", "contentType": type})
    assert (refused.status_code, VALUE in refused.text) == (400, False)
    assert (await owner.get(file)).status_code == 404


async def test_an_invalid_secret_is_400_and_not_echoed(owner: httpx.AsyncClient) -> None:
    for id, value in [
        ("token", "short-1"),
        ("token", " " * 20),
        ("token", "secret-x" * 9000),
        ("token", "\u00e9secret-" * 8000),
        ("a%20b", VALUE),
        ("a%2Fb", VALUE),
        ("a%00", VALUE),
        ("a%0A", VALUE),
        ("x" * 129, VALUE),
    ]:
        answer = await owner.put(f"/v1/secrets/{id}", json={"value": value})
        assert answer.status_code == 400, (id, answer.text)
        assert value.strip() == "" or value not in answer.text
    for body in ({}, {"value": None}, {"value": 12345678}, {"value": VALUE, "id": "x"}):
        assert (await owner.put("/v1/secrets/token", json=body)).status_code == 400
    assert (await owner.get("/v1/secrets")).json()["items"] == []


async def test_secrets_need_tenant_admin(server: RestServer, owner: httpx.AsyncClient) -> None:
    await owner.put("/v1/secrets/token", json={"value": VALUE})
    reader = await server.key(owner, scopes=["tenant:read", "workspace:write"])
    other_owner = await server.create_tenant("globex")
    assert (await reader.get("/v1/secrets")).status_code == 403
    assert (await reader.get("/v1/secrets/token")).status_code == 403
    assert (await reader.put("/v1/secrets/token", json={"value": VALUE})).status_code == 403
    assert (await reader.delete("/v1/secrets/token")).status_code == 403
    assert (await other_owner.get("/v1/secrets")).json()["items"] == []
    assert (await other_owner.get("/v1/secrets/token")).status_code == 404
    assert (await other_owner.delete("/v1/secrets/token")).status_code == 404


async def test_concurrent_puts_of_one_secret_all_succeed(owner: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(
        *(owner.put("/v1/secrets/token", json={"value": VALUE + str(n)}) for n in range(4))
    )
    assert [answer.status_code for answer in answers] == [200] * 4
