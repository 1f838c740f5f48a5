"""Sandboxes and shared workspaces of an account, through the wire."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any, Final

import httpx
import pytest
from tests.support.rest_client import RestServer, open_rest_server

from carrel.core.store.record import RecordType

pytestmark = pytest.mark.anyio
SANDBOXES: Final = "/accounts/me/sandboxes"
WORKSPACES: Final = "/accounts/me/workspaces"
KINDS: Final = ((SANDBOXES, "sandbox", "sb"), (WORKSPACES, "workspace", "ws"))
MASK: Final = "********"
CANARY: Final = "canary-4711"


async def made(owner: httpx.AsyncClient, where: str = SANDBOXES, **more: Any) -> dict[str, Any]:
    answer = await owner.post(where, json={"name": "one", **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _plural(where: str) -> str:
    return where.rpartition("/")[2]


def error(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert list(body) == ["error"]
    return str(body["error"])


@pytest.mark.parametrize(("where", "word", "prefix"), KINDS)
async def test_a_record_is_made_found_listed_changed_and_deleted(
    owner: httpx.AsyncClient, where: str, word: str, prefix: str
) -> None:
    first = await made(owner, where, name="  one  ", description=" about it ", colour="green")
    id = first[f"{word}Id"]
    assert re.fullmatch(rf"{prefix}_[0-9a-f]{{24}}", id)
    assert (first["name"], first["description"]) == ("one", "about it")
    assert "colour" not in first
    assert first["createdAt"] == first["updatedAt"]
    second = await made(owner, where)
    assert "description" not in second
    assert first["accountId"] == second["accountId"]
    assert (await owner.get(where)).json() == {_plural(where): [first, second]}
    assert (await owner.get(f"{where}/{id}")).json() == first
    changed = await owner.patch(f"{where}/{id}", json={"name": " two ", "description": None})
    assert changed.status_code == 200
    assert changed.json()["name"] == "two"
    assert "description" not in changed.json()
    assert changed.json()["config"] == first["config"]
    gone = await owner.delete(f"{where}/{id}")
    assert (gone.status_code, gone.json()) == (200, {"deleted": True})
    for answer in (
        await owner.get(f"{where}/{id}"),
        await owner.patch(f"{where}/{id}", json={}),
        await owner.delete(f"{where}/{id}"),
        await owner.get(f"{where}/%00"),
        await owner.get(f"{where}/{'x' * 300}"),
    ):
        assert error(answer, 404) == f"{word.capitalize()} not found"
    assert (await owner.get(where)).json() == {_plural(where): [second]}


@pytest.mark.parametrize(("where", "word", "prefix"), KINDS)
async def test_what_is_no_record_is_400_in_known_words(
    owner: httpx.AsyncClient, where: str, word: str, prefix: str
) -> None:
    name = "name must be a non-empty string"
    assert error(await owner.post(where), 400) == name
    for body in ({}, {"name": " "}, {"name": 5}, {"name": None}):
        assert error(await owner.post(where, json=body), 400) == name
    assert "name must be" in error(await owner.post(where, json={"name": "x" * 201}), 400)
    assert "description" in error(
        await owner.post(where, json={"name": "x", "description": 5}), 400
    )
    wrong = {"name": "x", "config": []}
    assert error(await owner.post(where, json=wrong), 400) == "config must be an object"
    deep: Any = {}
    for _ in range(400):
        deep = {"options": deep}
    assert "deeply" in error(await owner.post(where, json={"name": "x", "config": deep}), 400)
    assert "not JSON" in error(await owner.post(where, content=b"{"), 400)
    error(await owner.post(where, json=[]), 400)
    error(await owner.post(where, json={"name": "x", "config": {"options": "y" * 2**18}}), 413)
    nothing = await made(owner, where, config=None, description=None)
    assert nothing["config"] == (await made(owner, where))["config"]
    id = nothing[f"{word}Id"]
    for field, said in (("name", ""), ("config", 5), ("description", [])):
        error(await owner.patch(f"{where}/{id}", json={field: said}), 400)
    assert (await owner.get(f"{where}/{id}")).json() == nothing


@pytest.mark.parametrize(("where", "word", "prefix"), KINDS)
async def test_another_method_is_405_with_those_that_there_are(
    here: RestServer, owner: httpx.AsyncClient, where: str, word: str, prefix: str
) -> None:
    told = await owner.put(where, json={})
    assert (told.status_code, told.json()) == (
        405,
        {"error": "Method not allowed", "method": "PUT", "allowedMethods": ["GET", "POST"]},
    )
    one = await owner.post(f"{where}/{prefix}_1", json={})
    assert one.json()["allowedMethods"] == ["DELETE", "GET", "PATCH"]
    for answer in (
        await here.as_(None).get(where),
        await here.as_(None).put(where),
        await here.as_(None).get("/accounts/me/else"),
        await here.as_("wrong").post(where, json={}),
    ):
        assert answer.status_code == 401
        assert answer.json()["error"]


@pytest.mark.parametrize(("where", "word", "prefix"), KINDS)
async def test_they_are_one_tenants_and_for_those_who_administer_it(
    here: RestServer, owner: httpx.AsyncClient, where: str, word: str, prefix: str
) -> None:
    one = await made(owner, where)
    there = f"{where}/{one[f'{word}Id']}"
    stranger = await here.create_tenant("globex")
    for answer in (
        await stranger.get(there),
        await stranger.patch(there, json={"name": "mine"}),
        await stranger.delete(there),
    ):
        error(answer, 404)
    assert (await stranger.get(where)).json() == {_plural(where): []}
    reader = await here.key(owner, scopes=["tenant:read", "workspace:write"])
    assert (await reader.get(there)).json() == one
    for answer in (
        await reader.post(where, json={"name": "x"}),
        await reader.patch(there, json={"name": "x"}),
        await reader.delete(there),
    ):
        error(answer, 403)
    await owner.post("/v1/agents", json={"slug": "marco", "name": "Marco"})
    for bound in (
        await here.key(owner, kind="agent", agentId="marco"),
        await here.key(owner, workspace="notes"),
    ):
        error(await bound.get(where), 403)
        error(await bound.get(there), 403)
        error(await bound.post(where, json={"name": "x"}), 403)
    admin = await here.key(owner, scopes=["tenant:admin"])
    assert (await admin.patch(there, json={"name": "new"})).json()["name"] == "new"
    assert (await owner.get(there)).json()["name"] == "new"


async def test_the_seeds_own_examples_are_taken(owner: httpx.AsyncClient) -> None:
    config = {"provider": "lambda", "internet": True, "permissionMode": "ask"}
    assert (await made(owner, config=config))["config"] == config
    config = {"storage": {"provider": "s3"}, "harness": {"enabled": True}}
    workspace = await made(owner, WORKSPACES, config=config)
    assert workspace["config"] == config
    assert re.fullmatch("fs-[a-f0-9]{40}", workspace["namespace"])


async def test_secrets_are_never_shown_and_a_mask_keeps_them(
    here: RestServer, owner: httpx.AsyncClient
) -> None:
    config = {
        "envVars": {"TOKEN": CANARY, "OTHER": f"{CANARY}-2"},
        "options": {"apiKey": CANARY, "region": "eu"},
        "timeout": 60,
    }
    one = await made(owner, config=config)
    id = one["sandboxId"]
    there = f"{SANDBOXES}/{id}"
    assert one["config"]["envVars"] == {"TOKEN": MASK, "OTHER": MASK}
    assert one["config"]["options"] == {"apiKey": MASK, "region": "eu"}
    patch = {"config": {"envVars": {"TOKEN": MASK, "OTHER": None, "NEW": "x"}, "timeout": None}}
    changed = (await owner.patch(there, json=patch)).json()
    assert changed["config"]["envVars"] == {"TOKEN": MASK, "NEW": MASK}
    assert "timeout" not in changed["config"]
    same = await owner.patch(there, json={"config": changed["config"]})
    assert same.json() == changed  # not even the moment of the change
    refused = await owner.patch(there, json={"config": {"envVars": {"ELSE": MASK}}})
    assert f"config.envVars.ELSE is {MASK}, but no value is stored" in error(refused, 400)
    assert "no value is stored" in error(
        await owner.post(SANDBOXES, json={"name": "x", "config": {"envVars": {"A": MASK}}}), 400
    )
    everything = [one, changed, (await owner.get(SANDBOXES)).json(), refused.text]
    everything.append((await owner.get("/v1/audit")).text)
    [record] = await here.ports.records.get(one["accountId"], RecordType.SANDBOX, [id])
    assert record is not None
    assert CANARY not in f"{everything} {record.body}"


async def test_what_a_patch_makes_is_checked_as_a_whole(owner: httpx.AsyncClient) -> None:
    one = await made(owner, config={"persistent": True, "lifecycle": {"idleTimeoutSeconds": 9}})
    there = f"{SANDBOXES}/{one['sandboxId']}"
    wrong = await owner.patch(there, json={"config": {"persistent": False}})
    assert "config.lifecycle needs" in error(wrong, 400)
    wrong = await owner.patch(there, json={"config": {"provider": "lambda"}})
    assert "config.persistent is not supported" in error(wrong, 400)
    right = await owner.patch(there, json={"config": {"persistent": None, "lifecycle": None}})
    assert right.json()["config"] == {"provider": "local", "permissionMode": "ask"}
    both = {"internet": True, "network": {"mode": "deny-all"}}
    assert "contradict" in error(await owner.patch(there, json={"config": both}), 400)
    reset = await owner.patch(there, json={"config": None, "name": "again"})
    assert reset.json()["config"] == {"provider": "local", "permissionMode": "ask"}


async def test_strings_that_are_no_text_are_400(owner: httpx.AsyncClient) -> None:
    for body in (
        rb'{"name": "\ud800"}',
        rb'{"name": "x", "description": "\udfff"}',
        rb'{"name": "x", "config": {"envVars": {"A": "\ud800"}}}',
    ):
        headers = {"content-type": "application/json"}
        error(await owner.post(SANDBOXES, content=body, headers=headers), 400)
    nul = await made(owner, name="a\0b", description="\0")
    assert (await owner.get(f"{SANDBOXES}/{nul['sandboxId']}")).json() == nul


@pytest.mark.parametrize(("where", "word", "prefix"), KINDS)
async def test_a_request_with_a_key_is_done_once(
    owner: httpx.AsyncClient, where: str, word: str, prefix: str
) -> None:
    once = {"Idempotency-Key": "k1"}
    answers = [await owner.post(where, json={"name": "x"}, headers=once) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len((await owner.get(where)).json()[_plural(where)]) == 1
    there = f"{where}/{answers[0].json()[f'{word}Id']}"
    gone = [await owner.delete(there, headers=once) for _ in range(2)]
    assert [answer.json() for answer in gone] == [{"deleted": True}] * 2


@pytest.fixture
async def forgetful(tmp_path: File) -> AsyncIterator[RestServer]:
    async with open_rest_server(tmp_path, forgetful=True) as opened:
        yield opened


@pytest.mark.parametrize(("where", "word", "prefix"), KINDS)
async def test_an_answer_that_was_lost_is_given_again(
    forgetful: RestServer, where: str, word: str, prefix: str
) -> None:
    owner = await forgetful.create_tenant()
    once = {"Idempotency-Key": "k1"}
    first, again = [await owner.post(where, json={"name": "x"}, headers=once) for _ in range(2)]
    assert (again.status_code, again.json()) == (201, first.json())
    there = f"{where}/{first.json()[f'{word}Id']}"
    patches = [await owner.patch(there, json={"name": "y"}, headers=once) for _ in range(2)]
    assert [answer.json()["name"] for answer in patches] == ["y", "y"]
    gone = [await owner.delete(there, headers=once) for _ in range(2)]
    assert [answer.json() for answer in gone] == [{"deleted": True}] * 2


async def test_rivals_who_change_one_record_all_succeed(owner: httpx.AsyncClient) -> None:
    one = await made(owner)
    there = f"{SANDBOXES}/{one['sandboxId']}"
    patches = [{"config": {"envVars": {f"V{n}": "x"}}} for n in range(5)]
    answers = await asyncio.gather(*(owner.patch(there, json=patch) for patch in patches))
    assert [answer.status_code for answer in answers] == [200] * 5
    found = (await owner.get(there)).json()
    assert sorted(found["config"]["envVars"]) == [f"V{n}" for n in range(5)]


async def test_the_files_of_a_workspace_are_there_for_as_long_as_its_record_is(
    here: RestServer, owner: httpx.AsyncClient
) -> None:
    one = await made(owner, WORKSPACES)
    id = one["workspaceId"]
    files = f"/v1/workspaces/{id}/files"
    assert (await owner.put(f"{files}/a.md", json={"content": "a"})).status_code == 200
    assert (await owner.put(f"{files}/b/c.md", json={"content": "c"})).status_code == 200
    bound = await here.key(owner, workspace=id)
    assert (await bound.get("/v1/host/workspace/files/a.md")).json()["content"] == "a"
    stranger = await here.create_tenant("globex")
    assert (await stranger.get(f"{files}/a.md")).status_code == 404
    assert (await stranger.put(f"{files}/a.md", json={"content": "x"})).status_code == 404
    assert (await owner.delete(f"{WORKSPACES}/{id}")).status_code == 200
    for answer in (
        await owner.get(files),
        await owner.get(f"{files}/a.md"),
        await owner.put(f"{files}/a.md", json={"content": "x"}),
        await owner.delete(f"{files}/a.md"),
        await owner.get(f"{files}/a.md?version=1"),
        await bound.get("/v1/host/workspace/files/a.md"),
        await bound.put("/v1/host/workspace/files/a.md", json={"content": "x"}),
    ):
        assert answer.status_code == 404, answer.text
    never = "/v1/workspaces/ws_0123456789abcdef01234567/files"
    assert (await owner.get(never)).status_code == 404
    assert (await owner.put(f"{never}/a.md", json={"content": "x"})).status_code == 404
    assert (await owner.put("/v1/workspaces/notes/files/a.md", json={"content": "x"})).is_success
