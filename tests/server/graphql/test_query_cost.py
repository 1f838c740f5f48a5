"""Limits of GraphQL documents, and refusals of bad requests."""

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


async def exceeded_limit(client: httpx.AsyncClient, document: str, **variables: Any) -> str:
    """The name of the limit that a document exceeds."""
    answer = await execute_query(client, document, **variables)
    assert "data" not in answer
    [error] = answer["errors"]
    assert error["extensions"]["code"] == "BAD_USER_INPUT"
    assert error["extensions"]["limit"] in error["message"]
    assert str(error["extensions"]["max"]) in error["message"]
    name: str = error["extensions"]["limit"]
    return name


async def test_depth_is_counted_through_fragments(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    deep = "template { followers(first: 1) { items { %s } } }"
    agent = '{ agent(id: "marco") { %s } }'
    eleven = deep % (deep % (deep % "id"))
    assert await query_data(owner, agent % eleven)
    assert await exceeded_limit(owner, agent % (deep % eleven)) == "depth"
    spread = 'query { agent(id: "marco") { ...A } }'
    for name, content in (("A", "...B"), ("B", "...C"), ("C", "...D"), ("D", "id")):
        spread += f" fragment {name} on Agent {{ {deep % content} }}"
    assert await exceeded_limit(owner, spread) == "depth"


async def test_cost_is_counted_through_aliases_variables_and_fragments(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    def aliased(count: int) -> str:
        pages = " ".join(f"a{n}: agents(first: 500) {{ next }}" for n in range(count))
        return f"{{ {pages} }}"

    assert await query_data(owner, aliased(19))
    assert await exceeded_limit(owner, aliased(20)) == "cost"
    document = """query($n: Int!) { agents(first: 100) { items { files(first: $n) { next } } } }"""
    assert await query_data(owner, document, n=50)
    assert await exceeded_limit(owner, document, n=120) == "cost"
    defaulted = (
        "query($n: Int! = 120) { agents(first: 100) { items { files(first: $n) { next } } } }"
    )
    assert await exceeded_limit(owner, defaulted) == "cost"
    bomb = "{ ...F0 } " + " ".join(
        f"fragment F{n} on Query {{ ...F{n + 1} b{n}: me {{ name }} ...F{n + 1} }}"
        for n in range(40)
    )
    bomb += " fragment F40 on Query { me { name } }"
    assert await exceeded_limit(owner, bomb) == "cost"


@pytest.mark.parametrize("first", [501, 0, -1, 2**31 - 1])
async def test_a_page_size_out_of_range_is_refused(
    owner: httpx.AsyncClient, sample: GraphqlTenant, first: int
) -> None:
    assert await exceeded_limit(owner, f"{{ agents(first: {first}) {{ next }} }}") == "first"
    document = "query($n: Int!) { agents(first: $n) { next } }"
    assert await exceeded_limit(owner, document, n=first) == "first"


async def test_a_document_that_is_too_long_is_refused(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    assert await exceeded_limit(owner, "{ me { name } } #" + "x" * LIMITS.characters) == "document"
    assert (
        await exceeded_limit(owner, "{ me { name } } #" + "é" * (LIMITS.characters // 2))
        == "document"
    )
    assert await exceeded_limit(owner, "{ %s }" % ("a " * LIMITS.tokens)) == "tokens"
    assert await exceeded_limit(owner, "{ me { name } }" + "\n#" * LIMITS.tokens * 2) == "tokens"
    for opened in ("{a", "[", '{a(b:{c:"', "{...on Query"):
        code = await query_error_code(owner, opened * 1200)
        assert code == "BAD_USER_INPUT"


async def test_a_chain_of_fragments_counts_towards_the_depth(owner: httpx.AsyncClient) -> None:
    def chain(length: int) -> str:
        fragments = " ".join(f"fragment F{n} on Query {{ ...F{n + 1} }}" for n in range(length))
        return f"{{ ...F0 }} {fragments} fragment F{length} on Query {{ me {{ name }} }}"

    assert await query_data(owner, chain(20))
    assert await exceeded_limit(owner, chain(100)) == "depth"
    assert await query_error_code(owner, chain(600)) == "BAD_USER_INPUT"


async def test_introspection_is_allowed_within_the_cost_limit(owner: httpx.AsyncClient) -> None:
    answer = await query_data(owner, get_introspection_query(input_value_deprecation=True))
    assert answer["__schema"]["queryType"] == {"name": "Query", "kind": "OBJECT"}
    many = " ".join(f"a{n}: __schema {{ types {{ fields {{ name }} }} }}" for n in range(200))
    assert await exceeded_limit(owner, f"{{ {many} }}") == "cost"
    typed = "{ __typename me { __typename name } }"
    assert (await query_data(owner, typed))["me"]["__typename"] == "Me"


async def test_the_schema_text_needs_a_credential(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    answer = await owner.get("/graphql/schema")
    assert (answer.status_code, answer.text) == (200, SCHEMA_TEXT)
    cached = {"If-None-Match": answer.headers["etag"]}
    assert (await owner.get("/graphql/schema", headers=cached)).status_code == 304
    assert (await server.as_(None).get("/graphql/schema")).status_code == 401


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
async def test_an_invalid_body_is_400(
    server: FullApp, owner: httpx.AsyncClient, body: bytes
) -> None:
    answer = await owner.post("/graphql", content=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
    unauthenticated = await server.as_(None).post("/graphql", content=body)
    assert (unauthenticated.status_code, unauthenticated.json()["error"]) == (
        401,
        "unauthenticated",
    )


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
async def test_a_document_that_cannot_be_executed_is_bad_user_input(
    owner: httpx.AsyncClient, body: dict[str, Any]
) -> None:
    answer = await owner.post("/graphql", json=body)
    assert answer.status_code == 200
    result = answer.json()
    assert set(result) == {"errors"}
    assert {error["extensions"]["code"] for error in result["errors"]} == {"BAD_USER_INPUT"}


async def test_one_of_several_operations_is_selected_by_name(owner: httpx.AsyncClient) -> None:
    body: dict[str, Any] = {
        "query": "query A { me { kind } } query B { me { role } }",
        "operationName": "B",
        "extensions": {},
        "variables": None,
    }
    assert (await owner.post("/graphql", json=body)).json() == {"data": {"me": {"role": "owner"}}}


async def test_an_invalid_credential_is_401(server: FullApp) -> None:
    for token in (None, "unknown"):
        answer = await server.as_(token).post("/graphql", json={"query": "{"})
        assert (answer.status_code, answer.json()["error"]) == (401, "unauthenticated")


async def test_documents_are_parsed_once_and_evicted() -> None:
    documents = DocumentCache(SCHEMA, QueryLimits(), max_characters=100)
    first = await documents.get_or_parse("{ me { name } }")
    assert (await documents.get_or_parse("{ me { name } }")) is first
    wrong = await documents.get_or_parse("{ nothing }")
    assert wrong.errors and (await documents.get_or_parse("{ nothing }")) is wrong
    for number in range(10):
        await documents.get_or_parse(f"{{ a{number}: me {{ name }} }}")
    assert (await documents.get_or_parse("{ me { name } }")) is not first


def check_cost(text: str, max_cost: int) -> None:
    [operation] = parse(text).definitions
    assert isinstance(operation, OperationDefinitionNode)
    CostCalculator(SCHEMA, {}, {}, QueryLimits(cost=max_cost)).check(operation)


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
def test_a_documents_cost_is_the_sum_of_its_fields(text: str, cost: int) -> None:
    check_cost(text, cost)
    with pytest.raises(GraphQLError, match=f"requested {cost}$"):
        check_cost(text, cost - 1)


@given(st.integers(1, 500), st.integers(1, 500))
def test_nested_lists_multiply_their_cost(outer: int, inner: int) -> None:
    text = f"{{ agents(first: {outer}) {{ items {{ files(first: {inner}) {{ next }} }} }} }}"
    cost = 1 + outer * (1 + 1 + inner)
    check_cost(text, cost)
    with pytest.raises(GraphQLError, match=f"requested {cost}$"):
        check_cost(text, cost - 1)


async def test_a_response_is_limited_in_bytes_and_names_omitted_files(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    limits = QueryLimits(bytes=1000)
    actor = await authenticate(server.ports, owner.headers["Authorization"].partition(" ")[2])
    for name in ("notes/a.md", "notes/b.md", "notes/c.md"):
        await write(owner, f"/v1/agents/marco/files/{name}", "x" * 400)
    document = '{ files(place: {agentId: "marco"}, prefix: "notes/") { items { path content } } }'
    operation = GraphqlOperation(document, {})
    answer = await execute(server.ports, actor, operation, str, DocumentCache(SCHEMA, limits))
    items = answer["data"]["files"]["items"]
    assert [len(item["content"] or "") for item in items] == [400, 400, 0]
    [error] = answer["errors"]
    assert "notes/c.md" in error["message"]
    assert error["extensions"]["details"] == {"limit": "bytes", "max": 1000}


async def test_depth_and_cost_are_configurable(server: FullApp, owner: httpx.AsyncClient) -> None:
    settings = load({"graphql_depth": 2, "graphql_cost": 5}, environ={}, file=File("no such file"))
    authenticate = authenticator(server.ports, settings)
    app = create_app(server.ports, endpoints(settings), authenticate, metrics=Metrics())
    client = FullApp(server.ports, app).as_(owner.headers["Authorization"].partition(" ")[2])
    assert await query_data(client, "{ me { name kind role } }")
    assert await exceeded_limit(client, "{ me { name kind role permissions tenantId } }") == "cost"
    assert await exceeded_limit(client, "{ me { person { name } } }") == "depth"
