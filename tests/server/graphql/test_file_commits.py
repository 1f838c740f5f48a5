"""Commits of many files, and files that are not text, over GraphQL."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp
from tests.support.graphql_client import (
    GraphqlTenant,
    execute_query,
    query_data,
    query_error_code,
)

from carrel.core.access import Permission

pytestmark = pytest.mark.anyio
PLACE = {"agentId": "marco"}
COMMIT = """
mutation($place: Place!, $writes: [FileChangeInput!]!, $reason: String! = "") {
  commitFiles(place: $place, writes: $writes, reason: $reason) {
    revision
    changes { index change path movedFrom version redacted file { path source } }
  }
}
"""
READ = "query($place: Place!, $path: String!) { file(place: $place, path: $path) { %s } }"
BYTES = b"\xff\xfe\0"


async def commit(client: httpx.AsyncClient, *writes: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await query_data(client, COMMIT, place=PLACE, writes=writes)
    changes: list[dict[str, Any]] = answer["commitFiles"]["changes"]
    return changes


async def test_many_changes_are_one_commit(owner: httpx.AsyncClient, sample: GraphqlTenant) -> None:
    await commit(
        owner,
        {"put": {"path": "notes/a.md", "content": "a"}},
        {"put": {"path": "notes/b/c.md", "content": "c"}},
    )
    changes = await commit(
        owner,
        {"put": {"path": "notes/new.md", "content": "new", "ifNoneMatch": "*"}},
        {"move": {"path": "notes/a.md", "to": "notes/moved.md"}},
        {"copy": {"path": "SOUL.md", "to": "notes/soul.md"}},
        {"delete": {"path": "notes/b", "recursive": True}},
        {"makeDirectory": {"path": "empty"}},
    )
    assert [(row["change"], row["path"], row["movedFrom"]) for row in changes] == [
        ("put", "notes/new.md", None),
        ("move", "notes/moved.md", "notes/a.md"),
        ("copy", "notes/soul.md", "SOUL.md"),
        ("delete", "notes/b/c.md", None),
        ("mkdir", "empty", None),
    ]
    assert changes[1]["file"] == {"path": "notes/moved.md", "source": "agent-override"}
    moved = await query_data(owner, READ % "content", place=PLACE, path="notes/moved.md")
    assert moved["file"] == {"content": "a"}
    assert changes[3]["file"] is None


async def test_a_refused_commit_names_every_change_that_failed(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    writes = [
        {"put": {"path": "SOUL.md", "content": "", "ifNoneMatch": "*"}},
        {"put": {"path": "notes/new.md", "content": "new"}},
        {"delete": {"path": "gone.md"}},
    ]
    [error] = (await execute_query(owner, COMMIT, place=PLACE, writes=writes))["errors"]
    failed = error["extensions"]["details"]["failed"]
    assert [row["path"] for row in failed] == ["SOUL.md", "gone.md"]
    path = {"place": PLACE, "path": "notes/new.md"}
    assert await query_error_code(owner, READ % "version", **path) == "NOT_FOUND"


async def test_bytes_that_are_not_text_are_written_and_read_as_base64(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    encoded = base64.b64encode(BYTES).decode()
    fields = {"content": encoded, "encoding": "base64", "contentType": "image/png"}
    await commit(owner, {"put": {"path": "notes/a.png", **fields}})
    document = """mutation($place: Place!, $content: String!) {
      putFile(place: $place, path: "notes/b.png", content: $content, encoding: base64) {
        file { size }
      }
    }"""
    assert await query_data(owner, document, place=PLACE, content=encoded) == {
        "putFile": {"file": {"size": len(BYTES)}}
    }
    for path in ("notes/a.png", "notes/b.png"):
        answer = await query_data(owner, READ % "base64", place=PLACE, path=path)
        assert answer["file"]["base64"] == encoded
    for write in (
        {"put": {"path": "a", "content": "*", "encoding": "base64"}},
        {"put": {"path": "a", "content": "a"}, "delete": {"path": "b"}},
        {"put": {"path": "../a", "content": "a"}},
        {},
    ):
        code = await query_error_code(owner, COMMIT, place=PLACE, writes=[write])
        assert code == "BAD_USER_INPUT"


async def test_a_move_needs_permission_to_read(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    writer = await server.key(owner, Permission.WORKSPACE_WRITE)
    await commit(writer, {"put": {"path": "notes/a.md", "content": "a"}})
    writes = [{"move": {"path": "notes/a.md", "to": "notes/b.md"}}]
    assert await query_error_code(writer, COMMIT, place=PLACE, writes=writes) == "FORBIDDEN"
