"""Shared items over HTTP: keys, versions, conditions and access."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.support.full_app import FullApp, create_rest_app, open_full_app
from tests.support.rest_client import ForgetfulIdempotencyStore
from tests.support.tenants import sign_in_as

from carrel.actions.accounts import keys
from carrel.actions.accounts.credentials import authenticate
from carrel.actions.accounts.keys import KeySpec
from carrel.core.access import CredentialKind, Permission

pytestmark = pytest.mark.anyio
ITEMS = "/v1/agents/cook/items"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    owner = await server.owner()
    me = (await owner.get("/v1/people")).json()["items"][0]["id"]
    for slug, shared in (("cook", False), ("main", False), ("support", True)):
        new = {"slug": slug, "name": slug, "isShared": shared, "ownerId": me}
        assert (await owner.post("/v1/agents", json=new)).status_code == 201
    return owner


async def agent_client(server: FullApp, owner: httpx.AsyncClient, slug: str) -> httpx.AsyncClient:
    """A client with the key of an agent."""
    agent = (await owner.get(f"/v1/agents/{slug}")).json()["id"]
    actor = await authenticate(server.ports, owner.headers["Authorization"].partition(" ")[2])
    issued = await keys.create(
        server.ports, actor, KeySpec("own", CredentialKind.AGENT, agent=agent)
    )
    return server.as_(issued.token)


async def put(client: httpx.AsyncClient, key: str, value: str, **headers: str) -> httpx.Response:
    head = {name.replace("_", "-"): text for name, text in headers.items()}
    return await client.put(item_url(key), json={"value": value}, headers=head)


def item_url(key: str) -> str:
    """The item's URL; dots are encoded because a lone dot is a path segment."""
    return f"{ITEMS}/{quote(key, safe='').replace('.', '%2E')}"


async def test_an_item_is_written_read_listed_and_removed(ada: httpx.AsyncClient) -> None:
    created = await put(ada, "shopping", "milk" * 30)
    assert created.status_code == 200, created.text
    item = created.json()
    me = (await ada.get("/v1/people")).json()["items"][0]["id"]
    assert set(item) == {
        *("key", "value", "createdBy", "createdAt", "updatedAt", "version", "etag")
    }
    assert (item["key"], item["version"], item["createdBy"]) == ("shopping", 1, me)
    assert created.headers["etag"] == item["etag"] == '"v1"'
    read = await ada.get(item_url("shopping"))
    assert (read.json(), read.headers["etag"]) == (item, '"v1"')
    row = {**item, "preview": ("milk" * 30)[:100] + "..."}
    del row["value"]
    assert (await ada.get(ITEMS)).json() == {"items": [row], "next": None, "total": 1}
    assert (await ada.get("/v1/agents/main/items")).json()["items"] == [row]
    assert (await ada.delete(item_url("shopping"))).status_code == 204
    assert (await ada.delete(item_url("shopping"))).status_code == 404
    gone = await ada.get(item_url("shopping"))
    assert (gone.status_code, gone.json()["message"]) == (404, "no such item: 'shopping'")
    assert (await ada.get(item_url("shopping"), params={"version": 1})).json() == item


async def test_conditions_work_as_for_files(ada: httpx.AsyncClient) -> None:
    assert (await put(ada, "k", "1", If_Match="*")).status_code == 409
    assert (await put(ada, "k", "1", If_None_Match="*")).status_code == 200
    taken = await put(ada, "k", "2", If_None_Match="*")
    assert (taken.status_code, taken.json()["error"]) == (409, "workspace_conflict")
    assert taken.json()["details"] == {"currentVersion": 1}
    assert (await put(ada, "k", "2", If_Match='"v1"')).json()["version"] == 2
    stale = await put(ada, "k", "3", If_Match='"v1"')
    assert (stale.status_code, stale.json()["details"]) == (409, {"currentVersion": 2})
    assert "version 2" in stale.json()["message"]
    assert (await put(ada, "k", "3", If_None_Match='"v1"')).status_code == 400
    same = await ada.get(item_url("k"), headers={"If-None-Match": '"v2"'})
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", '"v2"')
    late = await ada.delete(item_url("k"), headers={"If-Match": '"v1"'})
    assert late.json()["details"] == {"currentVersion": 2}
    assert (await ada.delete(item_url("k"), headers={"If-Match": '"v2"'})).status_code == 204


@pytest.mark.parametrize(
    "key",
    [
        *("a/b", "a//b/", "/", "..", ".", "a/../b", "~", "100%", "a%2Fb", "ä", "a\u0308"),
        *("😀" * 256, "\\", " ", "a b", "?x=1#y", '"', "history"),
        *("GUARDRAILS.md", "guardrails.md", "user.md"),
    ],
)
async def test_a_key_may_hold_any_character_except_control_characters(
    ada: httpx.AsyncClient, key: str
) -> None:
    assert (await put(ada, "a", "beside")).status_code == 200
    created = await put(ada, key, "v")
    assert (created.status_code, created.json()["key"]) == (200, key)
    assert (await ada.get(item_url(key))).json()["value"] == "v"
    listed = (await ada.get(ITEMS)).json()["items"]
    assert [row["key"] for row in listed] == [key, "a"]
    assert (await ada.delete(item_url(key))).status_code == 204


async def test_slashes_in_keys_need_not_be_encoded(ada: httpx.AsyncClient) -> None:
    created = await ada.put(f"{ITEMS}/notes/may.md", json={"value": "v"})
    assert created.json()["key"] == "notes/may.md"
    assert (await ada.get(item_url("notes/may.md"))).status_code == 200


@pytest.mark.parametrize("key", ["a\nb", "\x7f", "\x00", "x" * 257, "é" * 257])
async def test_an_invalid_key_returns_400(ada: httpx.AsyncClient, key: str) -> None:
    for answer in (
        await put(ada, key, "v"),
        await ada.get(item_url(key)),
        await ada.delete(item_url(key)),
    ):
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


async def test_a_value_has_at_most_256_kib(ada: httpx.AsyncClient) -> None:
    assert (await put(ada, "k", "\x01" * 262_144)).status_code == 200
    large = await put(ada, "k", "é" * 131_073)
    assert (large.status_code, large.json()["error"]) == (413, "workspace_too_large")
    assert large.json()["details"] == {"maxBytes": 262_144, "providedBytes": 262_146}
    for body in ({}, {"value": 1}, {"value": "x", "key": "y"}):
        assert (await ada.put(item_url("k"), json=body)).status_code == 400


async def test_a_repeated_request_gets_the_same_response(server: FullApp, tmp_path: Any) -> None:
    from dataclasses import replace  # noqa: PLC0415 - by this test alone

    forgetful: Any = ForgetfulIdempotencyStore(server.ports.idempotency)
    restarted = FullApp(server.ports, create_rest_app(replace(server.ports, idempotency=forgetful)))
    owner = await restarted.owner()
    await owner.post("/v1/agents", json={"slug": "cook", "name": "Cook"})
    once = {"Idempotency_Key": "once"}
    answers = [await put(owner, "k", "v", **once) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert answers[0].json()["version"] == 1
    head = {"Idempotency-Key": "once"}
    gone = [await owner.delete(item_url("k"), headers=head) for _ in range(2)]
    assert [response.status_code for response in gone] == [204, 204]


async def test_a_reader_cannot_write_items(server: FullApp, ada: httpx.AsyncClient) -> None:
    await put(ada, "k", "v")
    reader = await server.key(ada, Permission.WORKSPACE_READ)
    assert (await reader.get(item_url("k"))).status_code == 200
    assert (await put(reader, "k", "x")).status_code == 403
    assert (await reader.delete(item_url("k"))).status_code == 403
    writer = await server.key(ada, Permission.WORKSPACE_WRITE)
    assert (await writer.get(ITEMS)).status_code == 403


async def test_items_are_visible_only_to_the_agents_that_share_them(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    await put(ada, "canary", "canary")
    cook, main, shared = [
        await agent_client(server, ada, slug) for slug in ("cook", "main", "support")
    ]
    assert (await cook.get(item_url("canary"))).json()["value"] == "canary"
    assert (await main.get(item_url("canary").replace("cook", "main"))).json()["value"] == "canary"
    other_owner = await server.owner("globex")
    for client in (main, shared, other_owner):
        responses = [
            await client.get(ITEMS),
            await client.get(item_url("canary")),
            await put(client, "canary", "x"),
        ]
        responses.append(await client.delete(item_url("canary")))
        assert [response.status_code for response in responses] == [404] * 4
        assert not any("canary'" in response.text for response in responses)
    assert (await shared.get("/v1/agents/support/items")).json()["items"] == []
    assert (await shared.get("/v1/agents/support/items/canary")).status_code == 404


async def test_a_member_cannot_read_items_of_another_person(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    await put(ada, "canary", "canary")
    bob = {"name": "Bob", "email": "bob@example.org", "role": "member"}
    person = (await ada.post("/v1/people", json=bob)).json()["id"]
    his = server.as_(await sign_in_as(ada, person))
    responses = [
        await his.get(ITEMS),
        await his.get(item_url("canary")),
        await put(his, "canary", "x"),
    ]
    assert [response.status_code for response in responses] == [403] * 3
    tool = await his.post("/v1/agents/cook/tools/workspace_read", json={"arguments": {"key": "x"}})
    assert tool.status_code == 403
    assert (await his.get("/v1/agents/support/items")).status_code == 200
