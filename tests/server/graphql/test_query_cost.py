"""How much may be asked for, and what is said to those who ask for more or ask badly."""

from __future__ import annotations

import json
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from graphql import GraphQLError, OperationDefinitionNode, get_introspection_query, parse
from hypothesis import given
from hypothesis import strategies as st
from tests.support.full_app import FullApp
from tests.support.graphql_client import (
    GraphqlTenant,
    execute_query,
    query_data,
    query_error_code,
    write,
)

from carrel.actions.accounts.credentials import authenticate
from carrel.server.graphql import GraphqlOperation, execute
from carrel.server.graphql.document_cache import DocumentCache
from carrel.server.graphql.query_cost import LIMITS, CostCalculator, QueryLimits
from carrel.server.graphql.schema import SCHEMA, SCHEMA_TEXT
from carrel.server.http.app import create_app
from carrel.server.http.metrics import Metrics
from carrel.settings import load
from carrel.wiring.server_app import authenticator, endpoints

pytestmark = pytest.mark.anyio


async def limit(who: httpx.AsyncClient, document: str, **variables: Any) -> str:
    """The limit that a document goes beyond."""
    answer = await execute_query(who, document, **variables)
    assert "data" not in answer
    [error] = answer["errors"]
    assert error["extensions"]["code"] == "BAD_USER_INPUT"
    assert error["extensions"]["limit"] in error["message"]
    assert str(error["extensions"]["max"]) in error["message"]
    name: str = error["extensions"]["limit"]
    return name


async def test_depth_is_counted_through_fragments(
    owner: httpx.AsyncClient, desk: GraphqlTenant
) -> None:
    deep = "template { followers(first: 1) { items { %s } } }"
    agent = '{ agent(id: "marco") { %s } }'
    eleven = deep % (deep % (deep % "id"))
    assert await query_data(owner, agent % eleven)
    assert await limit(owner, agent % (deep % eleven)) == "depth"
    spread = 'query { agent(id: "marco") { ...A } }'
    for one, next in (("A", "...B"), ("B", "...C"), ("C", "...D"), ("D", "id")):
        spread += f" fragment {one} on Agent {{ {deep % next} }}"
    assert await limit(owner, spread) == "depth"


async def test_cost_is_counted_through_aliases_variables_and_fragments(
    owner: httpx.AsyncClient, desk: GraphqlTenant
) -> None:
    def aliased(count: int) -> str:
        pages = " ".join(f"a{n}: agents(first: 500) {{ next }}" for n in range(count))
        return f"{{ {pages} }}"

    assert await query_data(owner, aliased(19))
    assert await limit(owner, aliased(20)) == "cost"
    document = """query($n: Int!) { agents(first: 100) { items { files(first: $n) { next } } } }"""
    assert await query_data(owner, document, n=50)
    assert await limit(owner, document, n=120) == "cost"
    unsaid = "query($n: Int! = 120) { agents(first: 100) { items { files(first: $n) { next } } } }"
    assert await limit(owner, unsaid) == "cost"
    bomb = "{ ...F0 } " + " ".join(
        f"fragment F{n} on Query {{ ...F{n + 1} b{n}: me {{ name }} ...F{n + 1} }}"
        for n in range(40)
    )
    bomb += " fragment F40 on Query { me { name } }"
    assert await limit(owner, bomb) == "cost"


@pytest.mark.parametrize("first", [501, 0, -1, 2**31 - 1])
async def test_a_page_has_its_limits(
    owner: httpx.AsyncClient, desk: GraphqlTenant, first: int
) -> None:
    assert await limit(owner, f"{{ agents(first: {first}) {{ next }} }}") == "first"
    document = "query($n: Int!) { agents(first: $n) { next } }"
    assert await limit(owner, document, n=first) == "first"


async def test_a_text_has_its_limits(owner: httpx.AsyncClient, desk: GraphqlTenant) -> None:
    assert await limit(owner, "{ me { name } } #" + "x" * LIMITS.characters) == "document"
    assert await limit(owner, "{ me { name } } #" + "é" * (LIMITS.characters // 2)) == "document"
    assert await limit(owner, "{ %s }" % ("a " * LIMITS.tokens)) == "tokens"
    assert await limit(owner, "{ me { name } }" + "\n#" * LIMITS.tokens * 2) == "tokens"
    for opened in ("{a", "[", '{a(b:{c:"', "{...on Query"):
        code = await query_error_code(owner, opened * 1200)
        assert code == "BAD_USER_INPUT"


async def test_a_chain_of_fragments_is_no_way_around(owner: httpx.AsyncClient) -> None:
    def chain(length: int) -> str:
        some = " ".join(f"fragment F{n} on Query {{ ...F{n + 1} }}" for n in range(length))
        return f"{{ ...F0 }} {some} fragment F{length} on Query {{ me {{ name }} }}"

    assert await query_data(owner, chain(20))
    assert await limit(owner, chain(100)) == "depth"
    assert await query_error_code(owner, chain(600)) == "BAD_USER_INPUT"


async def test_the_schema_may_be_asked_about(owner: httpx.AsyncClient) -> None:
    answer = await query_data(owner, get_introspection_query(input_value_deprecation=True))
    assert answer["__schema"]["queryType"] == {"name": "Query", "kind": "OBJECT"}
    many = " ".join(f"a{n}: __schema {{ types {{ fields {{ name }} }} }}" for n in range(200))
    assert await limit(owner, f"{{ {many} }}") == "cost"
    typed = "{ __typename me { __typename name } }"
    assert (await query_data(owner, typed))["me"]["__typename"] == "Me"


async def test_the_text_of_the_schema_is_for_those_who_have_a_credential(
    here: FullApp, owner: httpx.AsyncClient
) -> None:
    answer = await owner.get("/graphql/schema")
    assert (answer.status_code, answer.text) == (200, SCHEMA_TEXT)
    known = {"If-None-Match": answer.headers["etag"]}
    assert (await owner.get("/graphql/schema", headers=known)).status_code == 304
    assert (await here.as_(None).get("/graphql/schema")).status_code == 401


BODIES = [
    *(b"", b"{", b"null", b"1", b'"{ me { name } }"', b"\xff", b"[" * 5000),
    json.dumps([{"query": "{ me { name } }"}]).encode(),
    *(b"{}", b'{"query": null}', b'{"query": 1}', b'{"query": "{me{name}}", "variables": []}'),
    b'{"query": "{me{name}}", "variables": 1}',
    b'{"query": "{me{name}}", "operationName": 1}',
    b'{"query": "{me{name}}", "more": 1}',
    b'{"query": "\\ud800"}',
]


@pytest.mark.parametrize("body", BODIES)
async def test_a_body_that_does_not_fit_is_a_bad_request(
    here: FullApp, owner: httpx.AsyncClient, body: bytes
) -> None:
    answer = await owner.post("/graphql", content=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    stranger = await here.as_(None).post("/graphql", content=body)
    assert (stranger.status_code, stranger.json()["error"]) == (401, "unauthenticated")


@pytest.mark.parametrize(
    "body",
    [
        {"query": ""},
        {"query": "{"},
        {"query": "{ nothing }"},
        {"query": "fragment F on Query { me { name } }"},
        {"query": "query A { me { name } } query B { me { name } }"},
        {"query": "query A { me { name } }", "operationName": "B"},
        {"query": "{ me { name } }", "operationName": ""},
        {"query": "{ ...F } fragment F on Query { ...F }"},
        {"query": "subscription { me { name } }"},
        {"query": "type A { b: Int }"},
        {"query": "query($a: Int!) { agents(first: $a) { next } }"},
        {"query": "query($a: Int!) { agents(first: $a) { next } }", "variables": {"a": "1"}},
        {"query": "query($a: Int!) { agents(first: $a) { next } }", "variables": {"a": 2**31}},
        {"query": "{ agents(first: %s) { next } }" % ("9" * 5000)},
        {"query": "{ me @defer { name } }"},
    ],
)
async def test_a_document_that_cannot_be_executed_is_told_so(
    owner: httpx.AsyncClient, body: dict[str, Any]
) -> None:
    answer = await owner.post("/graphql", json=body)
    assert answer.status_code == 200
    found = answer.json()
    assert set(found) == {"errors"}
    assert {error["extensions"]["code"] for error in found["errors"]} == {"BAD_USER_INPUT"}


async def test_one_of_several_operations_is_chosen_by_name(owner: httpx.AsyncClient) -> None:
    body: dict[str, Any] = {
        "query": "query A { me { kind } } query B { me { role } }",
        "operationName": "B",
        "extensions": {},
        "variables": None,
    }
    assert (await owner.post("/graphql", json=body)).json() == {"data": {"me": {"role": "owner"}}}


async def test_who_has_no_good_credential_is_told_nothing_else(here: FullApp) -> None:
    for token in (None, "nobody's"):
        answer = await here.as_(token).post("/graphql", json={"query": "{"})
        assert (answer.status_code, answer.json()["error"]) == (401, "unauthenticated")


async def test_documents_are_read_once_and_forgotten_in_time() -> None:
    documents = DocumentCache(SCHEMA, QueryLimits(), max_characters=100)
    first = await documents.get_or_parse("{ me { name } }")
    assert (await documents.get_or_parse("{ me { name } }")) is first
    wrong = await documents.get_or_parse("{ nothing }")
    assert wrong.errors and (await documents.get_or_parse("{ nothing }")) is wrong
    for number in range(10):
        await documents.get_or_parse(f"{{ a{number}: me {{ name }} }}")
    assert (await documents.get_or_parse("{ me { name } }")) is not first


def weighed(text: str, most: int) -> None:
    [operation] = parse(text).definitions
    assert isinstance(operation, OperationDefinitionNode)
    CostCalculator(SCHEMA, {}, {}, QueryLimits(cost=most)).check(operation)


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("{ me { name __typename } }", 3),
        ("{ agents { next } }", 101),
        ("{ agents { items { id } } }", 201),
        ('{ agentPinStatus(agentId: "a") { path version } }', 21),
        ('{ agent(id: "a") { files { next } } }', 102),
        ("{ __schema { types { name } } }", 60),
        ("mutation { deleteAgent(id: 1) }", 50),
        ('mutation { updateAgent(id: "a", input: {}) { id } }', 51),
        ('{ file(place: {defaults: true}, path: "a") { path diff explain { why } } }', 113),
        ("{ ... on Query { me { name } } ... { me { name } } }", 4),
    ],
)
def test_a_document_costs_what_its_fields_do(text: str, cost: int) -> None:
    weighed(text, cost)
    with pytest.raises(GraphQLError, match=f"requested {cost}$"):
        weighed(text, cost - 1)


@given(st.integers(1, 500), st.integers(1, 500))
def test_a_list_in_a_list_costs_the_product(outer: int, inner: int) -> None:
    text = f"{{ agents(first: {outer}) {{ items {{ files(first: {inner}) {{ next }} }} }} }}"
    cost = 1 + outer * (1 + 1 + inner)
    weighed(text, cost)
    with pytest.raises(GraphQLError, match=f"requested {cost}$"):
        weighed(text, cost - 1)


async def test_an_answer_carries_so_much_and_says_what_it_left_out(
    here: FullApp, owner: httpx.AsyncClient, desk: GraphqlTenant
) -> None:
    limits = QueryLimits(bytes=1000)
    actor = await authenticate(here.ports, owner.headers["Authorization"].partition(" ")[2])
    for name in ("notes/a.md", "notes/b.md", "notes/c.md"):
        await write(owner, f"/v1/agents/marco/files/{name}", "x" * 400)
    document = '{ files(place: {agentId: "marco"}, prefix: "notes/") { items { path content } } }'
    asked = GraphqlOperation(document, {})
    answer = await execute(here.ports, actor, asked, str, DocumentCache(SCHEMA, limits))
    items = answer["data"]["files"]["items"]
    assert [len(one["content"] or "") for one in items] == [400, 400, 0]
    [error] = answer["errors"]
    assert "notes/c.md" in error["message"]
    assert error["extensions"]["details"] == {"limit": "bytes", "max": 1000}


async def test_an_operator_chooses_depth_and_cost(here: FullApp, owner: httpx.AsyncClient) -> None:
    settings = load({"graphql_depth": 2, "graphql_cost": 5}, environ={}, file=File("no such file"))
    known = authenticator(here.ports, settings)
    app = create_app(here.ports, endpoints(settings), known, metrics=Metrics())
    who = FullApp(here.ports, app).as_(owner.headers["Authorization"].partition(" ")[2])
    assert await query_data(who, "{ me { name kind role } }")
    assert await limit(who, "{ me { name kind role permissions tenantId } }") == "cost"
    assert await limit(who, "{ me { person { name } } }") == "depth"
