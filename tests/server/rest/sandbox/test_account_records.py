"""Sandboxes and shared workspaces of an account over REST."""

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


async def create_record(
    owner: httpx.AsyncClient, url: str = SANDBOXES, **more: Any
) -> dict[str, Any]:
    answer = await owner.post(url, json={"name": "one", **more})
    assert answer.status_code == 201, answer.text
    record: dict[str, Any] = answer.json()
    return record


def _plural(url: str) -> str:
    return url.rpartition("/")[2]


def error(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert list(body) == ["error"]
    return str(body["error"])


@pytest.mark.parametrize(("url", "word", "prefix"), KINDS)
async def test_a_record_is_created_read_listed_changed_and_deleted(
    owner: httpx.AsyncClient, url: str, word: str, prefix: str
) -> None:
    first = await create_record(
        owner, url, name="  one  ", description=" about it ", colour="green"
    )
    id = first[f"{word}Id"]
    assert re.fullmatch(rf"{prefix}_[0-9a-f]{{24}}", id)
    assert (first["name"], first["description"]) == ("one", "about it")
    assert "colour" not in first
    assert first["createdAt"] == first["updatedAt"]
    second = await create_record(owner, url)
    assert "description" not in second
    assert first["accountId"] == second["accountId"]
    assert (await owner.get(url)).json() == {_plural(url): [first, second]}
    assert (await owner.get(f"{url}/{id}")).json() == first
    changed = await owner.patch(f"{url}/{id}", json={"name": " two ", "description": None})
    assert changed.status_code == 200
    assert changed.json()["name"] == "two"
    assert "description" not in changed.json()
    assert changed.json()["config"] == first["config"]
    gone = await owner.delete(f"{url}/{id}")
    assert (gone.status_code, gone.json()) == (200, {"deleted": True})
    for answer in (
        await owner.get(f"{url}/{id}"),
        await owner.patch(f"{url}/{id}", json={}),
        await owner.delete(f"{url}/{id}"),
        await owner.get(f"{url}/%00"),
        await owner.get(f"{url}/{'x' * 300}"),
    ):
        assert error(answer, 404) == f"{word.capitalize()} not found"
    assert (await owner.get(url)).json() == {_plural(url): [second]}


@pytest.mark.parametrize(("url", "word", "prefix"), KINDS)
async def test_an_invalid_record_is_400_with_a_fixed_message(
    owner: httpx.AsyncClient, url: str, word: str, prefix: str
) -> None:
    name = "name must be a non-empty string"
    assert error(await owner.post(url), 400) == name
    for body in ({}, {"name": " "}, {"name": 5}, {"name": None}):
        assert error(await owner.post(url, json=body), 400) == name
    assert "name must be" in error(await owner.post(url, json={"name": "x" * 201}), 400)
    assert "description" in error(await owner.post(url, json={"name": "x", "description": 5}), 400)
    wrong = {"name": "x", "config": []}
    assert error(await owner.post(url, json=wrong), 400) == "config must be an object"
    deep: Any = {}
    for _ in range(400):
        deep = {"options": deep}
    assert "deeply" in error(await owner.post(url, json={"name": "x", "config": deep}), 400)
    assert "not JSON" in error(await owner.post(url, content=b"{"), 400)
    error(await owner.post(url, json=[]), 400)
    error(await owner.post(url, json={"name": "x", "config": {"options": "y" * 2**18}}), 413)
    nothing = await create_record(owner, url, config=None, description=None)
    assert nothing["config"] == (await create_record(owner, url))["config"]
    id = nothing[f"{word}Id"]
    for field, value in (("name", ""), ("config", 5), ("description", [])):
        error(await owner.patch(f"{url}/{id}", json={field: value}), 400)
    assert (await owner.get(f"{url}/{id}")).json() == nothing


@pytest.mark.parametrize(("url", "word", "prefix"), KINDS)
async def test_an_unsupported_method_is_405_with_the_allowed_methods(
    server: RestServer, owner: httpx.AsyncClient, url: str, word: str, prefix: str
) -> None:
    response = await owner.put(url, json={})
    assert (response.status_code, response.json()) == (
        405,
        {"error": "Method not allowed", "method": "PUT", "allowedMethods": ["GET", "POST"]},
    )
    unsupported = await owner.post(f"{url}/{prefix}_1", json={})
    assert unsupported.json()["allowedMethods"] == ["DELETE", "GET", "PATCH"]
    for answer in (
        await server.as_(None).get(url),
        await server.as_(None).put(url),
        await server.as_(None).get("/accounts/me/else"),
        await server.as_("wrong").post(url, json={}),
    ):
        assert answer.status_code == 401
        assert answer.json()["error"]


@pytest.mark.parametrize(("url", "word", "prefix"), KINDS)
async def test_records_belong_to_one_tenant_and_writing_needs_admin(
    server: RestServer, owner: httpx.AsyncClient, url: str, word: str, prefix: str
) -> None:
    record = await create_record(owner, url)
    record_url = f"{url}/{record[f'{word}Id']}"
    other_owner = await server.create_tenant("globex")
    for answer in (
        await other_owner.get(record_url),
        await other_owner.patch(record_url, json={"name": "mine"}),
        await other_owner.delete(record_url),
    ):
        error(answer, 404)
    assert (await other_owner.get(url)).json() == {_plural(url): []}
    reader = await server.key(owner, scopes=["tenant:read", "workspace:write"])
    assert (await reader.get(record_url)).json() == record
    for answer in (
        await reader.post(url, json={"name": "x"}),
        await reader.patch(record_url, json={"name": "x"}),
        await reader.delete(record_url),
    ):
        error(answer, 403)
    await owner.post("/v1/agents", json={"slug": "marco", "name": "Marco"})
    for bound in (
        await server.key(owner, kind="agent", agentId="marco"),
        await server.key(owner, workspace="notes"),
    ):
        error(await bound.get(url), 403)
        error(await bound.get(record_url), 403)
        error(await bound.post(url, json={"name": "x"}), 403)
    admin = await server.key(owner, scopes=["tenant:admin"])
    assert (await admin.patch(record_url, json={"name": "new"})).json()["name"] == "new"
    assert (await owner.get(record_url)).json()["name"] == "new"


async def test_the_specified_examples_are_accepted(owner: httpx.AsyncClient) -> None:
    config = {"provider": "lambda", "internet": True, "permissionMode": "ask"}
    assert (await create_record(owner, config=config))["config"] == config
    config = {"storage": {"provider": "s3"}, "harness": {"enabled": True}}
    workspace = await create_record(owner, WORKSPACES, config=config)
    assert workspace["config"] == config
    assert re.fullmatch("fs-[a-f0-9]{40}", workspace["namespace"])


async def test_secrets_are_masked_and_a_mask_leaves_them_unchanged(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    config = {
        "envVars": {"TOKEN": CANARY, "OTHER": f"{CANARY}-2"},
        "options": {"apiKey": CANARY, "region": "eu"},
        "timeout": 60,
    }
    created = await create_record(owner, config=config)
    id = created["sandboxId"]
    record_url = f"{SANDBOXES}/{id}"
    assert created["config"]["envVars"] == {"TOKEN": MASK, "OTHER": MASK}
    assert created["config"]["options"] == {"apiKey": MASK, "region": "eu"}
    patch = {"config": {"envVars": {"TOKEN": MASK, "OTHER": None, "NEW": "x"}, "timeout": None}}
    changed = (await owner.patch(record_url, json=patch)).json()
    assert changed["config"]["envVars"] == {"TOKEN": MASK, "NEW": MASK}
    assert "timeout" not in changed["config"]
    same = await owner.patch(record_url, json={"config": changed["config"]})
    assert same.json() == changed  # including updatedAt
    refused = await owner.patch(record_url, json={"config": {"envVars": {"ELSE": MASK}}})
    assert f"config.envVars.ELSE is {MASK}, but no value is stored" in error(refused, 400)
    assert "no value is stored" in error(
        await owner.post(SANDBOXES, json={"name": "x", "config": {"envVars": {"A": MASK}}}), 400
    )
    everything = [created, changed, (await owner.get(SANDBOXES)).json(), refused.text]
    everything.append((await owner.get("/v1/audit")).text)
    [record] = await server.ports.records.get(created["accountId"], RecordType.SANDBOX, [id])
    assert record is not None
    assert CANARY not in f"{everything} {record.body}"


async def test_the_result_of_a_patch_is_validated_as_a_whole(owner: httpx.AsyncClient) -> None:
    created = await create_record(
        owner, config={"persistent": True, "lifecycle": {"idleTimeoutSeconds": 9}}
    )
    record_url = f"{SANDBOXES}/{created['sandboxId']}"
    wrong = await owner.patch(record_url, json={"config": {"persistent": False}})
    assert "config.lifecycle needs" in error(wrong, 400)
    wrong = await owner.patch(record_url, json={"config": {"provider": "lambda"}})
    assert "config.persistent is not supported" in error(wrong, 400)
    right = await owner.patch(record_url, json={"config": {"persistent": None, "lifecycle": None}})
    assert right.json()["config"] == {"provider": "local", "permissionMode": "ask"}
    both = {"internet": True, "network": {"mode": "deny-all"}}
    assert "contradict" in error(await owner.patch(record_url, json={"config": both}), 400)
    reset = await owner.patch(record_url, json={"config": None, "name": "again"})
    assert reset.json()["config"] == {"provider": "local", "permissionMode": "ask"}


async def test_strings_that_are_not_text_are_400(owner: httpx.AsyncClient) -> None:
    for body in (
        rb'{"name": "\ud800"}',
        rb'{"name": "x", "description": "\udfff"}',
        rb'{"name": "x", "config": {"envVars": {"A": "\ud800"}}}',
    ):
        headers = {"content-type": "application/json"}
        error(await owner.post(SANDBOXES, content=body, headers=headers), 400)
    nul = await create_record(owner, name="a\0b", description="\0")
    assert (await owner.get(f"{SANDBOXES}/{nul['sandboxId']}")).json() == nul


@pytest.mark.parametrize(("url", "word", "prefix"), KINDS)
async def test_a_request_with_an_idempotency_key_runs_once(
    owner: httpx.AsyncClient, url: str, word: str, prefix: str
) -> None:
    once = {"Idempotency-Key": "k1"}
    answers = [await owner.post(url, json={"name": "x"}, headers=once) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len((await owner.get(url)).json()[_plural(url)]) == 1
    record_url = f"{url}/{answers[0].json()[f'{word}Id']}"
    gone = [await owner.delete(record_url, headers=once) for _ in range(2)]
    assert [answer.json() for answer in gone] == [{"deleted": True}] * 2


@pytest.fixture
async def forgetful(tmp_path: File) -> AsyncIterator[RestServer]:
    async with open_rest_server(tmp_path, forgetful=True) as opened:
        yield opened


@pytest.mark.parametrize(("url", "word", "prefix"), KINDS)
async def test_a_lost_response_is_rebuilt(
    forgetful: RestServer, url: str, word: str, prefix: str
) -> None:
    owner = await forgetful.create_tenant()
    once = {"Idempotency-Key": "k1"}
    first, again = [await owner.post(url, json={"name": "x"}, headers=once) for _ in range(2)]
    assert (again.status_code, again.json()) == (201, first.json())
    record_url = f"{url}/{first.json()[f'{word}Id']}"
    patches = [await owner.patch(record_url, json={"name": "y"}, headers=once) for _ in range(2)]
    assert [answer.json()["name"] for answer in patches] == ["y", "y"]
    gone = [await owner.delete(record_url, headers=once) for _ in range(2)]
    assert [answer.json() for answer in gone] == [{"deleted": True}] * 2


async def test_concurrent_patches_of_one_record_all_succeed(owner: httpx.AsyncClient) -> None:
    created = await create_record(owner)
    record_url = f"{SANDBOXES}/{created['sandboxId']}"
    patches = [{"config": {"envVars": {f"V{n}": "x"}}} for n in range(5)]
    answers = await asyncio.gather(*(owner.patch(record_url, json=patch) for patch in patches))
    assert [answer.status_code for answer in answers] == [200] * 5
    record = (await owner.get(record_url)).json()
    assert sorted(record["config"]["envVars"]) == [f"V{n}" for n in range(5)]


async def test_the_files_of_a_workspace_are_404_after_its_record_is_deleted(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    created = await create_record(owner, WORKSPACES)
    id = created["workspaceId"]
    files = f"/v1/workspaces/{id}/files"
    assert (await owner.put(f"{files}/a.md", json={"content": "a"})).status_code == 200
    assert (await owner.put(f"{files}/b/c.md", json={"content": "c"})).status_code == 200
    bound = await server.key(owner, workspace=id)
    assert (await bound.get("/v1/host/workspace/files/a.md")).json()["content"] == "a"
    other_owner = await server.create_tenant("globex")
    assert (await other_owner.get(f"{files}/a.md")).status_code == 404
    assert (await other_owner.put(f"{files}/a.md", json={"content": "x"})).status_code == 404
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
