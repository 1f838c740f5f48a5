"""Sessions over REST."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.rest_client import RestServer, open_rest_server

from carrel.core.sessions.session import MAX_CONTENT_BYTES

pytestmark = pytest.mark.anyio

ID = "5f0c8a52-2f5e-4d3c-9f10-0a8c6f9a1b2c"
ROOT = "/v1/agents/kate/sessions"
HELLO = {"role": "user", "content": "hello"}


@pytest.fixture
async def owner(server: RestServer) -> httpx.AsyncClient:
    return await create_owner(server)


async def create_owner(server: RestServer, slug: str = "acme") -> httpx.AsyncClient:
    owner = await server.create_tenant(slug)
    for name in ("kate", "marco"):
        created = await owner.post("/v1/agents", json={"slug": name, "name": name.title()})
        assert created.status_code == 201
    return owner


async def start_session(owner: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    created = await owner.post(ROOT, json={"id": ID, **body})
    assert created.status_code in {200, 201}, created.text
    session: dict[str, Any] = created.json()
    return session


async def test_a_session_is_started_filled_closed_and_exported(owner: httpx.AsyncClient) -> None:
    created = await owner.post(ROOT, json={"id": ID, "sourcePlugin": "telegram"})
    assert created.status_code == 201
    agent = created.json()["agentId"]
    url = f"/v1/agents/{agent}/sessions/{ID}"
    assert created.headers["location"] == url
    assert created.json() | {"startedAt": "", "lastAt": "", "agentId": ""} == {
        **{"id": ID, "agentId": "", "scope": "main", "sourcePlugin": "telegram", "runId": None},
        **{"startedAt": "", "endedAt": None, "lastAt": "", "entryCount": 0},
    }

    body = HELLO | {"messageId": "m-1", "sourcePlugin": "telegram", "senderId": "user123"}
    appended = await owner.post(f"{url}/entries", json=body)
    assert appended.status_code == 201
    assert appended.json() | {"timestamp": ""} == {
        **{**body, "number": 1, "timestamp": "", "runId": None}
    }
    await owner.post(f"{url}/entries", json={"role": "assistant", "content": "hello Luis"})

    session = (await owner.get(url)).json()
    assert [entry["content"] for entry in session["entries"]] == ["hello", "hello Luis"]
    assert (session["next"], session["entryCount"]) == (None, 2)
    closed = await owner.post(f"{url}/close")
    assert (closed.status_code, closed.json()["entryCount"]) == (200, 2)
    assert (await owner.post(f"{url}/close")).json() == closed.json()
    late = await owner.post(f"{url}/entries", json=HELLO)
    assert (late.status_code, late.json()["error"]) == (409, "conflict")

    exported = await owner.get(f"{url}.jsonl")
    assert exported.headers["content-type"] == "application/jsonl"
    lines = [json.loads(line) for line in exported.text.splitlines()]
    assert lines[0] == {
        **{"type": "session", "version": 1, "id": ID, "timestamp": session["startedAt"]},
        **{"agent_id": "kate", "source_plugin": "telegram"},
    }
    assert list(lines[1]) == [
        *("type", "timestamp", "role", "content", "message_id", "source_plugin", "sender_id"),
    ]
    assert lines[2] == {
        **{"type": "entry", "timestamp": session["entries"][1]["timestamp"]},
        **{"role": "assistant", "content": "hello Luis", "source_plugin": ""},
    }


async def test_starting_an_existing_session_returns_it(owner: httpx.AsyncClient) -> None:
    first = await start_session(owner, scope="group")
    assert first["scope"] == "shared"
    again = await owner.post(ROOT, json={"id": ID, "scope": "main"})
    assert (again.status_code, again.json()) == (200, first)
    other = await owner.post("/v1/agents/marco/sessions", json={"id": ID})
    assert (other.status_code, other.json()["agentId"] == first["agentId"]) == (201, False)
    assert (await owner.post(ROOT, json={})).status_code == 201


async def test_a_private_session_is_not_returned_for_a_shared_scope(
    owner: httpx.AsyncClient,
) -> None:
    first = await start_session(owner, scope="main")
    for scope in ("shared", "group", ""):
        refused = await owner.post(ROOT, json={"id": ID, "scope": scope})
        assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    again = await owner.post(ROOT, json={"id": ID})
    assert (again.status_code, again.json()) == (200, first)


async def test_a_long_transcript_is_streamed_completely(owner: httpx.AsyncClient) -> None:
    await start_session(owner)
    for n in range(520):
        await owner.post(f"{ROOT}/{ID}/entries", json={"role": "tool", "content": f"{n}"})
    exported = await owner.get(f"{ROOT}/{ID}.jsonl")
    assert exported.headers["content-type"] == "application/jsonl"
    lines = [json.loads(line) for line in exported.text.splitlines()]
    assert [line["content"] for line in lines[1:]] == [f"{n}" for n in range(520)]

    numbers, cursor = [], ""
    while cursor is not None:
        page = await owner.get(f"{ROOT}/{ID}", params={"cursor": cursor, "limit": 200})
        numbers += [entry["number"] for entry in page.json()["entries"]]
        cursor = page.json()["next"]
    assert numbers == list(range(1, 521))


async def test_sessions_are_listed_and_searched(owner: httpx.AsyncClient) -> None:
    ids = []
    for n in range(3):
        created = await owner.post(ROOT, json={"scope": "shared" if n else "main"})
        ids.append(created.json()["id"])
        body = {"role": "user", "content": f"Möhren and {'x' * 300}"}
        await owner.post(f"{ROOT}/{ids[n]}/entries", json=body)
    first = (await owner.get(ROOT, params={"limit": 2})).json()
    rest = (await owner.get(ROOT, params={"limit": 2, "cursor": first["next"]})).json()
    assert {row["id"] for row in first["items"] + rest["items"]} == set(ids)
    assert rest["next"] is None
    assert "matches" not in first["items"][0]
    main = (await owner.get(ROOT, params={"scope": "main"})).json()["items"]
    assert [row["id"] for row in main] == ids[:1]

    result = (await owner.get(ROOT, params={"q": "mohr", "scope": "shared"})).json()
    assert {row["id"] for row in result["items"]} == set(ids[1:])
    [match] = result["items"][0]["matches"]
    assert match["truncated"] and match["preview"].startswith("Möhren and")
    nothing = (await owner.get(ROOT, params={"q": "beet"})).json()
    assert nothing == {"items": [], "next": None, "total": 0}


async def test_invalid_requests_are_400_404_or_413(owner: httpx.AsyncClient) -> None:
    await start_session(owner)
    news: list[Any] = [
        {"id": ""},
        {"id": "x" * 256},
        {"id": "a\n"},
        {"sourcePlugin": "a\n"},
        {"tenant": "x"},
        [],
    ]
    for body in news:
        assert (await owner.post(ROOT, json=body)).status_code == 400, body
    entries = f"{ROOT}/{ID}/entries"
    bodies: list[Any] = [{}, {"role": "judge", "content": "x"}, {"role": "user"}, HELLO | {"at": 1}]
    for body in bodies:
        assert (await owner.post(entries, json=body)).status_code == 400, body
    large = HELLO | {"content": "é" * (MAX_CONTENT_BYTES // 2 + 1)}
    assert (await owner.post(entries, json=large)).status_code == 413
    for query in ({"cursor": "x"}, {"cursor": "-1"}, {"limit": 0}, {"what": 1}):
        assert (await owner.get(f"{ROOT}/{ID}", params=query)).status_code == 400, query
    for query in ({"cursor": "7"}, {"scope": "group"}, {"q": "x" * 501}):
        assert (await owner.get(ROOT, params=query)).status_code == 400, query
    for path in ("/x", "/x.jsonl", "/.jsonl", f"/{ID[:-1]}a.jsonl", "/..%2Fx", "/%00"):
        assert (await owner.get(ROOT + path)).status_code == 404, path
    assert (await owner.get(f"/v1/agents/missing/sessions/{ID}")).status_code == 404
    assert (await owner.get(f"{ROOT}/{ID}")).json()["entryCount"] == 0


async def test_sessions_of_another_tenant_or_agent_are_404(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    await start_session(owner)
    await owner.post(f"{ROOT}/{ID}/entries", json=HELLO)
    other_owner = await create_owner(server, "globex")
    marco = (await owner.get("/v1/agents/marco")).json()["id"]
    bound = await server.key(owner, kind="agent", agentId=marco)
    reader = await server.key(owner, scopes=["workspace:read"])
    for client in (other_owner, bound):
        for method, path in (
            ("GET", f"{ROOT}/{ID}"),
            ("GET", f"{ROOT}/{ID}.jsonl"),
            ("POST", f"{ROOT}/{ID}/close"),
        ):
            assert (await client.request(method, path)).status_code == 404
        assert (await client.post(f"{ROOT}/{ID}/entries", json=HELLO)).status_code == 404
    assert (await bound.get(ROOT)).status_code == 404
    assert (await bound.post("/v1/agents/marco/sessions", json={})).status_code == 201
    assert (await reader.get(f"{ROOT}/{ID}")).status_code == 200
    assert (await reader.post(ROOT, json={})).status_code == 403
    assert (await reader.post(f"{ROOT}/{ID}/entries", json=HELLO)).status_code == 403
    assert (await server.as_(None).get(ROOT)).status_code == 401
    assert (await owner.get(f"{ROOT}/{ID}")).json()["entryCount"] == 1


async def test_16_writers_leave_one_header_and_all_entries(owner: httpx.AsyncClient) -> None:
    async def write(n: int) -> None:
        await start_session(owner, sourcePlugin=f"p{n}")
        for turn in range(3):
            body = {"role": "user", "content": f"{n}: {turn}"}
            answer = await owner.post(f"{ROOT}/{ID}/entries", json=body)
            assert answer.status_code == 201, answer.text

    await asyncio.gather(*[write(n) for n in range(16)])

    lines = [json.loads(line) for line in (await owner.get(f"{ROOT}/{ID}.jsonl")).text.splitlines()]
    assert [line["type"] for line in lines] == ["session", *["entry"] * 48]
    assert {line["content"] for line in lines[1:]} == {
        f"{n}: {turn}" for n in range(16) for turn in range(3)
    }


async def test_an_entry_with_an_idempotency_key_is_appended_once(owner: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "k"}
    new = [await owner.post(ROOT, json={}, headers=key) for _ in range(2)]
    assert new[0].json() == new[1].json()
    await start_session(owner)
    responses = [
        await owner.post(f"{ROOT}/{ID}/entries", json=HELLO, headers=key) for _ in range(3)
    ]
    assert [response.json() for response in responses] == [responses[0].json()] * 3
    assert (await owner.get(f"{ROOT}/{ID}")).json()["entryCount"] == 1


async def test_an_entry_is_not_appended_again_after_its_response_was_lost(tmp_path: File) -> None:
    async with open_rest_server(tmp_path, forgetful=True) as server:
        owner = await create_owner(server)
        await start_session(owner)
        key = {"Idempotency-Key": "k"}
        url = f"{ROOT}/{ID}/entries"
        first = await owner.post(url, json=HELLO, headers=key)
        again = await owner.post(url, json=HELLO, headers=key)
        assert again.json() == first.json()
        assert again.headers["openwop-idempotent-replay"] == "true"
        assert (await owner.get(f"{ROOT}/{ID}")).json()["entryCount"] == 1


async def test_a_deleted_session_is_gone(owner: httpx.AsyncClient) -> None:
    await owner.post(ROOT, json={"id": ID})
    assert (await owner.delete(f"{ROOT}/{ID}")).status_code == 204
    for response in (await owner.get(f"{ROOT}/{ID}"), await owner.delete(f"{ROOT}/{ID}")):
        assert response.status_code == 404
