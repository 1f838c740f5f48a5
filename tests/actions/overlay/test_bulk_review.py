"""Accepting for all takes as many questions for a thousand followers as for a few."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import pytest
from tests.support.stores import open_ports
from tests.support.tenants import create_tenant

from carrel.actions.accounts import audit
from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.overlay import pins, stacks
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_change, agent_fields
from carrel.core.identifiers import Path, digest
from carrel.core.store.record import Record
from carrel.core.store.tree import Commit
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
RULES = Path("GUARDRAILS.md")
AT_ONCE = 1_000


class Counting(sqlite3.Connection):
    """Counts what is asked of it: single statements, and batches of one statement."""

    singles = 0
    batches = 0

    def execute(self, *given: Any) -> sqlite3.Cursor:
        Counting.singles += 1
        return super().execute(*given)

    def executemany(self, *given: Any) -> sqlite3.Cursor:
        Counting.batches += 1
        return super().executemany(*given)


@pytest.fixture
async def counted(tmp_path: File, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ports]:
    real = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *given, **more: real(*given, **more, factory=Counting)
    )
    async with open_ports(tmp_path) as ports:
        yield ports


async def crowd(ports: Ports, owner: Actor, first: Record, size: int) -> None:
    """Others like the first, many in one transaction."""
    commits = []
    for number in range(size):
        body = {**agent_fields(first), "slug": f"agent-{number}", "name": f"Agent {number}"}
        change = agent_change(owner.tenant, ports.clock.new_id("agt"), body, 0)
        commits.append(Commit((), "x", "create", ports.clock.now(), changes=(change,)))
    await ports.trees.commit(commits)


@pytest.mark.parametrize("size", [20, 2_400])
async def test_a_review_for_all_takes_few_questions(counted: Ports, size: int) -> None:
    _, owner = await create_tenant(counted)
    await templates.create(counted, owner, "sales", "Sales")
    first = await agents.create(counted, owner, NewAgent("first", "First", "sales"))
    await crowd(counted, owner, first, size - 1)
    sales = await stacks.template_stack(counted, owner, "sales")
    await files.put(counted, sales, RULES, b"be better", owner)

    Counting.singles = Counting.batches = 0
    results = await pins.accept_for_all(counted, owner, "sales", RULES, digest(b"be better"))

    assert [result.changed for result in results] == [True] * size
    transactions = -(-size // AT_ONCE)
    assert Counting.singles <= 30 + 6 * transactions
    assert Counting.batches <= 8 * transactions
    assert [result.agent for result in results] == sorted(result.agent for result in results)
    [entry] = (await audit.list_audit_entries(counted, owner, limit=1)).items
    assert entry.reason.endswith(f"to {digest(b'be better')}, for all")
    assert entry.subjects == (f"agent/{results[-1].agent}",)
    again = await pins.accept_for_all(counted, owner, "sales", RULES, digest(b"be better"))
    assert not any(result.changed or result.problem for result in again)


async def test_one_that_changes_meanwhile_is_decided_again(counted: Ports) -> None:
    _, owner = await create_tenant(counted)
    await templates.create(counted, owner, "sales", "Sales")
    first = await agents.create(counted, owner, NewAgent("first", "First", "sales"))
    await crowd(counted, owner, first, 30)
    sales = await stacks.template_stack(counted, owner, "sales")
    await files.put(counted, sales, RULES, b"be better", owner)
    read, ports = counted.trees.read, counted
    moved = iter(["", "first"])

    async def meanwhile(*given: Any, **more: Any) -> Any:
        """As somebody moves an agent between the reading of theirs and the writing."""
        trees = await read(*given, **more)
        if name := next(moved, None):
            await agents.patch(ports, owner, name, {"templateId": None})
        return trees

    counted.trees.read = meanwhile  # type: ignore[method-assign]
    results = await pins.accept_for_all(counted, owner, "sales", RULES, digest(b"be better"))
    problems = [result for result in results if result.problem]
    assert [result.agent for result in problems] == [first.id]
    assert sum(result.changed for result in results) == 30
