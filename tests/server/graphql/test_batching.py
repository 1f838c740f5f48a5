"""A page of 100 agents needs no more statements than a page of 10."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from tests.server.graphql.test_overview import ROWS
from tests.server.statement_log import StatementLog
from tests.support.full_app import FullApp, create_rest_app
from tests.support.graphql_client import GraphqlTenant, create_graphql_tenant, query_data, write
from tests.support.services.files import fresh
from tests.support.stores import ports_over

from carrel.actions.accounts.credentials import authenticate
from carrel.actions.agents import agents, overview
from carrel.actions.files import files
from carrel.actions.overlay import pin_reviews, stacks
from carrel.adapters.sqlite import open_store
from carrel.core.access import Actor
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path, Scope

pytestmark = pytest.mark.anyio

DOCUMENT = """query($n: Int!) { agents(first: $n) { next items {
  id name slug template { slug followerCount } humanPair { name } owner { name }
  updatesAvailable pins { path updateAvailable pinnedContent latestContent }
  files(first: 4) { items { path class content renderedSha256 } } } } }"""
TEMPLATES = """query($n: Int!) { templates(first: $n) { items { slug followerCount
  pins { path latestContent } files(first: 4) { items { path content } } } } }"""
REVIEWS = """query($n: Int!) { agents(first: $n) { items { id pins { path pinnedTokens latestTokens
  latestVersion latestAuthor latestReason latestAt latestSource } } } }"""
MAX_STATEMENTS = 30


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> StatementLog:
    return StatementLog(monkeypatch)


@pytest.fixture
async def server(tmp_path: File, statements: StatementLog) -> AsyncIterator[FullApp]:
    async with open_store(fresh(tmp_path / "carrel.db")) as store:
        ports = ports_over(store)
        yield FullApp(ports, create_rest_app(ports))


async def actor_of(server: FullApp, owner: httpx.AsyncClient) -> Actor:
    return await authenticate(server.ports, owner.headers["Authorization"].partition(" ")[2])


async def create_agents(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant, many: int
) -> None:
    """Create this many agents with their own files and a paired human."""
    actor = await actor_of(server, owner)
    for number in range(many):
        new = agents.NewAgent(f"bot-{number}", f"Bot {number}", "sales", human=sample.person)
        created = await agents.create(server.ports, actor, new)
        stack = await stacks.agent_stack(server.ports, actor, created.id)
        note = f"the note of {number}".encode()
        await files.put(server.ports, stack, Path("notes/a.md"), note, actor)
    await write(owner, "/v1/templates/sales/files/GUARDRAILS.md", "be better")


async def test_agents_with_pins_humans_templates_and_files_take_a_bounded_number_of_statements(
    server: FullApp, owner: httpx.AsyncClient, statements: StatementLog
) -> None:
    sample = await create_graphql_tenant(owner)
    await write(owner, "/v1/defaults/files/USER.md", "for {{HUMAN_NAME}}")
    await create_agents(server, owner, sample, 99)
    counts = {}
    for many in (10, 100):
        await owner.patch("/v1/agents/marco", json={"name": f"Marco {many}"})
        del statements[:]
        page = (await query_data(owner, DOCUMENT.replace("first: 4", "first: 3"), n=many))["agents"]
        counts[many] = len(statements)
        assert len(page["items"]) == many
        last = page["items"][-1]
        assert last["humanPair"] == {"name": "Bob"}
        assert (last["template"]["followerCount"], last["updatesAvailable"]) == (100, 1)
        rules = last["pins"][0]
        assert (rules["pinnedContent"], rules["latestContent"]) == ("be good", "be better")
        assert len(last["files"]["items"]) == 3
    assert counts[100] <= counts[10] <= MAX_STATEMENTS, counts


async def test_review_details_take_a_bounded_number_of_statements(
    server: FullApp, owner: httpx.AsyncClient, statements: StatementLog
) -> None:
    sample = await create_graphql_tenant(owner)
    await create_agents(server, owner, sample, 99)
    counts = {}
    for many in (10, 100):
        await owner.patch("/v1/agents/marco", json={"name": f"Marco {many}"})
        del statements[:]
        page = (await query_data(owner, REVIEWS, n=many))["agents"]["items"]
        counts[many] = len(statements)
        rules = page[-1]["pins"][0]
        assert (rules["latestVersion"], rules["latestSource"]) == (2, "template")
        assert rules["latestAuthor"] and rules["pinnedTokens"]
    assert counts[100] <= counts[10] <= MAX_STATEMENTS, counts


async def test_overrides_and_last_runs_take_a_bounded_number_of_statements(
    server: FullApp, owner: httpx.AsyncClient, statements: StatementLog
) -> None:
    sample = await create_graphql_tenant(owner)
    await create_agents(server, owner, sample, 99)
    for number in range(0, 99, 9):
        await owner.post("/v1/runs", json={"agentId": f"bot-{number}"})
    counts = {}
    for many in (10, 100):
        await owner.patch("/v1/agents/marco", json={"name": f"Marco {many}"})
        del statements[:]
        page = (await query_data(owner, ROWS, n=many))["agents"]["items"]
        counts[many] = len(statements)
        assert any(row["lastRun"] for row in page)
        assert {row["overrideCount"] for row in page} == {0}
    assert counts[100] <= counts[10] <= MAX_STATEMENTS, counts


async def test_templates_with_pins_and_files_take_a_bounded_number_of_statements(
    server: FullApp, owner: httpx.AsyncClient, statements: StatementLog
) -> None:
    await create_graphql_tenant(owner)
    for number in range(29):
        await owner.post("/v1/templates", json={"slug": f"t{number}", "name": "T"})
        await write(owner, f"/v1/templates/t{number}/files/GUARDRAILS.md", f"be {number}")
    counts = {}
    for many in (3, 30):
        await owner.patch("/v1/agents/marco", json={"name": f"Marco {many}"})
        del statements[:]
        page = (await query_data(owner, TEMPLATES, n=many))["templates"]
        counts[many] = len(statements)
        assert len(page["items"]) == many
    assert counts[30] <= counts[3] <= MAX_STATEMENTS, counts


async def test_batch_loads_equal_single_loads(server: FullApp, owner: httpx.AsyncClient) -> None:
    sample = await create_graphql_tenant(owner)
    await create_agents(server, owner, sample, 5)
    ports, actor = server.ports, await actor_of(server, owner)
    listed = (await overview.list_agents(ports, actor, limit=100)).items
    several = [await stacks.agent_stack(ports, actor, record.id) for record in listed]
    gone = Scope(actor.tenant, several[0][0].kind, "agt_gone")
    *workspaces, nothing = await overview.load_workspaces(ports, [*several, (gone,)])
    assert nothing is None
    for stack, workspace in zip(several, workspaces, strict=True):
        assert workspace == await files.list_files(ports, stack)
    standings = await pin_reviews.load_pin_statuses(ports, actor, listed)
    for record, standing in zip(listed, standings, strict=True):
        statuses = await pin_reviews.load_reviews(ports, actor, record.id)
        assert [status.pin for status in statuses] == list(standing)
    bound = Actor(actor.tenant, "key", agent=listed[0].id)
    assert len(await pin_reviews.load_pin_statuses(ports, bound, listed[:1])) == 1
    with pytest.raises(NotFound):
        await pin_reviews.load_pin_statuses(ports, bound, listed[:2])
