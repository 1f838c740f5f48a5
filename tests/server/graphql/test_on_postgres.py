"""GraphQL over PostgreSQL: values that it cannot store are refused earlier."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.server.graphql.test_batching import DOCUMENT, REVIEWS
from tests.server.graphql.test_fuzz import STRICT, WORDS
from tests.support.full_app import FullApp, create_rest_app
from tests.support.graphql_client import (
    create_graphql_tenant,
    execute_query,
    query_data,
    sha,
    write,
)
from tests.support.stores import ports_over

from carrel.adapters.postgres import open_store

pytestmark = pytest.mark.anyio
ODD = ("\x00", "a\x00b", "é", "a/b", "a\n", "", "x" * 3000, "marco")


@pytest.fixture
async def server(postgres_url: str) -> AsyncIterator[FullApp]:
    async with open_store(postgres_url) as store:
        ports = ports_over(store)
        yield FullApp(ports, create_rest_app(ports))


async def test_unusual_strings_are_refused_and_never_a_server_error(server: FullApp) -> None:
    owner = await server.owner()
    await create_graphql_tenant(owner)
    for odd in ODD:
        for strict in STRICT:
            variables = {"t": odd, "i": odd, "p": odd, "n": -1}
            answer = await execute_query(owner, WORDS % strict, **variables)
            codes = {error["extensions"]["code"] for error in answer["errors"]}
            assert "INTERNAL_SERVER_ERROR" not in codes, (odd, strict, answer)
        put = """mutation($i: ID!) { putFile(place: {agentId: "marco"}, path: "notes/a.md",
          content: "x", runId: $i) { warnings } }"""
        [error] = (await execute_query(owner, put, i=odd))["errors"]
        assert error["extensions"]["code"] == "NOT_FOUND", (odd, error)
        document = """query($i: ID!, $t: String!) { agent(id: $i) { id } run(id: $i) { id }
          agents(templateId: $i, startsWith: $t) { next } people(after: $t) { next }
          runs(agentId: $i, after: $t) { next } audit(after: $t) { next }
          files(place: {workspaceId: $i}, prefix: $t, after: $t) { next }
          file(place: {agentId: $i}, path: $t) { path } }"""
        answer = await execute_query(owner, document, i=odd, t=odd)
        codes = {error["extensions"]["code"] for error in answer.get("errors", ())}
        assert "INTERNAL_SERVER_ERROR" not in codes, (odd, answer)


async def test_a_page_of_agents_and_a_review_work_on_postgresql(server: FullApp) -> None:
    owner = await server.owner()
    sample = await create_graphql_tenant(owner)
    await write(owner, "/v1/templates/sales/files/GUARDRAILS.md", "be better")
    page = (await query_data(owner, DOCUMENT, n=10))["agents"]
    assert page["items"][0]["updatesAvailable"] == 1
    [reviews] = (await query_data(owner, REVIEWS, n=10))["agents"]["items"]
    assert reviews["pins"][0]["latestVersion"] == 2
    accept = """mutation($s: String!) { acceptTemplateUpdate(agentId: "marco",
      filename: "GUARDRAILS.md", latestSha: $s, idempotencyKey: "k") { id updatesAvailable } }"""
    for _ in range(2):
        done = await query_data(owner, accept, s=sha("be better"))
        assert done["acceptTemplateUpdate"] == {"id": sample.agent, "updatesAvailable": 0}
