"""Accepting for all takes few statements for any number of followers."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import pytest
from msgspec import structs
from tests.support.stores import open_ports
from tests.support.tenants import create_tenant

from carrel.actions.accounts import audit
from carrel.actions.agents import agents, overview, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.overlay import bulk_reviews, pin_reviews, stacks
from carrel.adapters.sqlite.damage import SqliteConnection, SqliteCursor
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_change, agent_from_record
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, digest
from carrel.core.store.commit import Applied, Commit
from carrel.core.store.record import Record
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
RULES = Path("GUARDRAILS.md")
BATCH_SIZE = 1_000


class CountingConnection(SqliteConnection):
    """A connection that counts single statements and batches."""

    singles = 0
    batches = 0

    def execute(self, *args: Any) -> SqliteCursor:
        CountingConnection.singles += 1
        return super().execute(*args)

    def executemany(self, *args: Any) -> SqliteCursor:
        CountingConnection.batches += 1
        return super().executemany(*args)


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


async def create_copies(ports: Ports, owner: Actor, first: Record, size: int) -> None:
    """Copies of the first agent, in one transaction."""
    commits = []
    for number in range(size):
        fields = {"slug": f"agent-{number}", "name": f"Agent {number}"}
        agent = structs.replace(agent_from_record(first), **fields)
        change = agent_change(owner.tenant, ports.clock.new_id("agt"), agent)
        commits.append(Commit((), "x", "create", ports.clock.now(), changes=(change,)))
    await ports.trees.commit(commits)


@pytest.mark.parametrize("size", [20, 2_400])
async def test_accept_for_all_takes_few_statements(counted_ports: Ports, size: int) -> None:
    _, owner = await create_tenant(counted_ports)
    await templates.create(counted_ports, owner, "sales", "Sales")
    first = await agents.create(counted_ports, owner, NewAgent("first", "First", "sales"))
    await create_copies(counted_ports, owner, first, size - 1)
    sales = await stacks.template_stack(counted_ports, owner, "sales")
    await files.put(counted_ports, sales, RULES, b"be better", owner)

    CountingConnection.singles = CountingConnection.batches = 0
    results = await bulk_reviews.accept_for_all(
        counted_ports, owner, "sales", RULES, digest(b"be better")
    )

    assert [result.changed for result in results] == [True] * size
    transactions = -(-size // BATCH_SIZE)  # and two that record the review
    assert CountingConnection.singles <= 30 + 7 * (transactions + 2)
    assert CountingConnection.batches <= 8 * (transactions + 2)
    assert [result.agent for result in results] == sorted(result.agent for result in results)
    [entry] = (await audit.list_audit_entries(counted_ports, owner, limit=1)).items
    assert entry.reason.endswith(f"to {digest(b'be better')}, for all")
    assert entry.subjects[0] == f"agent/{results[-1].agent}"
    again = await bulk_reviews.accept_for_all(
        counted_ports, owner, "sales", RULES, digest(b"be better")
    )
    assert not any(result.changed or result.problem for result in again)

    CountingConnection.singles = CountingConnection.batches = 0
    rolled_back = await bulk_reviews.roll_back_for_all(
        counted_ports, owner, "sales", RULES, digest(b"be better")
    )
    assert [result.changed for result in rolled_back] == [True] * size
    assert CountingConnection.singles <= 30 + 7 * (transactions + 2)
    assert CountingConnection.batches <= 8 * (transactions + 2)


async def test_an_agent_changed_at_the_same_time_is_decided_again(counted_ports: Ports) -> None:
    _, owner = await create_tenant(counted_ports)
    await templates.create(counted_ports, owner, "sales", "Sales")
    first = await agents.create(counted_ports, owner, NewAgent("first", "First", "sales"))
    await create_copies(counted_ports, owner, first, 30)
    sales = await stacks.template_stack(counted_ports, owner, "sales")
    await files.put(counted_ports, sales, RULES, b"be better", owner)
    read, ports = counted_ports.trees.read, counted_ports
    patched = iter(["", "first"])

    async def read_and_patch(*args: Any, **options: Any) -> Any:
        """Patch an agent between the read of the trees and the commit."""
        trees = await read(*args, **options)
        if name := next(patched, None):
            await agents.patch(ports, owner, name, {"template_id": None})
        return trees

    counted_ports.trees.read = read_and_patch  # type: ignore[method-assign]
    results = await bulk_reviews.accept_for_all(
        counted_ports, owner, "sales", RULES, digest(b"be better")
    )
    problems = [result for result in results if result.problem]
    assert [result.agent for result in problems] == [first.id]
    assert sum(result.changed for result in results) == 30


CHURNING_CLIENTS = 8


async def test_other_agents_that_change_make_no_accept_fail(anywhere: Ports) -> None:
    """Each commit expects its own agent's record only."""
    ports = anywhere
    _, owner = await create_tenant(ports)
    await templates.create(ports, owner, "sales", "Sales")
    first = await agents.create(ports, owner, NewAgent("first", "First", "sales"))
    await create_copies(ports, owner, first, 399)
    sales = await stacks.template_stack(ports, owner, "sales")
    await files.put(ports, sales, RULES, b"be better", owner)
    done = asyncio.Event()

    async def churn(client: int) -> int:
        count = 0
        while not done.is_set() or not count:
            name = f"other-{client}-{count}"
            await agents.create(ports, owner, NewAgent(name, "Other", "sales" if count else None))
            await agents.patch(ports, owner, name, {"name": "Renamed"})
            stack = await stacks.agent_stack(ports, owner, name)
            await files.put(ports, stack, Path("SOUL.md"), b"mine", owner)
            await agents.delete(ports, owner, name)
            count += 1
        return count

    clients = [asyncio.create_task(churn(client)) for client in range(CHURNING_CLIENTS)]
    untouched = {agent.id for agent in (await overview.list_agents(ports, owner, limit=400)).items}
    for change in (bulk_reviews.accept_for_all, bulk_reviews.roll_back_for_all):
        results = await change(ports, owner, "sales", RULES, digest(b"be better"))
        by_agent = {result.agent: result for result in results}
        assert [by_agent[id].problem for id in untouched if by_agent[id].problem] == []
        assert all(by_agent[id].changed for id in untouched)
    done.set()
    created = await asyncio.gather(*clients)

    assert (len(untouched), min(created) > 0) == (400, True)


async def test_an_edit_of_a_default_is_accepted_for_all_that_inherit_it(anywhere: Ports) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    for slug in ("sales", "care"):
        await templates.create(ports, owner, slug, slug)
    care = await stacks.template_stack(ports, owner, "care")
    await files.put(ports, care, RULES, b"care first", owner)
    heirs = [
        await agents.create(ports, owner, NewAgent(f"heir-{name}", "Heir", template))
        for name, template in enumerate(("sales", None, "sales"))
    ]
    other = await agents.create(ports, owner, NewAgent("other", "Other", "care"))
    defaults = await stacks.defaults_stack(ports, owner)
    await files.put(ports, defaults, RULES, b"be better", owner)

    results = await bulk_reviews.accept_for_all(ports, owner, None, RULES, digest(b"be better"))

    assert [(r.agent, r.changed, r.problem) for r in results] == [
        (agent.id, True, None) for agent in sorted(heirs, key=lambda agent: agent.id)
    ]
    for agent, text in ((heirs[1], b"be better"), (other, b"care first")):
        stack = await stacks.agent_stack(ports, owner, agent.id)
        file = await files.get_file(ports, stack, RULES)
        assert await files.read_content(ports, file) == text
    with pytest.raises(ValidationError):
        await bulk_reviews.accept_for_all(ports, owner, None, Path("SOUL.md"), digest(b""))


async def test_other_agents_changed_between_read_and_commit_make_no_accept_fail(
    anywhere: Ports,
) -> None:
    """Each commit expects what its decision read, and nothing of other agents."""
    ports = anywhere
    _, owner = await create_tenant(ports)
    await templates.create(ports, owner, "sales", "Sales")
    first = await agents.create(ports, owner, NewAgent("first", "First", "sales"))
    await create_copies(ports, owner, first, 9)
    other = await agents.create(ports, owner, NewAgent("other", "Other"))
    sales = await stacks.template_stack(ports, owner, "sales")
    await files.put(ports, sales, RULES, b"be better", owner)
    commits_seen, commit = 0, ports.trees.commit

    async def change_others_and_commit(commits: Any) -> Any:
        nonlocal commits_seen
        if not any(write for commit_ in commits for write in commit_.writes):
            return await commit(commits)
        commits_seen += 1
        ports.trees.commit = commit  # type: ignore[method-assign]
        await agents.create(ports, owner, NewAgent(f"new-{commits_seen}", "New", "sales"))
        await agents.patch(ports, owner, other.id, {"name": f"Renamed {commits_seen}"})
        outcomes = await commit(commits)
        assert all(isinstance(outcome, Applied) for outcome in outcomes)
        return outcomes

    for change in (bulk_reviews.accept_for_all, bulk_reviews.roll_back_for_all):
        ports.trees.commit = change_others_and_commit  # type: ignore[method-assign]
        results = await change(ports, owner, "sales", RULES, digest(b"be better"))
        assert [(result.changed, result.problem) for result in results] == [(True, None)] * 10
    assert commits_seen == 2


async def test_what_was_accepted_together_is_rolled_back_together(anywhere: Ports) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    await templates.create(ports, owner, "sales", "Sales")
    sales = await stacks.template_stack(ports, owner, "sales")
    await files.put(ports, sales, RULES, b"first", owner)
    heirs = {
        slug: await agents.create(ports, owner, NewAgent(slug, slug, "sales"))
        for slug in ("calm", "again", "moved", "override")
    }
    await files.put(ports, sales, RULES, b"second", owner)
    await pin_reviews.accept(ports, owner, "again", RULES, digest(b"second"))
    await files.put(ports, sales, RULES, b"third", owner)
    await bulk_reviews.accept_for_all(ports, owner, "sales", RULES, digest(b"third"))
    late = await agents.create(ports, owner, NewAgent("late", "Late", "sales"))
    await pin_reviews.roll_back(ports, owner, "moved", RULES)
    override = await stacks.agent_stack(ports, owner, "override")
    allowed = files.WriteOptions(accept_template_update=True)
    await files.put(ports, override, RULES, b"mine", owner, allowed)

    results = await bulk_reviews.roll_back_for_all(ports, owner, "sales", RULES, digest(b"third"))

    by_agent = {result.agent: result for result in results}
    assert set(by_agent) == {agent.id for agent in heirs.values()}, "one never accepted"
    assert list(by_agent) == sorted(by_agent)
    for slug in ("moved", "override"):
        problem = by_agent[heirs[slug].id].problem
        assert str(problem) == f"the pin of {slug} has moved since it was accepted for all"
    served = {"calm": b"first", "again": b"second", "moved": b"first", "override": b"mine"}
    for slug, text in {**served, late.id: b"third"}.items():
        file = await files.get_file(ports, await stacks.agent_stack(ports, owner, slug), RULES)
        assert await files.read_content(ports, file) == text, slug
    entries = (await audit.list_audit_entries(ports, owner, limit=2)).items
    assert {entry.subjects[0] for entry in entries} == {
        f"agent/{heirs[slug].id}" for slug in ("calm", "again")
    }
    assert all(entry.reason.startswith("roll GUARDRAILS.md back") for entry in entries)
    repeated = await bulk_reviews.roll_back_for_all(ports, owner, "sales", RULES, digest(b"third"))
    assert not any(result.changed for result in repeated)
    assert sum(result.problem is None for result in repeated) == 2


async def test_a_default_accepted_for_all_is_rolled_back_for_all_that_inherit_it(
    anywhere: Ports,
) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    await templates.create(ports, owner, "care", "Care")
    care = await stacks.template_stack(ports, owner, "care")
    await files.put(ports, care, RULES, b"care first", owner)
    heirs = [await agents.create(ports, owner, NewAgent(f"heir-{n}", "Heir")) for n in range(2)]
    await agents.create(ports, owner, NewAgent("other", "Other", "care"))
    defaults = await stacks.defaults_stack(ports, owner)
    before = await files.read_content(ports, await files.get_file(ports, defaults, RULES))
    for stack in (defaults, care):
        await files.put(ports, stack, RULES, b"be better", owner)
    for template in (None, "care"):
        await bulk_reviews.accept_for_all(ports, owner, template, RULES, digest(b"be better"))

    results = await bulk_reviews.roll_back_for_all(ports, owner, None, RULES, digest(b"be better"))

    assert [(r.agent, r.changed, r.problem) for r in results] == [
        (id, True, None) for id in sorted(agent.id for agent in heirs)
    ]
    for slug, text in (("heir-0", before), ("heir-1", before), ("other", b"be better")):
        file = await files.get_file(ports, await stacks.agent_stack(ports, owner, slug), RULES)
        assert await files.read_content(ports, file) == text
