"""Any request gets a JSON response and never a server error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis_graphql import from_schema, nodes
from tests.support.full_app import open_full_app
from tests.support.graphql_client import create_graphql_tenant

from carrel.server.graphql.schema import SCHEMA

FUZZ = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
SCALARS = {
    "DateTime": st.just(nodes.String("2026-01-01T00:00:00.000Z")),
    "Whole": st.integers().map(nodes.Int),
    "JSON": st.one_of(st.integers().map(nodes.Int), st.text().map(nodes.String)),
}
BROKEN = {"INTERNAL_SERVER_ERROR"}

GOOD = (
    "query A($n: Int! = 3, $p: Place!) { agents(first: $n) { items { id ...F } } files(place: $p)"
    " { items { path content(raw: true) } } } fragment F on Agent { pins { path pinnedContent } }",
    'mutation { putFile(place: {agentId: "marco"}, path: "notes/a.md", content: """x""") '
    "{ file { etag } } }",
    '{ agent(id: "marco") { template { followers(first: 2) { items { slug } } } } }',
)
PIECES = (
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "...",
    "@",
    "$",
    '"',
    '"""',
    "#",
    "\\",
    "first: ",
    "-",
    "on ",
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


class Server:
    """A server and an owner on their own event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, owner: httpx.AsyncClient) -> None:
        self._loop, self._owner = loop, owner

    def _run(self, work: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
        return self._loop.run_until_complete(work)

    def post(self, body: Any) -> dict[str, Any]:
        """Post a body and check what holds for every response."""
        content = json.dumps(body).encode("utf-8", "surrogatepass")
        answer = self._run(self._owner.post("/graphql", content=content))
        assert answer.status_code in {200, 400}, answer.text
        result: dict[str, Any] = answer.json()
        codes = {error["extensions"]["code"] for error in result.get("errors", ())}
        assert not codes & BROKEN, result
        return result


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory: File = tmp_path_factory.mktemp("fuzz")
    loop = asyncio.new_event_loop()
    opening = open_full_app(directory)
    opened = loop.run_until_complete(opening.__aenter__())
    owner = loop.run_until_complete(opened.owner())
    loop.run_until_complete(create_graphql_tenant(owner))
    yield Server(loop, owner)
    loop.run_until_complete(opening.__aexit__(None, None, None))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


@FUZZ
@given(text=st.text(), name=st.none() | st.text(max_size=5), variables=VALUES)
def test_any_text_is_answered(server: Server, text: str, name: str | None, variables: Any) -> None:
    server.post({"query": text, "operationName": name, "variables": variables})


@settings(FUZZ, max_examples=30)
@given(document=from_schema(SCHEMA, custom_scalars=SCALARS))
def test_any_document_of_the_schema_is_answered(server: Server, document: str) -> None:
    server.post({"query": document})


@FUZZ
@given(choices=st.data())
def test_a_mutated_document_is_answered(server: Server, choices: st.DataObject) -> None:
    text = choices.draw(st.sampled_from(GOOD))
    for _ in range(choices.draw(st.integers(1, 4))):
        start = choices.draw(st.integers(0, len(text)))
        end = min(len(text), start + choices.draw(st.integers(0, 6)))
        piece = choices.draw(st.sampled_from(PIECES) | st.text(max_size=3))
        text = text[:start] + piece + text[end:]
    server.post({"query": text, "variables": {"p": {"agentId": "marco"}}})


@FUZZ
@given(variables=st.fixed_dictionaries({"n": VALUES, "p": VALUES}))
def test_variables_of_every_type_are_answered(server: Server, variables: dict[str, Any]) -> None:
    server.post({"query": GOOD[0], "variables": variables})


@FUZZ
@given(
    depth=st.integers(1, 4000),
    opened=st.sampled_from(["{a", "{me", "[", "(a:[", "{agent(id:", "...on Query{", '{a(b:"']),
)
def test_deep_nesting_is_answered(server: Server, depth: int, opened: str) -> None:
    server.post({"query": (opened * depth)[:70_000]})


@settings(FUZZ, max_examples=12)
@given(
    count=st.integers(1, 900),
    field=st.sampled_from(["me{name}", "agents{next}", "__typename", "policy{redaction}"]),
    same=st.booleans(),
)
def test_many_aliases_are_answered(server: Server, count: int, field: str, same: bool) -> None:
    fields = " ".join(field if same else f"a{n}:{field}" for n in range(count))
    server.post({"query": f"{{{fields}}}"})


@FUZZ
@given(body=VALUES)
def test_any_json_body_is_answered(server: Server, body: Any) -> None:
    server.post(body)


WORDS = """mutation($t: String!, $i: ID!, $p: String!, $n: Int!) { %s
  x0: restoreFile(place: {workspaceId: $i}, path: $p, version: $n) { warnings }
  x1: putFile(place: {agentId: "marco"}, path: $p, content: $t, reason: $t, ifMatch: $t,
    contentType: $t, runId: $i) { warnings }
  x2: createPerson(input: {name: $t, email: $t, role: member, timezone: $t}) { id }
  x3: rollBackPin(agentId: "marco", filename: "GUARDRAILS.md", version: $n) { id }
  x4: deleteTemplate(id: $i)
  x5: putPolicy(policy: {agentWritable: [$t], runRetentionDays: $n}, reason: $t) { redaction } }"""
STRICT = (
    "updateAgent(id: $i, input: {name: $t, humanPairId: $i}) { id }",
    'updateAgent(id: "marco", input: {ownerId: $i}) { id }',
    'updateAgent(id: "marco", input: {templateId: $i}) { id }',
    "acceptTemplateUpdate(agentId: $i, filename: $p, latestSha: $t, idempotencyKey: $t) { id }",
    "createAgentFromTemplate(input: {templateId: $i, name: $t, slug: $p, teamId: $t}) { id }",
    "updateUserProfile(userId: $i, input: {title: $t, timezone: $p}) { id }",
    """commitFiles(place: {workspaceId: "lab"}, reason: $t, runId: $i, writes: [
      {put: {path: $p, content: $t, encoding: base64, contentType: $t}},
      {move: {path: $p, to: $t, ifMatch: $t}}, {delete: {path: $i, recursive: true}},
      {makeDirectory: {path: $t}}]) { revision }""",
)


@FUZZ
@given(
    text=st.text(),
    path=st.text(),
    number=st.integers(-(2**31), 2**31 - 1),
    strict=st.sampled_from(STRICT),
)
def test_any_strings_as_arguments_are_answered(
    server: Server, text: str, path: str, number: int, strict: str
) -> None:
    variables = {"t": text, "i": path, "p": path, "n": number}
    server.post({"query": WORDS % strict, "variables": variables})
