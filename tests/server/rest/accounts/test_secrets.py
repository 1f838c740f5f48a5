"""Secrets through the wire: in, and never out."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from tests.support.rest_client import RestServer

pytestmark = pytest.mark.anyio
VALUE = "hunter2-hunter2"


async def test_a_secret_is_kept_listed_and_forgotten_and_never_shown(
    owner: httpx.AsyncClient,
) -> None:
    where = "/v1/secrets/db-password"
    kept = await owner.put(where, json={"value": VALUE})
    assert (kept.status_code, sorted(kept.json())) == (200, ["createdAt", "id", "updatedAt"])
    assert (await owner.get(where)).json() == kept.json()
    again = await owner.put(where, json={"value": VALUE + "!"})
    assert again.json()["createdAt"] == kept.json()["createdAt"]
    listed = await owner.get("/v1/secrets")
    assert listed.json() == {"items": [again.json()], "next": None}
    told = [kept, again, listed, await owner.get(where), await owner.get("/v1/audit")]
    assert not [answer for answer in told if "hunter2" in answer.text or "sealed" in answer.text]
    assert (await owner.delete(where)).status_code == 204
    assert (await owner.get(where)).status_code == 404
    assert (await owner.delete(where)).status_code == 404


async def test_a_secret_is_redacted_from_the_next_write_on(owner: httpx.AsyncClient) -> None:
    await owner.put("/v1/secrets/token", json={"value": VALUE})
    body = {"content": f"it is {VALUE}"}
    written = await owner.put("/v1/host/workspace/files/a.md", json=body)
    assert written.json()["content"] == "it is [REDACTED:token]"


@pytest.mark.parametrize("type", [f"text/{VALUE}", f"text/plain; note={VALUE}"])
async def test_a_content_type_that_holds_a_secret_is_refused_and_not_repeated(
    owner: httpx.AsyncClient, type: str
) -> None:
    await owner.put("/v1/secrets/token", json={"value": VALUE})
    file = "/v1/host/workspace/files/a.md"
    refused = await owner.put(file, json={"content": "a", "contentType": type})
    assert (refused.status_code, VALUE in refused.text) == (400, False)
    assert (await owner.get(file)).status_code == 404


async def test_what_cannot_be_kept_is_400_and_not_repeated(owner: httpx.AsyncClient) -> None:
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


async def test_secrets_are_for_those_who_administer_the_tenant(
    here: RestServer, owner: httpx.AsyncClient
) -> None:
    await owner.put("/v1/secrets/token", json={"value": VALUE})
    reader = await here.key(owner, scopes=["tenant:read", "workspace:write"])
    stranger = await here.create_tenant("globex")
    assert (await reader.get("/v1/secrets")).status_code == 403
    assert (await reader.get("/v1/secrets/token")).status_code == 403
    assert (await reader.put("/v1/secrets/token", json={"value": VALUE})).status_code == 403
    assert (await reader.delete("/v1/secrets/token")).status_code == 403
    assert (await stranger.get("/v1/secrets")).json()["items"] == []
    assert (await stranger.get("/v1/secrets/token")).status_code == 404
    assert (await stranger.delete("/v1/secrets/token")).status_code == 404


async def test_rivals_who_put_one_secret_all_succeed(owner: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(
        *(owner.put("/v1/secrets/token", json={"value": VALUE + str(n)}) for n in range(4))
    )
    assert [answer.status_code for answer in answers] == [200] * 4
