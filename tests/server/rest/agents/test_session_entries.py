"""Entries of sessions over REST: any id, batches, items, removal and runs."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path as File
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.rest_client import RestServer, open_rest_server

from carrel.core.sessions.session import MAX_CONTENT_BYTES
from carrel.server.rest.runs import runs

pytestmark = pytest.mark.anyio

ROOT = "/v1/agents/kate/sessions"
ODD_IDS = [
    *("user_42", "thread/7", "..", ".", "a.jsonl", "Ada Lovelace", "50%", "été ☕", "x" * 255),
    *("a?b#c", "A", "a", "'; --", "0344931934334033AF5EEABBD448ABDD"),
    *("5F0C8A52-2F5E-4D3C-9F10-0A8C6F9A1B2C", "urn:uuid:5f0c8a52-2f5e-4d3c-9f10-0a8c6f9a1b2c"),
]


@pytest.fixture
async def server(tmp_path: File) -> Any:
    async with open_rest_server(tmp_path, more=runs.ENDPOINTS) as opened:
        yield opened


@pytest.fixture
async def owner(server: RestServer) -> httpx.AsyncClient:
    owner = await server.create_tenant()
    for name in ("kate", "marco"):
        await owner.post("/v1/agents", json={"slug": name, "name": name.title()})
    return owner


async def start(owner: httpx.AsyncClient, id: str = "chat", **body: Any) -> str:
    """The URL of a new session."""
    created = await owner.post(ROOT, json={"id": id, **body})
    assert created.status_code == 201, created.text
    return str(created.headers["location"])


def texts(answer: httpx.Response) -> list[str]:
    return [entry["content"] for entry in answer.json()["items"]]


async def test_any_text_is_a_session_id_in_bodies_and_paths(owner: httpx.AsyncClient) -> None:
    for id in ODD_IDS:
        url = await start(owner, id)
        body = {"role": "user", "content": f"in {id}"}
        assert (await owner.post(f"{url}/entries", json=body)).status_code == 201
        answer = await owner.get(url)
        assert (answer.json()["id"], answer.json()["entryCount"]) == (id, 1)
        assert len((await owner.get(f"{url}.jsonl")).text.splitlines()) == 2
        again = await owner.post(ROOT, json={"id": id})
        assert again.status_code == 200
    listed: list[str] = []
    cursor = ""
    while cursor is not None:
        page = (await owner.get(ROOT, params={"limit": 5, "cursor": cursor})).json()
        listed += [session["id"] for session in page["items"]]
        cursor = page["next"]
    assert sorted(listed) == sorted(ODD_IDS)
    slash = await owner.get(f"{ROOT}/{quote('thread/7', safe='')}")
    assert slash.json()["id"] == "thread/7"
    assert (await owner.delete(f"{ROOT}/a%2Ejsonl")).status_code == 204


async def test_a_session_id_with_a_secret_is_refused(owner: httpx.AsyncClient) -> None:
    await owner.put("/v1/secrets/db", json={"value": "correct-horse"})
    refused = await owner.post(ROOT, json={"id": "with correct-horse"})
    assert refused.status_code == 400
    assert "correct-horse" not in refused.text


async def test_a_batch_is_stored_whole_or_not_at_all(owner: httpx.AsyncClient) -> None:
    url = await start(owner)
    items = [{"role": "user", "content": f"{n}"} for n in range(250)]
    stored = await owner.post(f"{url}/entries", json={"items": items})
    assert stored.status_code == 201
    assert [entry["number"] for entry in stored.json()["items"]] == list(range(1, 251))
    bad = [*items[:3], {"role": "judge", "content": "x"}]
    large = [*items[:3], {"role": "user", "content": "é" * (MAX_CONTENT_BYTES // 2 + 1)}]
    unknown_run = [*items[:3], {"role": "user", "content": "x", "runId": "run_x"}]
    for body, status in ((bad, 400), (large, 413), (unknown_run, 404), ([], 400)):
        refused = await owner.post(f"{url}/entries", json={"items": body})
        assert refused.status_code == status
    for field in ({"role": "user"}, {"item": 0}, {"item": False}, {"content": ""}):
        mixed = await owner.post(f"{url}/entries", json={"items": items[:1], **field})
        assert mixed.status_code == 400
    assert (await owner.get(url)).json()["entryCount"] == 250


async def test_a_repeated_batch_is_stored_once_also_after_a_crash(tmp_path: File) -> None:
    async with open_rest_server(tmp_path / "crash", forgetful=True) as server:
        owner = await server.create_tenant()
        await owner.post("/v1/agents", json={"slug": "kate", "name": "Kate"})
        url = await start(owner)
        items = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        key = {"Idempotency-Key": "k"}
        first, again = [
            await owner.post(f"{url}/entries", json={"items": items}, headers=key) for _ in range(2)
        ]
        assert (again.status_code, again.json()) == (201, first.json())
        popped = [
            (await owner.post(f"{url}/pop", headers={"Idempotency-Key": "p"})).json()
            for _ in range(2)
        ]
        assert popped == [{"number": 2, "entry": first.json()["items"][1]}, POPPED_AGAIN]
        cleared = [
            (await owner.post(f"{url}/clear", headers={"Idempotency-Key": "c"})).json()
            for _ in range(2)
        ]
        assert cleared[0] == cleared[1]
        assert cleared[0]["entryCount"] == 0


POPPED_AGAIN = {"number": 2, "entry": None}
"""What was removed is gone, so only its number is known."""


async def test_entries_are_appended_only_after_the_entry_that_was_read(
    owner: httpx.AsyncClient,
) -> None:
    url = await start(owner)
    entry = {"role": "user", "content": "a"}
    for body in ({**entry, "after": 0}, {"items": [entry, entry], "after": 1}):
        assert (await owner.post(f"{url}/entries", json=body)).status_code == 201

    for body in ({**entry, "after": 1}, {"items": [entry], "after": 0}, {**entry, "after": 4}):
        refused = await owner.post(f"{url}/entries", json=body)
        assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
        assert refused.json()["details"] == {"lastNumber": 3}
    assert (await owner.get(url)).json()["entryCount"] == 3

    await owner.post(f"{url}/pop")
    refused = await owner.post(f"{url}/entries", json={**entry, "after": 3})
    assert refused.json()["details"] == {"lastNumber": 2}
    stored = await owner.post(f"{url}/entries", json={**entry, "after": 2})
    assert stored.json()["number"] == 4
    for after in (-1, 1.5, "4", 2**70):
        invalid = await owner.post(f"{url}/entries", json={**entry, "after": after})
        assert invalid.status_code == 400
    await owner.post(f"{url}/close")
    closed = await owner.post(f"{url}/entries", json={**entry, "after": 4})
    assert (closed.status_code, "details" in closed.json()) == (409, False)


async def test_a_repeated_conditional_append_gets_the_first_response(tmp_path: File) -> None:
    async with open_rest_server(tmp_path / "crash", forgetful=True) as server:
        owner = await server.create_tenant()
        await owner.post("/v1/agents", json={"slug": "kate", "name": "Kate"})
        url = await start(owner)
        body, key = {"role": "user", "content": "a", "after": 0}, {"Idempotency-Key": "k"}
        first, again = [
            await owner.post(f"{url}/entries", json=body, headers=key) for _ in range(2)
        ]
        assert (again.status_code, again.json()) == (201, first.json())
        assert (await owner.get(url)).json()["entryCount"] == 1


async def test_an_item_is_kept_beside_its_text(owner: httpx.AsyncClient) -> None:
    url = await start(owner)
    call = {
        **{"type": "function_call", "name": "weather", "call_id": "c1"},
        **{"arguments": '{"city":"Bonn"}', "n": [1.5, None, True, 10**30]},
    }
    parts = {"role": "user", "content": [{"type": "input_text", "text": "How is Bonn?"}]}
    items = [
        {"role": "user", "item": parts},
        {"role": "assistant", "item": call, "content": "asks for the weather"},
        {"role": "tool", "item": "sunny"},
    ]
    stored = (await owner.post(f"{url}/entries", json={"items": items})).json()["items"]
    assert [entry["item"] for entry in stored] == [parts, call, "sunny"]
    expected = ["How is Bonn?", "asks for the weather", "sunny"]
    assert [entry["content"] for entry in stored] == expected
    listed = (await owner.get(f"{url}/entries")).json()["items"]
    assert listed == stored
    plain = await owner.post(f"{url}/entries", json={"role": "user", "content": "no item"})
    assert "item" not in plain.json()
    matches = (await owner.get(ROOT, params={"q": "bonn"})).json()["items"]
    assert matches[0]["matches"][0]["preview"] == "How is Bonn?"
    lines = (await owner.get(f"{url}.jsonl")).text.splitlines()
    assert '"item":{"type":"function_call"' in lines[2]


async def test_secrets_in_an_item_are_redacted(owner: httpx.AsyncClient) -> None:
    for id, value in (("db", 'pass "word"\n42'), ("pin", "1234567890")):
        assert (await owner.put(f"/v1/secrets/{id}", json={"value": value})).status_code < 300
    url = await start(owner)
    items = [
        {"role": "user", "item": {'key pass "word"\n42': [{"deep": 'a pass "word"\n42 b'}]}},
        {"role": "user", "item": {"number": 1234567890}},
        {"role": "user", "item": {"text": "1234567890" * 300}},
    ]
    stored = (await owner.post(f"{url}/entries", json={"items": items})).json()["items"]
    assert stored[0]["item"] == {"key [REDACTED:db]": [{"deep": "a [REDACTED:db] b"}]}
    assert stored[1]["item"] == '{"number":[REDACTED:pin]}'
    for path in (f"{url}/entries", f"{url}.jsonl"):
        text = (await owner.get(path)).text
        assert "1234567890" not in text
        assert "word" not in text


async def test_an_item_that_is_too_deep_or_large_is_refused(owner: httpx.AsyncClient) -> None:
    url = f"{await start(owner)}/entries"
    deep = "[" * 900 + "]" * 900
    for text in (deep, "[" * 65 + "]" * 65):
        body = f'{{"role":"user","item":{text}}}'
        refused = await owner.post(url, content=body, headers={"content-type": "application/json"})
        assert refused.status_code == 400, refused.text
    large = {"role": "user", "content": "", "item": "x" * MAX_CONTENT_BYTES}
    assert (await owner.post(url, json=large)).status_code == 413
    bodies: list[Any] = [{"role": "user"}, {"content": "x"}, {"role": "user", "item": None}]
    for body in bodies:
        assert (await owner.post(url, json=body)).status_code == 400, body


async def test_entries_are_listed_from_either_end(owner: httpx.AsyncClient) -> None:
    url = await start(owner)
    items = [{"role": "user", "content": f"{n}"} for n in range(1, 8)]
    await owner.post(f"{url}/entries", json={"items": items})

    async def pages(**query: Any) -> list[list[str]]:
        pages_read, cursor = [], ""
        while cursor is not None:
            page = await owner.get(f"{url}/entries", params={**query, "cursor": cursor})
            assert page.status_code == 200, page.text
            pages_read.append(texts(page))
            cursor = page.json()["next"]
        return pages_read

    assert await pages(order="desc", limit=3) == [["7", "6", "5"], ["4", "3", "2"], ["1"]]
    assert await pages(limit=3) == [["1", "2", "3"], ["4", "5", "6"], ["7"]]
    assert await pages(order="desc", limit=7) == [["7", "6", "5", "4", "3", "2", "1"]]
    await owner.post(f"{url}/pop")
    assert await pages(limit=6) == [["1", "2", "3", "4", "5", "6"]]
    assert (await owner.get(f"{url}/entries", params={"order": "up"})).status_code == 400


async def test_the_last_entry_is_popped(owner: httpx.AsyncClient) -> None:
    url = await start(owner)
    items = [{"role": "user", "content": "stay"}, {"role": "user", "content": "go away"}]
    await owner.post(f"{url}/entries", json={"items": items})

    popped = await owner.post(f"{url}/pop")
    assert (popped.status_code, popped.json()["number"]) == (200, 2)
    assert popped.json()["entry"]["content"] == "go away"
    assert texts(await owner.get(f"{url}/entries")) == ["stay"]
    assert (await owner.get(ROOT, params={"q": "away"})).json()["items"] == []
    appended = await owner.post(f"{url}/entries", json=items[1])
    assert appended.json()["number"] == 3
    for _ in range(2):
        await owner.post(f"{url}/pop")
    assert (await owner.post(f"{url}/pop")).json() == {"number": None, "entry": None}
    audited = (await owner.get("/v1/audit")).json()["items"]
    assert [entry["why"] for entry in audited].count("remove the last entry") == 3


async def test_a_session_is_cleared_and_goes_on(owner: httpx.AsyncClient) -> None:
    url = await start(owner)
    items = [{"role": "user", "content": "forget me"}] * 3
    await owner.post(f"{url}/entries", json={"items": items})
    cleared = await owner.post(f"{url}/clear")
    assert (cleared.status_code, cleared.json()["entryCount"]) == (200, 0)
    assert texts(await owner.get(f"{url}/entries")) == []
    assert (await owner.get(ROOT, params={"q": "forget"})).json()["items"] == []
    anew = await owner.post(f"{url}/entries", json={"role": "user", "content": "anew"})
    assert anew.json()["number"] == 4
    await owner.post(f"{url}/close")
    for verb in ("pop", "clear"):
        assert (await owner.post(f"{url}/{verb}")).status_code == 409
        assert (await owner.post(f"{ROOT}/missing/{verb}")).status_code == 404


async def test_16_pops_remove_16_different_entries(owner: httpx.AsyncClient) -> None:
    url = await start(owner)
    items = [{"role": "user", "content": f"{n}"} for n in range(20)]
    await owner.post(f"{url}/entries", json={"items": items})
    popped = await asyncio.gather(*[owner.post(f"{url}/pop") for _ in range(16)])
    assert sorted(answer.json()["number"] for answer in popped) == list(range(5, 21))


async def test_entries_get_the_run_of_their_session(owner: httpx.AsyncClient) -> None:
    first, second = [
        (await owner.post("/v1/runs", json={"agentId": "kate"})).json()["runId"] for _ in range(2)
    ]
    url = await start(owner, runId=first)
    hello = {"role": "user", "content": "hello"}
    assert (await owner.post(f"{url}/entries", json=hello)).json()["runId"] == first
    explicit = await owner.post(f"{url}/entries", json={**hello, "runId": second})
    assert explicit.json()["runId"] == second
    moved = await owner.post(ROOT, json={"id": "chat", "runId": second})
    assert (moved.status_code, moved.json()["runId"]) == (200, second)
    assert (await owner.post(f"{url}/entries", json=hello)).json()["runId"] == second
    other = (await owner.post("/v1/runs", json={"agentId": "marco"})).json()["runId"]
    for run in (other, "run_missing"):
        assert (await owner.post(ROOT, json={"id": "new", "runId": run})).status_code == 404
        refused = await owner.post(f"{url}/entries", json={**hello, "runId": run})
        assert refused.status_code == 404


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=8), values),
    max_leaves=10,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(id=st.text(min_size=1, max_size=260), item=JSON_VALUES)
async def test_every_id_and_item_is_stored_as_it_is_or_refused(
    owner: httpx.AsyncClient, id: str, item: Any
) -> None:
    created = await owner.post(ROOT, json={"id": id})
    assert created.status_code in {200, 201, 400}, created.text
    if created.status_code == 400:
        assert len(id) > 255 or any(ord(c) < 32 or 127 <= ord(c) < 160 for c in id)
        return
    url = created.headers["location"]
    body = {"role": "tool", "content": "x", "item": item}
    stored = await owner.post(f"{url}/entries", json=body)
    assert stored.status_code == 201, stored.text
    latest = await owner.get(f"{url}/entries", params={"order": "desc", "limit": 1})
    assert latest.json()["items"] == [stored.json()]
    assert stored.json().get("item") == item
    lines = (await owner.get(f"{url}.jsonl")).text.removesuffix("\n").split("\n")
    assert json.loads(lines[-1]).get("item") == item
    assert (await owner.post(f"{url}/pop")).json()["entry"] == stored.json()


@pytest.mark.parametrize("scope", ["main", "shared"])
async def test_a_session_and_its_entries_take_no_run_of_another_scope(
    owner: httpx.AsyncClient, scope: str
) -> None:
    other = {"main": "shared", "shared": "main"}[scope]
    runs: dict[str, str] = {}
    for name in ("main", "shared"):
        body = {"agentId": "kate", "scope": name}
        runs[name] = (await owner.post("/v1/runs", json=body)).json()["runId"]
    message = f"the run has scope {other}, the session {scope}"

    wrong = {"id": "chat", "scope": scope, "runId": runs[other]}
    refused = await owner.post(ROOT, json=wrong)
    assert (refused.status_code, refused.json()["message"]) == (409, message)
    url = await start(owner, scope=scope, runId=runs[scope])
    assert (await owner.post(ROOT, json=wrong)).json()["message"] == message
    entry = {"role": "user", "content": "hello", "runId": runs[other]}
    refused = await owner.post(f"{url}/entries", json=entry)
    assert (refused.status_code, refused.json()["message"]) == (409, message)
    assert (await owner.get(url)).json()["runId"] == runs[scope]
