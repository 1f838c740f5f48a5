"""The overview and the inbox need the same number of statements for any number of agents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from tests.server.statement_log import StatementLog
from tests.support.full_app import FullApp, create_rest_app
from tests.support.services.files import fresh
from tests.support.stores import ports_over

from carrel.adapters.sqlite import open_store

pytestmark = pytest.mark.anyio
FEW, MANY = 2, 20
URLS = ("/v1/overview", "/v1/inbox?limit=1", "/v1/inbox?mine=true&limit=1")


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> StatementLog:
    return StatementLog(monkeypatch)


@pytest.fixture
async def owner(tmp_path: File, statements: StatementLog) -> AsyncIterator[httpx.AsyncClient]:
    async with open_store(fresh(tmp_path / "carrel.db")) as store:
        ports = ports_over(store)
        owner = await FullApp(ports, create_rest_app(ports)).owner()
        await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
        await put(owner, "templates/sales", "one")
        yield owner


async def put(owner: httpx.AsyncClient, scope: str, text: str) -> None:
    body = {"content": text, "acceptTemplateUpdate": True}
    answer = await owner.put(f"/v1/{scope}/files/GUARDRAILS.md", json=body)
    assert answer.is_success, answer.text


async def create_agents(owner: httpx.AsyncClient, first: int, count: int) -> None:
    """Create agents of one template with an override and a run each."""
    me = (await owner.get("/v1/people")).json()["items"][0]["id"]
    for number in range(first, first + count):
        new = {"slug": f"bot-{number}", "name": "Bot", "templateId": "sales", "humanPairId": me}
        assert (await owner.post("/v1/agents", json=new)).is_success
        await put(owner, f"agents/bot-{number}", f"own {number}")
        assert (await owner.post("/v1/runs", json={"agentId": f"bot-{number}"})).is_success


async def test_overview_and_inbox_take_as_many_statements_for_few_agents_as_for_many(
    owner: httpx.AsyncClient, statements: StatementLog
) -> None:
    counts: list[list[int]] = []
    for first, count in ((0, FEW), (FEW, MANY)):
        await create_agents(owner, first, count)
        await put(owner, "templates/sales", f"offered to {count}")
        for url in URLS:
            assert (await owner.get(url)).status_code == 200
        counts.append([await count_statements(owner, statements, url) for url in URLS])
    assert counts[0] == counts[1]
    assert max(counts[0]) <= 45


async def count_statements(owner: httpx.AsyncClient, log: StatementLog, url: str) -> int:
    log.clear()
    assert (await owner.get(url)).status_code == 200
    return len(log)
