"""Queries of the console, and files written over GraphQL."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp
from tests.support.graphql_client import (
    GraphqlTenant,
    create,
    execute_query,
    query_data,
    query_error_code,
    sha,
    write,
)

from carrel.actions.accounts.credentials import authenticate
from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.core.access import Permission
from carrel.core.identifiers import Path

pytestmark = pytest.mark.anyio

PUT = """mutation($place: Place!, $path: String!, $content: String!, $etag: String, $none: String,
  $accept: Boolean! = false, $why: String! = "", $type: String, $run: ID) {
  putFile(place: $place, path: $path, content: $content, ifMatch: $etag, ifNoneMatch: $none,
    acceptTemplateUpdate: $accept, reason: $why, contentType: $type, runId: $run) {
    file { path source version etag content contentType } warnings redacted } }"""
MARCO = {"agentId": "marco"}


async def test_me_describes_the_credential(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    document = """{ me { kind role tenantId personId agentId workspaceId permissions
      person { name } } tenant { id slug name } }"""
    result = await query_data(owner, document)
    assert result["tenant"] == {"id": sample.tenant, "slug": "acme", "name": "Acme"}
    assert (result["me"]["kind"], result["me"]["role"]) == ("person", "owner")
    assert result["me"]["person"] == {"name": "Ada"}
    robot = await server.key(owner, Permission.WORKSPACE_READ, workspace="lab")
    me = (await query_data(robot, "{ me { kind role workspaceId permissions person { name } } }"))[
        "me"
    ]
    assert me == {
        "kind": "service",
        "role": None,
        "workspaceId": "lab",
        "permissions": ["workspace:read"],
        "person": None,
    }


async def test_agents_are_paged_filtered_and_found_by_prefix(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    for number in range(5):
        await create(owner, "/v1/agents", slug=f"bot-{number}", name=f"Étoile {number}")
    slugs: list[str] = []
    page: dict[str, Any] = {"next": ""}
    while page["next"] is not None:
        document = (
            "query($after: String!) { agents(first: 2, after: $after) { next items { slug } } }"
        )
        page = (await query_data(owner, document, after=page["next"]))["agents"]
        slugs += [item["slug"] for item in page["items"]]
    assert slugs == ["marco", *(f"bot-{number}" for number in range(5))]
    search = "query($s: String!) { agents(first: 3, startsWith: $s) { next items { slug } } }"
    result = (await query_data(owner, search, s="éto"))["agents"]
    assert [item["slug"] for item in result["items"]] == ["bot-0", "bot-1", "bot-2"]
    assert result["next"] is not None
    assert (await query_data(owner, search, s="MAR"))["agents"]["items"] == [{"slug": "marco"}]
    following = '{ agents(templateId: "sales") { items { slug } } }'
    assert (await query_data(owner, following))["agents"]["items"] == [{"slug": "marco"}]
    unknown = '{ agents(templateId: "unknown") { next } }'
    assert await query_error_code(owner, unknown) == "NOT_FOUND"
    await owner.patch("/v1/agents/bot-3", json={"tags": ["eu"]})
    tagged = '{ agents(templateId: "none", tag: "eu", search: "eto") { total items { tags } } }'
    expected = {"total": 1, "items": [{"tags": ["eu"]}]}
    assert (await query_data(owner, tagged))["agents"] == expected
    assert (
        await query_error_code(owner, '{ agents(after: "\\u0000") { next } }') == "BAD_USER_INPUT"
    )
    assert await query_error_code(owner, '{ agents(after: "zzz") { next } }') == "BAD_USER_INPUT"


async def test_an_agent_is_found_by_id_and_by_slug(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    document = "query($id: ID!) { agent(id: $id) { id slug template { name } } }"
    for name in (sample.agent, "marco"):
        result = (await query_data(owner, document, id=name))["agent"]
        assert result == {"id": sample.agent, "slug": "marco", "template": {"name": "Sales"}}
    answer = await execute_query(owner, document, id="missing")
    assert answer["data"] == {"agent": None}


async def test_a_template_has_its_followers_files_and_pins(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    await create(owner, "/v1/templates", slug="idle", name="Idle")
    await create(owner, "/v1/agents", slug="polo", name="Polo", templateId="sales")
    result = await query_data(
        owner,
        """{ templates(first: 10) { items { slug followerCount
          followers(first: 5) { items { slug } } files(first: 5) { items { path source content } }
          pins { path source latestSha latestContent } } } }""",
    )
    by_slug = {item["slug"]: item for item in result["templates"]["items"]}
    sales, idle = by_slug["sales"], by_slug["idle"]
    assert (sales["followerCount"], idle["followerCount"]) == (2, 0)
    assert [item["slug"] for item in sales["followers"]["items"]] == ["marco", "polo"]
    assert [item["path"] for item in sales["files"]["items"]] == ["GUARDRAILS.md", "SOUL.md"]
    assert sales["files"]["items"][1]["content"] == "{{AGENT_NAME}} is brisk"
    [offer] = [pin for pin in sales["pins"] if pin["path"] == "GUARDRAILS.md"]
    assert offer == {
        "path": "GUARDRAILS.md",
        "source": "template",
        "latestSha": f"sha256:{sha('be good')}",
        "latestContent": "be good",
    }


async def test_a_file_has_all_its_fields(owner: httpx.AsyncClient, sample: GraphqlTenant) -> None:
    document = """{ agent(id: "marco") { file(path: "SOUL.md") {
      path source class sha256 renderedSha256 updateAvailable version etag size contentType
      content raw: content(raw: true) history { items { version } next }
      explain { source why layers { kind name version sha256 baseSha256 } } } } }"""
    file = (await query_data(owner, document))["agent"]["file"]
    stored = "{{AGENT_NAME}} is brisk"
    assert (file["source"], file["class"], file["version"]) == ("template", "live", 1)
    assert (file["content"], file["raw"]) == ("Marco is brisk", stored)
    assert (file["sha256"], file["renderedSha256"]) == (sha(stored), sha("Marco is brisk"))
    assert (file["size"], file["updateAvailable"]) == (len(stored), False)
    assert file["history"] == {"items": [{"version": 1}], "next": None}
    assert file["explain"]["source"] == "template"
    assert [layer["kind"] for layer in file["explain"]["layers"]] == [
        "agent",
        "template",
        "defaults",
    ]
    assert (await owner.get("/v1/agents/marco/files/SOUL.md")).json()["etag"] == file["etag"]


async def test_files_are_written_with_conditions_and_reasons(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    variables = {"place": MARCO, "path": "notes/a.md", "content": "one", "why": "to begin"}
    first = (await query_data(owner, PUT, **variables, none="*"))["putFile"]["file"]
    assert (first["version"], first["content"], first["source"]) == (1, "one", "agent-override")
    assert await query_error_code(owner, PUT, **variables, none="*") == "CONFLICT"
    assert await query_error_code(owner, PUT, **variables, etag='"v9"') == "CONFLICT"
    second = {**variables, "content": "two\n", "why": ""}
    await query_data(owner, PUT, **second, etag=first["etag"], type="text/plain")
    document = """{ file(place: {agentId: "marco"}, path: "notes/a.md") { contentType diff
      old: diff(from: 0, to: 1) never: diff(to: 9)
      history(first: 1) { next items { version author reason runId at deleted size sha256 } }
      earlier: history(before: 2) { next items { version reason } } } }"""
    answer = await execute_query(owner, document)
    file = answer["data"]["file"]
    assert file["contentType"] == "text/plain"
    assert "-one" in file["diff"] and "+two" in file["diff"]
    assert "+one" in file["old"] and file["never"] is None
    assert [error["extensions"]["code"] for error in answer["errors"]] == ["NOT_FOUND"]
    assert file["history"]["next"] == 2
    assert file["earlier"] == {"next": None, "items": [{"version": 1, "reason": "to begin"}]}


async def test_a_file_is_restored_and_deleted(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    for text in ("one", "two"):
        await write(owner, "/v1/agents/marco/files/SOUL.md", text)
    restore = """mutation { restoreFile(place: {agentId: "marco"}, path: "SOUL.md", version: %d) {
      file { version content } } }"""
    restored = (await query_data(owner, restore % 2))["restoreFile"]["file"]
    assert restored == {"version": 4, "content": "one"}
    assert await query_error_code(owner, restore % 99) == "NOT_FOUND"
    assert await query_error_code(owner, restore % -1) == "NOT_FOUND"
    delete = 'mutation { deleteFile(place: {agentId: "marco"}, path: "SOUL.md", ifMatch: %s) }'
    assert await query_error_code(owner, delete % '"\\"v1\\""') == "CONFLICT"
    assert (await query_data(owner, delete % '"*"'))["deleteFile"] is True
    assert await query_error_code(owner, delete % "null") == "NOT_FOUND"


async def test_a_pinned_file_is_overridden_only_with_the_flag(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    variables = {"place": MARCO, "path": "GUARDRAILS.md", "content": "mine"}
    assert await query_error_code(owner, PUT, **variables) == "FORBIDDEN"
    assert await query_error_code(owner, PUT, **variables, accept="true") == "BAD_USER_INPUT"
    done = (await query_data(owner, PUT, **variables, accept=True))["putFile"]["file"]
    assert done["source"] == "agent-override-pinned"
    user = {"place": MARCO, "path": "USER.md", "content": "mine", "accept": True}
    assert await query_error_code(owner, PUT, **user) == "FORBIDDEN"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"path": "../x"}, "BAD_USER_INPUT"),
        ({"path": ""}, "BAD_USER_INPUT"),
        ({"path": "a\u0000b"}, "BAD_USER_INPUT"),
        ({"type": "not a type"}, "BAD_USER_INPUT"),
        ({"why": "two\nlines"}, "BAD_USER_INPUT"),
        ({"none": "x"}, "BAD_USER_INPUT"),
        ({"run": "run_nothing"}, "NOT_FOUND"),
        ({"run": "\u0000"}, "NOT_FOUND"),
        ({"content": "x" * (2**20 + 1)}, "BAD_USER_INPUT"),
        ({"place": {"agentId": "missing"}}, "NOT_FOUND"),
        ({"place": {"templateId": "nothing"}}, "NOT_FOUND"),
        ({"place": {"workspaceId": "a b"}}, "BAD_USER_INPUT"),
        ({"place": {"defaults": False}}, "BAD_USER_INPUT"),
        ({"place": {}}, "BAD_USER_INPUT"),
        ({"place": {"agentId": "marco", "defaults": True}}, "BAD_USER_INPUT"),
    ],
)
async def test_an_invalid_write_is_refused(
    owner: httpx.AsyncClient, sample: GraphqlTenant, change: dict[str, Any], code: str
) -> None:
    variables = {"place": MARCO, "path": "a.md", "content": "x", **change}
    assert await query_error_code(owner, PUT, **variables) == code


@pytest.mark.parametrize(
    "place", [{"templateId": "sales"}, {"defaults": True}, {"workspaceId": "lab"}, MARCO]
)
async def test_files_of_every_layer_are_written_listed_and_explained(
    owner: httpx.AsyncClient, sample: GraphqlTenant, place: dict[str, Any]
) -> None:
    for name in ("x/a.md", "x/b.md", "y.md"):
        await query_data(owner, PUT, place=place, path=name, content=name)
    document = """query($p: Place!, $after: String!) {
      files(place: $p, prefix: "x/", first: 1, after: $after) { next items { path content } }
      explain(place: $p, path: "x/b.md") { why source } }"""
    first = await query_data(owner, document, p=place, after="")
    assert first["files"]["items"] == [{"path": "x/a.md", "content": "x/a.md"}]
    rest = await query_data(owner, document, p=place, after=first["files"]["next"])
    assert rest["files"] == {"next": None, "items": [{"path": "x/b.md", "content": "x/b.md"}]}
    assert rest["explain"]["why"]


async def test_secrets_are_redacted_and_named(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    await owner.put("/v1/secrets/door", json={"value": "open sesame"})
    variables = {"place": MARCO, "path": "notes/a.md", "content": "say open sesame"}
    done = (await query_data(owner, PUT, **variables))["putFile"]
    assert done["file"]["content"] == "say [REDACTED:door]"
    assert done["redacted"] == ["door"]


async def test_runs_have_their_snapshot_and_later_changes(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    started = await owner.post("/v1/runs", json={"agentId": "marco", "workflowId": "w"})
    run = started.json()["runId"]
    await write(owner, "/v1/templates/sales/files/SOUL.md", "{{AGENT_NAME}} is slow")
    document = """query($id: ID!) { run(id: $id) { id status scope workflowId agentId agent { slug }
      kept startedAt endedAt file(path: "SOUL.md") { content version class }
      files(first: 400) { items { path content sha256 } }
      changes { path change beforeVersion afterVersion } diff(path: "SOUL.md") } }"""
    result = (await query_data(owner, document, id=run))["run"]
    assert (result["status"], result["scope"], result["agent"]) == (
        "running",
        "main",
        {"slug": "marco"},
    )
    assert result["file"] == {"content": "Marco is brisk", "version": 1, "class": "live"}
    frozen = {item["path"]: item["content"] for item in result["files"]["items"]}
    assert (frozen["SOUL.md"], frozen["GUARDRAILS.md"]) == ("Marco is brisk", "be good")
    assert result["changes"] == [
        {"path": "SOUL.md", "change": "changed", "beforeVersion": 1, "afterVersion": 2}
    ]
    assert "+Marco is slow" in result["diff"]
    listed = await query_data(owner, '{ runs(agentId: "marco") { items { id } next } }')
    assert listed["runs"] == {"items": [{"id": run}], "next": None}
    await owner.patch(f"/v1/runs/{run}", json={"status": "completed", "kept": False})
    gone = await execute_query(owner, document, id=run)
    assert (gone["data"]["run"]["kept"], gone["data"]["run"]["files"]) == (False, None)
    assert {error["extensions"]["code"] for error in gone["errors"]} == {"NOT_FOUND"}


async def test_the_audit_is_paged(owner: httpx.AsyncClient, sample: GraphqlTenant) -> None:
    document = (
        "query($a: String!) { audit(first: 2, after: $a) { next items { id why subjects } } }"
    )
    first = (await query_data(owner, document, a=""))["audit"]
    second = (await query_data(owner, document, a=first["next"]))["audit"]
    ids = [item["id"] for item in (*first["items"], *second["items"])]
    assert len(set(ids)) == 4
    assert first["next"] == ids[1]
    assert await query_error_code(owner, document, a="x") == "BAD_USER_INPUT"


async def test_a_binary_file_is_named_in_the_error(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    actor = await authenticate(server.ports, owner.headers["Authorization"].partition(" ")[2])
    stack = await stacks.agent_stack(server.ports, actor, "marco")
    for name, content in (("notes/a.md", b"text"), ("notes/b.bin", b"\xff")):
        await files.put(server.ports, stack, Path(name), content, actor)
    answer = await execute_query(
        owner, '{ files(place: {agentId: "marco"}, prefix: "notes/") { items { path content } } }'
    )
    assert answer["data"]["files"]["items"] == [
        {"path": "notes/a.md", "content": "text"},
        {"path": "notes/b.bin", "content": None},
    ]
    [error] = answer["errors"]
    assert "notes/b.bin" in error["message"]
    assert error["path"] == ["files", "items", 1, "content"]
