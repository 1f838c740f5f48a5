"""The RFC 0059 file API, and the same API on every other stack."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FILES, FullApp, open_full_app

from carrel import defaults
from carrel.core.access import Permission

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    return await server.owner()


async def put(client: httpx.AsyncClient, path: str, text: str, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await client.put(f"{FILES}/{path}", json={"content": text}, headers=named)


async def test_a_file_is_created_replaced_read_listed_and_deleted(ada: httpx.AsyncClient) -> None:
    created = await put(ada, "DIRECTIVES.md", "one")
    assert created.status_code == 200
    file = created.json()
    assert set(file) == {"path", "content", "contentType", "version", "etag", "updatedAt"}
    assert (file["path"], file["content"], file["version"]) == ("DIRECTIVES.md", "one", 1)
    assert (file["contentType"], file["etag"]) == ("text/markdown", '"v1"')
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", file["updatedAt"])
    assert created.headers["etag"] == file["etag"]

    again = await put(ada, "DIRECTIVES.md", "two")
    assert (again.status_code, again.json()["version"]) == (200, 2)
    assert (await ada.get(f"{FILES}/DIRECTIVES.md")).json() == again.json()
    listed = (await ada.get(FILES)).json()
    assert listed == {"files": [{k: v for k, v in again.json().items() if k != "content"}]}

    gone = await ada.delete(f"{FILES}/DIRECTIVES.md")
    assert (gone.status_code, gone.content) == (204, b"")
    missing = await ada.get(f"{FILES}/DIRECTIVES.md")
    assert (missing.status_code, missing.json()["error"]) == (404, "not_found")
    assert (await ada.get(FILES)).json() == {"files": []}
    assert (await ada.delete(f"{FILES}/DIRECTIVES.md")).status_code == 404


async def test_a_version_number_is_never_reused_and_history_survives_deletion(
    ada: httpx.AsyncClient,
) -> None:
    for text in ("one", "two"):
        await put(ada, "a.md", text)
    await ada.delete(f"{FILES}/a.md")
    assert (await put(ada, "a.md", "four")).json()["version"] == 4

    async def at(version: object) -> httpx.Response:
        return await ada.get(f"{FILES}/a.md", params={"version": str(version)})

    assert [(await at(n)).json()["content"] for n in (1, 2, 4)] == ["one", "two", "four"]
    assert [(await at(n)).status_code for n in (3, 5, 10**17)] == [404, 404, 404]
    assert [(await at(n)).status_code for n in (0, -1, "x", "1.5", "")] == [400] * 5


async def test_history_keeps_as_many_versions_as_the_policy_says(ada: httpx.AsyncClient) -> None:
    await ada.put("/v1/policy", json={"limits": {"maxVersions": 3}})
    for number in range(5):
        await put(ada, "a.md", str(number))

    statuses = [(await ada.get(f"{FILES}/a.md?version={n}")).status_code for n in range(1, 6)]

    assert statuses == [404, 404, 200, 200, 200]


async def test_if_match_is_honoured_and_a_refusal_names_the_current_version(
    ada: httpx.AsyncClient,
) -> None:
    first = (await put(ada, "a.md", "one")).json()["etag"]
    assert (await put(ada, "a.md", "two", If_Match=first)).json()["version"] == 2
    stale = await put(ada, "a.md", "three", If_Match=first)

    assert stale.status_code == 409
    assert stale.json()["error"] == "workspace_conflict"
    assert stale.json()["details"] == {"currentVersion": 2}
    assert set(stale.json()) == {"error", "message", "details"}
    assert (await put(ada, "new.md", "x", If_Match='"v1"')).json()["details"] == {
        "currentVersion": 0
    }
    for header in ("v2", 'W/"v2"', '"v9"', ""):
        assert (await put(ada, "a.md", "x", If_Match=header)).status_code == 409
    assert (await put(ada, "a.md", "x", If_Match='"v7", "v2"')).status_code == 200


async def test_if_match_star_requires_a_file_and_if_none_match_star_forbids_it(
    ada: httpx.AsyncClient,
) -> None:
    assert (await put(ada, "a.md", "x", If_Match="*")).status_code == 409
    assert (await put(ada, "a.md", "x", If_None_Match="*")).status_code == 200
    assert (await put(ada, "a.md", "y", If_None_Match="*")).status_code == 409
    assert (await put(ada, "a.md", "y", If_Match="*")).status_code == 200
    assert (await put(ada, "a.md", "y", If_None_Match='"v1"')).status_code == 400
    url = f"{FILES}/a.md"
    assert (await ada.delete(url, headers={"If-Match": '"v1"'})).status_code == 409
    assert (await ada.delete(url, headers={"If-None-Match": "*"})).status_code == 409
    assert (await ada.delete(url, headers={"If-Match": '"v2"'})).status_code == 204
    assert (await put(ada, "a.md", "z", If_None_Match="*")).json()["version"] == 4


async def test_a_matching_etag_returns_304(ada: httpx.AsyncClient) -> None:
    tag = (await put(ada, "a.md", "one")).headers["etag"]
    for url in (f"{FILES}/a.md", f"{FILES}/a.md?version=1", FILES):
        cached = (await ada.get(url)).headers["etag"]
        again = await ada.get(url, headers={"If-None-Match": f'"other", {cached}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", cached)
    await put(ada, "a.md", "two")
    assert (await ada.get(f"{FILES}/a.md", headers={"If-None-Match": tag})).status_code == 200
    assert (await ada.get(FILES, headers={"If-None-Match": cached})).status_code == 200


async def test_encoded_and_raw_slashes_name_the_same_file(ada: httpx.AsyncClient) -> None:
    await put(ada, "behavior%2FCRUD.md", "one")

    for spelling in ("behavior/CRUD.md", "behavior%2FCRUD.md", "behavior%2fCRUD%2Emd"):
        assert (await ada.get(f"{FILES}/{spelling}")).json()["path"] == "behavior/CRUD.md"


async def test_a_prefix_matches_the_start_of_a_path_literally(ada: httpx.AsyncClient) -> None:
    for path in ("notes/a.md", "notes-b.md", "Notes/c.md", "other.md"):
        await put(ada, path, "x")

    async def listed(prefix: str) -> list[str]:
        answer = await ada.get(FILES, params={"prefix": prefix})
        return [file["path"] for file in answer.json()["files"]]

    assert await listed("notes") == ["notes-b.md", "notes/a.md"]
    assert await listed("notes/") == ["notes/a.md"]
    assert await listed("%") == []
    assert len(await listed("")) == 4


async def test_limits_are_inclusive_and_return_workspace_too_large(ada: httpx.AsyncClient) -> None:
    limits = {"maxFileBytes": 10, "maxFiles": 2}
    assert (await ada.put("/v1/policy", json={"limits": limits})).status_code == 200
    assert (await put(ada, "a.md", "x" * 10)).status_code == 200
    for text in ("x" * 11, "ä" * 6):
        large = await put(ada, "a.md", text)
        assert (large.status_code, large.json()["error"]) == (413, "workspace_too_large")
        assert large.json()["details"]["maxBytes"] == 10
    assert (await put(ada, "b.md", "x")).status_code == 200
    full = await put(ada, "c.md", "x")
    assert (full.status_code, full.json()["error"]) == (413, "workspace_too_large")
    assert (await put(ada, "a.md", "y")).status_code == 200
    await ada.delete(f"{FILES}/b.md")
    assert (await put(ada, "c.md", "x")).status_code == 200
    discovery = (await ada.get("/.well-known/openwop")).json()
    assert discovery["workspace"] == discovery["capabilities"]["workspace"]
    assert discovery["workspace"]["maxFileBytes"] == 10


async def test_a_policy_put_without_a_body_is_refused(ada: httpx.AsyncClient) -> None:
    await ada.put("/v1/policy", json={"limits": {"maxFiles": 2}})
    refused = await ada.put("/v1/policy")

    assert (refused.status_code, refused.json()["error"]) == (400, "validation_error")
    assert (await ada.get("/v1/policy")).json()["limits"]["maxFiles"] == 2


async def test_the_largest_file_fits_into_a_request_when_fully_escaped(
    ada: httpx.AsyncClient,
) -> None:
    max_bytes = 1024 * 1024
    body = '{"content":"' + "\\u0001" * max_bytes + '"}'
    head = {"Content-Type": "application/json"}
    created = await ada.put(f"{FILES}/a.md", content=body, headers=head)
    assert (created.status_code, len(created.json()["content"])) == (200, max_bytes)
    larger = await put(ada, "a.md", "x" * (max_bytes + 1))
    assert (larger.status_code, larger.json()["error"]) == (413, "workspace_too_large")


async def test_without_a_valid_token_every_path_is_401(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    await put(ada, "a.md", "x")
    for token in (None, "wrong"):
        client = server.as_(token)
        for url in (f"{FILES}/a.md", f"{FILES}/no.md", FILES, "/v1/nothing", f"{FILES}/../x"):
            answer = await client.get(url)
            assert (answer.status_code, answer.json()["error"]) == (401, "unauthenticated")
    assert (await server.as_(None).get("/.well-known/openwop")).status_code == 200


async def test_writing_does_not_imply_reading(server: FullApp, ada: httpx.AsyncClient) -> None:
    reader = await server.key(ada, Permission.WORKSPACE_READ)
    writer = await server.key(ada, Permission.WORKSPACE_WRITE)
    assert (await put(writer, "a.md", "x")).status_code == 200
    assert (await writer.get(f"{FILES}/a.md")).status_code == 403
    assert (await writer.get(FILES)).status_code == 403
    assert (await reader.get(f"{FILES}/a.md")).status_code == 200
    for refused in (await put(reader, "a.md", "y"), await reader.delete(f"{FILES}/a.md")):
        assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")


async def test_a_bound_key_works_in_its_own_workspace_and_in_no_other(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    team = await server.key(ada, workspace="team")
    await put(team, "a.md", "of the team")
    await put(ada, "a.md", "of the tenant")

    assert (await team.get(f"{FILES}/a.md")).json()["content"] == "of the team"
    assert (await ada.get("/v1/workspaces/team/files/a.md")).json()["content"] == "of the team"
    assert (await team.get("/v1/workspaces/default/files/a.md")).status_code == 404
    assert (await team.get("/v1/workspaces/team/files/a.md")).status_code == 200
    assert (await team.get("/v1/defaults/files")).status_code in (403, 404)


async def test_secrets_are_never_stored(ada: httpx.AsyncClient) -> None:
    await ada.put("/v1/secrets/db", json={"value": "hunter2hunter2"})
    created = await put(ada, "a.md", "use hunter2hunter2 and AKIAIOSFODNN7EXAMPLE")

    assert created.json()["content"] == "use [REDACTED:db] and [REDACTED:aws-access-key]"
    assert (await ada.get(f"{FILES}/a.md")).json() == created.json()
    assert (await put(ada, "hunter2hunter2.md", "x")).status_code == 400
    response = await ada.put(
        "/v1/workspaces/default/files/b.md",
        json={"content": "x"},
        headers={"Carrel-Reason": "because of hunter2hunter2"},
    )
    assert response.status_code == 200
    history = (await ada.get("/v1/workspaces/default/files/b.md/history")).json()
    assert history["items"][0]["reason"] == "because of [REDACTED:db]"


async def test_secret_patterns_can_be_reported_or_ignored(ada: httpx.AsyncClient) -> None:
    text = "AKIAIOSFODNN7EXAMPLE"
    await ada.put("/v1/policy", json={"redaction": "warn"})
    warned = await put(ada, "a.md", text)
    assert warned.json()["content"] == text
    assert "aws-access-key" in warned.headers["carrel-warning"]
    await ada.put("/v1/policy", json={"redaction": "off"})
    assert "carrel-warning" not in (await put(ada, "a.md", text)).headers


async def test_a_repeated_request_is_replayed_and_not_executed_again(
    ada: httpx.AsyncClient,
) -> None:
    first = await put(ada, "a.md", "one", Idempotency_Key="k")
    await put(ada, "a.md", "two")
    again = await put(ada, "a.md", "one", Idempotency_Key="k")
    other = await put(ada, "a.md", "three", Idempotency_Key="k")

    assert again.json() == first.json()
    assert again.headers["openwop-idempotent-replay"] == "true"
    assert (other.status_code, other.json()["error"]) == (409, "idempotency_key_mismatch")
    assert (await ada.get(f"{FILES}/a.md")).json()["content"] == "two"


async def test_concurrent_requests_with_one_key_run_once(ada: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(put(ada, "a.md", "x", Idempotency_Key="k") for _ in range(9)))
    assert {a.status_code for a in answers} <= {200, 409}
    assert {a.json()["version"] for a in answers if a.status_code == 200} == {1}
    assert (await ada.get(f"{FILES}/a.md")).json()["version"] == 1


async def create_agent(ada: httpx.AsyncClient) -> tuple[str, str]:
    template = (await ada.post("/v1/templates", json={"slug": "sales", "name": "Sales"})).json()[
        "id"
    ]
    body = {"slug": "marco", "name": "Marco", "templateId": template}
    agent = (await ada.post("/v1/agents", json=body)).json()["id"]
    return f"/v1/agents/{agent}/files", f"/v1/templates/{template}/files"


async def test_the_nearest_layer_wins_and_etags_differ_per_layer(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    agent, template = await create_agent(ada)
    for url, text in (("/v1/defaults/files", "kind"), (template, "brisk")):
        await ada.put(f"{url}/SOUL.md", json={"content": text})
        served = (await ada.get(f"{agent}/SOUL.md")).json()
        assert served["content"] == text
    assert (served["source"], served["version"], served["updateAvailable"]) == (
        "template",
        1,
        False,
    )
    inherited = {"If-Match": served["etag"]}
    mine = await ada.put(f"{agent}/SOUL.md", json={"content": "mine"}, headers=inherited)
    assert (mine.status_code, mine.json()["source"], mine.json()["version"]) == (
        *(200, "agent-override"),
        2,
    )
    assert mine.json()["etag"] != served["etag"]
    again = await ada.put(f"{agent}/SOUL.md", json={"content": "again"}, headers=inherited)
    assert again.status_code == 409
    await ada.put(f"{template}/SOUL.md", json={"content": "brisker"})
    rows = (await ada.get(agent)).json()["files"]
    assert [row["path"] for row in rows if row["updateAvailable"]] == ["SOUL.md"]
    assert (await ada.delete(f"{agent}/SOUL.md")).status_code == 204
    assert (await ada.get(f"{agent}/SOUL.md")).json()["content"] == "brisker"
    assert (await ada.delete(f"{agent}/SOUL.md")).status_code == 404
    for number, text in ((1, "brisk"), (2, "mine"), (5, "brisker")):
        assert (await ada.get(f"{agent}/SOUL.md?version={number}")).json()["content"] == text
    assert (await ada.get(f"{agent}/SOUL.md?version=3")).status_code == 404


async def test_an_agents_own_key_works_on_its_stack(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    agent, template = await create_agent(ada)
    await ada.put(f"{template}/SOUL.md", json={"content": "brisk"})
    body = {"name": "marco", "kind": "agent", "agentId": agent.split("/")[3]}
    marco = server.as_((await ada.post("/v1/keys", json=body)).json()["key"])

    assert (await marco.get(f"{FILES}/SOUL.md")).json()["content"] == "brisk"
    assert (await put(marco, "notes/a.md", "mine")).status_code == 200
    listed = (await marco.get(FILES)).json()["files"]
    assert {file["path"] for file in listed} == {*defaults.FILES, "notes/a.md"}
    assert (await ada.get(f"{agent}/notes/a.md")).json()["content"] == "mine"
    assert (await ada.get(FILES)).json() == {"files": []}


async def test_paths_outside_rfc_0059_work_only_under_workspaces(ada: httpx.AsyncClient) -> None:
    url = "/v1/workspaces/default/files"
    for path in ("ä b.md", ".hidden", "_x", "🌱.md"):
        assert (await ada.put(f"{url}/{path}", json={"content": path})).status_code == 200
        assert (await ada.get(f"{url}/{path}")).json()["content"] == path
        assert (await ada.get(f"{FILES}/{path}")).status_code == 400
    assert (await ada.get(FILES)).json() == {"files": []}
    assert len((await ada.get(url)).json()["files"]) == 4
    contents = (await ada.get(url, params={"content": "true"})).json()["files"]
    assert all(file["content"] == file["path"] for file in contents)


async def test_history_diff_explain_and_restore(ada: httpx.AsyncClient) -> None:
    url = "/v1/workspaces/default/files/a.md"
    for text in ("one\n", "one\ntwo\n"):
        await ada.put(url, json={"content": text})
    await ada.delete(url)

    items = (await ada.get(f"{url}/history")).json()["items"]
    assert [(row["version"], row["deleted"]) for row in items] == [
        (3, True),
        (2, False),
        (1, False),
    ]
    page = (await ada.get(f"{url}/history", params={"limit": 2})).json()
    assert page["next"] == "2"
    rest = (await ada.get(f"{url}/history", params={"cursor": page["next"]})).json()
    assert [row["version"] for row in rest["items"]] == [1]
    diff = await ada.get(f"{url}/diff", params={"from": 1, "to": 2})
    assert diff.text == "--- a/a.md\n+++ b/a.md\n@@ -1 +1,2 @@\n one\n+two\n"
    assert (await ada.get(f"{url}/diff", params={"from": 7})).status_code == 404
    back = await ada.post(f"{url}/restore", json={"version": 1})
    assert (back.json()["version"], back.json()["content"]) == (4, "one\n")
    explanation = (await ada.get(f"{url}/explain")).json()
    assert (explanation["source"], explanation["layers"][0]["version"]) == ("workspace", 4)
    assert (await ada.get("/v1/workspaces/default/files/no.md/history")).status_code == 404


BAD: list[Any] = [None, [], "x", 1, {}, {"content": 1}, {"content": "x", "path": "a"}]


@pytest.mark.parametrize("body", BAD, ids=str)
async def test_an_invalid_body_is_400(ada: httpx.AsyncClient, body: Any) -> None:
    answer = await ada.put(f"{FILES}/a.md", json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


@pytest.mark.parametrize("kind", ["", "markdown", "text/", "a/b\n", "text/" + "x" * 99])
async def test_an_invalid_content_type_is_400(ada: httpx.AsyncClient, kind: str) -> None:
    answer = await ada.put(f"{FILES}/a.md", json={"content": "x", "contentType": kind})
    assert answer.status_code == 400
