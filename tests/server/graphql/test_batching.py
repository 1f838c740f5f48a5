"""A page of a hundred agents asks the database as often as one of ten."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from tests.server.graphql.test_overview import ROWS
from tests.support.full_app import FullApp, create_rest_app
from tests.support.graphql_client import GraphqlTenant, create_graphql_tenant, query_data, write
from tests.support.services.files import fresh
from tests.support.stores import ports_over

from carrel.actions.accounts.credentials import authenticate
from carrel.actions.agents import agents, overview
from carrel.actions.files import files
from carrel.actions.overlay import pins, stacks
from carrel.adapters.sqlite import database, open_store, reader
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
MOST = 30


class Counted(list[str]):
    """Every statement that readers ask, on whichever connection."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counted:
    statements, connect = Counted(), database.connect

    def traced(file: File) -> sqlite3.Connection:
        db = connect(file)
        db.set_trace_callback(statements.append)
        return db

    monkeypatch.setattr(reader, "connect", traced)
    return statements


@pytest.fixture
async def here(tmp_path: File, asked: Counted) -> AsyncIterator[FullApp]:
    async with open_store(fresh(tmp_path / "carrel.db")) as store:
        ports = ports_over(store)
        yield FullApp(ports, create_rest_app(ports))


async def actor_of(here: FullApp, owner: httpx.AsyncClient) -> Actor:
    return await authenticate(here.ports, owner.headers["Authorization"].partition(" ")[2])


async def crowd(here: FullApp, owner: httpx.AsyncClient, desk: GraphqlTenant, many: int) -> None:
    """As many agents, each with files of its own and a human."""
    actor = await actor_of(here, owner)
    for number in range(many):
        new = agents.NewAgent(f"bot-{number}", f"Bot {number}", "sales", human=desk.person)
        made = await agents.create(here.ports, actor, new)
        stack = await stacks.agent_stack(here.ports, actor, made.id)
        note = f"the note of {number}".encode()
        await files.put(here.ports, stack, Path("notes/a.md"), note, actor)
    await write(owner, "/v1/templates/sales/files/GUARDRAILS.md", "be better")


async def test_agents_with_pins_humans_templates_and_files_take_a_bounded_number_of_statements(
    here: FullApp, owner: httpx.AsyncClient, asked: Counted
) -> None:
    desk = await create_graphql_tenant(owner)
    await write(owner, "/v1/defaults/files/USER.md", "for {{HUMAN_NAME}}")
    await crowd(here, owner, desk, 99)
    counts = {}
    for many in (10, 100):
        await owner.patch("/v1/agents/marco", json={"name": f"Marco {many}"})
        del asked[:]
        page = (await query_data(owner, DOCUMENT.replace("first: 4", "first: 3"), n=many))["agents"]
        counts[many] = len(asked)
        assert len(page["items"]) == many
        last = page["items"][-1]
        assert last["humanPair"] == {"name": "Bob"}
        assert (last["template"]["followerCount"], last["updatesAvailable"]) == (100, 1)
        rules = last["pins"][0]
        assert (rules["pinnedContent"], rules["latestContent"]) == ("be good", "be better")
        assert len(last["files"]["items"]) == 3
    assert counts[100] <= counts[10] <= MOST, counts


async def test_who_wrote_what_waits_for_a_review_and_how_long_it_is_do_too(
    here: FullApp, owner: httpx.AsyncClient, asked: Counted
) -> None:
    desk = await create_graphql_tenant(owner)
    await crowd(here, owner, desk, 99)
    counts = {}
    for many in (10, 100):
        await owner.patch("/v1/agents/marco", json={"name": f"Marco {many}"})
        del asked[:]
        page = (await query_data(owner, REVIEWS, n=many))["agents"]["items"]
        counts[many] = len(asked)
        rules = page[-1]["pins"][0]
        assert (rules["latestVersion"], rules["latestSource"]) == (2, "template")
        assert rules["latestAuthor"] and rules["pinnedTokens"]
    assert counts[100] <= counts[10] <= MOST, counts


async def test_overrides_and_last_runs_do_too(
    here: FullApp, owner: httpx.AsyncClient, asked: Counted
) -> None:
    desk = await create_graphql_tenant(owner)
    await crowd(here, owner, desk, 99)
    for number in range(0, 99, 9):
        await owner.post("/v1/runs", json={"agentId": f"bot-{number}"})
    counts = {}
    for many in (10, 100):
        await owner.patch("/v1/agents/marco", json={"name": f"Marco {many}"})
        del asked[:]
        page = (await query_data(owner, ROWS, n=many))["agents"]["items"]
        counts[many] = len(asked)
        assert any(row["lastRun"] for row in page)
        assert {row["overrideCount"] for row in page} == {0}
    assert counts[100] <= counts[10] <= MOST, counts


async def test_templates_with_followers_pins_and_files_do_too(
    here: FullApp, owner: httpx.AsyncClient, asked: Counted
) -> None:
    await create_graphql_tenant(owner)
    for number in range(29):
        await owner.post("/v1/templates", json={"slug": f"t{number}", "name": "T"})
        await write(owner, f"/v1/templates/t{number}/files/GUARDRAILS.md", f"be {number}")
    counts = {}
    for many in (3, 30):
        await owner.patch("/v1/agents/marco", json={"name": f"Marco {many}"})
        del asked[:]
        page = (await query_data(owner, TEMPLATES, n=many))["templates"]
        counts[many] = len(asked)
        assert len(page["items"]) == many
    assert counts[30] <= counts[3] <= MOST, counts


async def test_many_at_once_are_as_each_by_itself(here: FullApp, owner: httpx.AsyncClient) -> None:
    desk = await create_graphql_tenant(owner)
    await crowd(here, owner, desk, 5)
    ports, actor = here.ports, await actor_of(here, owner)
    found = (await overview.list_agents(ports, actor, limit=100)).items
    several = [await stacks.agent_stack(ports, actor, one.id) for one in found]
    gone = Scope(actor.tenant, several[0][0].kind, "agt_gone")
    *shown, nothing = await overview.load_workspaces(ports, [*several, (gone,)])
    assert nothing is None
    for stack, workspace in zip(several, shown, strict=True):
        assert workspace == await files.list_files(ports, stack)
    standings = await pins.load_pin_statuses(ports, actor, found)
    for one, standing in zip(found, standings, strict=True):
        statuses = await pins.load_reviews(ports, actor, one.id)
        assert [status.pin for status in statuses] == list(standing)
    bound = Actor(actor.tenant, "key", agent=found[0].id)
    assert len(await pins.load_pin_statuses(ports, bound, found[:1])) == 1
    with pytest.raises(NotFound):
        await pins.load_pin_statuses(ports, bound, found[:2])
