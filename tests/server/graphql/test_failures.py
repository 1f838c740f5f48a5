"""A failing field fails alone, names its file and is logged once."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, create_rest_app, open_full_app
from tests.support.graphql_client import create_graphql_tenant, execute_query, write
from tests.support.logs import captured_logs

from carrel.core.store.record import AuditEntry, Record, RecordType
from carrel.ports import Records

pytestmark = pytest.mark.anyio

PINS = """{ agentPinStatus(agentId: "marco") {
  path pinnedSha latestSha updateAvailable pinnedContent latestContent } }"""


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


def damage(directory: File, text: str, becomes: str | None) -> None:
    """Change or delete stored bytes directly in the database."""
    content = None if becomes is None else becomes.encode()
    with sqlite3.connect(directory / "carrel.db") as db:
        parameters = (content, text.encode())
        assert db.execute("UPDATE content SET body = ? WHERE body = ?", parameters).rowcount
    db.close()


@pytest.mark.parametrize("becomes", ["be bad!", None])
async def test_an_unreadable_pin_is_named_and_fails_alone(
    server: FullApp, tmp_path: File, becomes: str | None
) -> None:
    owner = await server.owner()
    await write(owner, "/v1/defaults/files/PLATFORM.md", "our platform")
    await create_graphql_tenant(owner)
    await write(owner, "/v1/templates/sales/files/GUARDRAILS.md", "be better")
    damage(tmp_path, "be good", becomes)
    with captured_logs() as logs:
        answer = await execute_query(owner, PINS)
    rows = {row["path"]: row for row in answer["data"]["agentPinStatus"]}
    rules, platform = rows["GUARDRAILS.md"], rows["PLATFORM.md"]
    assert (rules["pinnedContent"], rules["latestContent"]) == (None, "be better")
    assert rules["updateAvailable"] and rules["pinnedSha"].startswith("sha256:")
    assert (platform["pinnedContent"], platform["latestContent"]) == ("our platform",) * 2
    [error] = answer["errors"]
    assert error["message"].startswith("GUARDRAILS.md cannot be read")
    assert error["path"] == ["agentPinStatus", 0, "pinnedContent"]
    assert error["extensions"]["code"] == "INTERNAL_SERVER_ERROR"
    [line] = [line for line in logs if line["event"] == "failed"]
    assert line["request_id"] == error["extensions"]["correlationId"]


async def test_an_unreadable_file_does_not_affect_the_others(
    server: FullApp, tmp_path: File
) -> None:
    owner = await server.owner()
    await create_graphql_tenant(owner)
    run = (await owner.post("/v1/runs", json={"agentId": "marco"})).json()["runId"]
    damage(tmp_path, "{{AGENT_NAME}} is brisk", "{{AGENT_NAME}} is brusk")
    frozen = '{ run(id: "%s") { files { items { path content } } } }' % run  # noqa: UP031
    live = '{ files(place: {agentId: "marco"}) { items { path content renderedSha256 } } }'
    for document, steps in ((live, ["files"]), (frozen, ["run", "files"])):
        answer = await execute_query(owner, document)
        node: Any = answer["data"]
        for step in steps:
            node = node[step]
        contents = {item["path"]: item["content"] for item in node["items"]}
        assert (contents["SOUL.md"], contents["GUARDRAILS.md"]) == (None, "be good")
        assert all("SOUL.md cannot be read" in error["message"] for error in answer["errors"])


class Failing:
    """Records whose audit and template reads fail."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)

    async def audit(self, *_: Any, **__: Any) -> tuple[AuditEntry, ...]:
        raise RuntimeError("the password is tiger")

    async def get(
        self, tenant: str, record_type: RecordType, ids: Sequence[str]
    ) -> tuple[Record | None, ...]:
        if record_type is RecordType.TEMPLATE and all(id.startswith("tpl_") for id in ids):
            raise ConnectionError("the password is tiger")
        return await self._records.get(tenant, record_type, ids)


async def test_an_unexpected_error_returns_an_id_and_is_logged_once(server: FullApp) -> None:
    owner = await server.owner()
    await create_graphql_tenant(owner)
    for number in range(5):
        new = {"slug": f"a{number}", "name": "A", "templateId": "sales"}
        assert (await owner.post("/v1/agents", json=new)).status_code == 201
    ports = replace(server.ports, records=Failing(server.ports.records))
    transport = httpx.ASGITransport(app=create_rest_app(ports))
    broken = httpx.AsyncClient(transport=transport, base_url="http://carrel", headers=owner.headers)
    document = "{ audit { next } agents { items { slug template { slug } } } me { role } }"
    with captured_logs() as logs:
        answer = await execute_query(broken, document)
    assert answer["data"]["me"] == {"role": "owner"}
    assert answer["data"]["audit"] is None
    items = answer["data"]["agents"]["items"]
    assert len(items) == 6 and all(item["template"] is None for item in items)
    assert len(answer["errors"]) == 7
    for error in answer["errors"]:
        assert error["extensions"]["code"] == "INTERNAL_SERVER_ERROR"
        assert error["extensions"]["correlationId"]
        assert "tiger" not in str(error)
    failed = [line for line in logs if line["event"] == "failed"]
    assert len(failed) == 2
    assert "tiger" not in str(logs)
