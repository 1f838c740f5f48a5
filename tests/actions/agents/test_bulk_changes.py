"""Changes of many agents take few statements and leave a conflict to a retry."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import pytest
from tests.support.stores import open_ports
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.agents.bulk_changes import AgentSelection, BulkChange, change_agents
from carrel.actions.agents.overview import AgentFilter
from carrel.adapters.sqlite.damage import SqliteConnection, SqliteCursor
from carrel.core.access import Actor
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


class CountingConnection(SqliteConnection):
    """A connection that counts statements that read."""

    selects = 0

    def execute(self, sql: str, *args: Any) -> SqliteCursor:
        CountingConnection.selects += sql.lstrip().upper().startswith(("SELECT", "WITH"))
        return super().execute(sql, *args)


@pytest.fixture
async def counted_ports(tmp_path: File, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ports]:
    real = sqlite3.connect
    monkeypatch.setattr(
        sqlite3,
        "connect",
        lambda *args, **options: real(*args, **{**options, "factory": CountingConnection}),
    )
    async with open_ports(tmp_path) as ports:
        yield ports


async def count_selects(ports: Ports, owner: Actor, template: str, count: int) -> int:
    for number in range(count):
        slug = f"{template}-{number}"
        await agents.create(ports, owner, NewAgent(slug, slug, human=owner.person, tags=[template]))
    await templates.create(ports, owner, template, template)
    CountingConnection.selects = 0
    outcomes = await change_agents(
        ports,
        owner,
        AgentSelection(filter=AgentFilter(tag=template)),
        BulkChange({"template_id": template}),
        dry_run=True,
    )
    assert [outcome.changed for outcome in outcomes] == [True] * count
    return CountingConnection.selects


async def test_a_dry_run_of_many_takes_as_many_queries_as_one_of_few(counted_ports: Ports) -> None:
    _, owner = await create_tenant(counted_ports)
    few = await count_selects(counted_ports, owner, "few", 3)
    many = await count_selects(counted_ports, owner, "many", 60)
    assert few > 0
    assert many <= few + 3
