"""What fails fails alone, is named where it may be, and is written down once."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs
from tests.support.full_app import FullApp, create_rest_app, open_full_app
from tests.support.graphql_client import create_graphql_tenant, execute_query, write

from carrel.core.store.record import AuditEntry, Record, RecordType
from carrel.ports import Records

pytestmark = pytest.mark.anyio

PINS = """{ agentPinStatus(agentId: "marco") {
  path pinnedSha latestSha updateAvailable pinnedContent latestContent } }"""


@pytest.fixture
async def stored(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


def damage(directory: File, text: str, becomes: str | None) -> None:
    """Change bytes behind the store's back, or take them away."""
    stored = None if becomes is None else becomes.encode()
    with sqlite3.connect(directory / "carrel.db") as db:
        ask = (stored, text.encode())
        assert db.execute("UPDATE content SET body = ? WHERE body = ?", ask).rowcount
    db.close()


@pytest.mark.parametrize("becomes", ["be bad!", None])
async def test_a_pin_whose_bytes_cannot_be_had_fails_by_name_and_alone(
    stored: FullApp, tmp_path: File, becomes: str | None
) -> None:
    owner = await stored.owner()
    await write(owner, "/v1/defaults/files/PLATFORM.md", "our platform")
    await create_graphql_tenant(owner)
    await write(owner, "/v1/templates/sales/files/GUARDRAILS.md", "be better")
    damage(tmp_path, "be good", becomes)
    with capture_logs() as logs:
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


async def test_a_file_whose_bytes_are_gone_takes_no_other_along(
    stored: FullApp, tmp_path: File
) -> None:
    owner = await stored.owner()
    await create_graphql_tenant(owner)
    run = (await owner.post("/v1/runs", json={"agentId": "marco"})).json()["runId"]
    damage(tmp_path, "{{AGENT_NAME}} is brisk", "{{AGENT_NAME}} is brusk")
    frozen = '{ run(id: "%s") { files { items { path content } } } }' % run  # noqa: UP031
    live = '{ files(place: {agentId: "marco"}) { items { path content renderedSha256 } } }'
    for document, where in ((live, ["files"]), (frozen, ["run", "files"])):
        answer = await execute_query(owner, document)
        place: Any = answer["data"]
        for step in where:
            place = place[step]
        found = {one["path"]: one["content"] for one in place["items"]}
        assert (found["SOUL.md"], found["GUARDRAILS.md"]) == (None, "be good")
        assert all("SOUL.md cannot be read" in error["message"] for error in answer["errors"])


class Failing:
    """Records of which two questions cannot be answered."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)

    async def audit(
        self, tenant: str, *, before: int = 0, limit: int = 100
    ) -> tuple[AuditEntry, ...]:
        raise RuntimeError("the password is tiger")

    async def get(
        self, tenant: str, record_type: RecordType, ids: Sequence[str]
    ) -> tuple[Record | None, ...]:
        if record_type is RecordType.TEMPLATE and all(id.startswith("tpl_") for id in ids):
            raise ConnectionError("the password is tiger")
        return await self._records.get(tenant, record_type, ids)


async def test_what_nobody_foresaw_is_told_by_an_id_and_logged_once(stored: FullApp) -> None:
    owner = await stored.owner()
    await create_graphql_tenant(owner)
    for number in range(5):
        new = {"slug": f"a{number}", "name": "A", "templateId": "sales"}
        assert (await owner.post("/v1/agents", json=new)).status_code == 201
    ports = replace(stored.ports, records=Failing(stored.ports.records))
    transport = httpx.ASGITransport(app=create_rest_app(ports))
    broken = httpx.AsyncClient(transport=transport, base_url="http://carrel", headers=owner.headers)
    document = "{ audit { next } agents { items { slug template { slug } } } me { role } }"
    with capture_logs() as logs:
        answer = await execute_query(broken, document)
    assert answer["data"]["me"] == {"role": "owner"}
    assert answer["data"]["audit"] is None
    items = answer["data"]["agents"]["items"]
    assert len(items) == 6 and all(one["template"] is None for one in items)
    assert len(answer["errors"]) == 7
    for error in answer["errors"]:
        assert error["extensions"]["code"] == "INTERNAL_SERVER_ERROR"
        assert error["extensions"]["correlationId"]
        assert "tiger" not in str(error)
    failed = [line for line in logs if line["event"] == "failed"]
    assert len(failed) == 2
    assert "tiger" not in str(logs)
