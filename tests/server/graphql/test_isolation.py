"""Records of other tenants are not found; missing permissions are forbidden."""

from __future__ import annotations

import httpx
import pytest
from tests.support.full_app import FullApp
from tests.support.graphql_client import (
    GraphqlTenant,
    create_graphql_tenant,
    execute_query,
    query_data,
    query_error_code,
)

from carrel.core.access import Actor, Permission
from carrel.server.graphql import LIMITS, SCHEMA, DocumentCache, GraphqlOperation, execute

pytestmark = pytest.mark.anyio

DOCUMENTS = (
    'query { agent(id: "%s") { id } }',
    'query { agentPinStatus(agentId: "%s") { path } }',
    'query { template(id: "%s") { id } }',
    'query { person(id: "%s") { id } }',
    'query { run(id: "%s") { id } }',
    'query { runs(agentId: "%s") { next } }',
    'query { agents(templateId: "%s") { next } }',
    'query { files(place: {agentId: "%s"}) { next } }',
    'query { files(place: {templateId: "%s"}) { next } }',
    'query { file(place: {agentId: "%s"}, path: "SOUL.md") { path } }',
    'query { explain(place: {agentId: "%s"}, path: "SOUL.md") { why } }',
    'mutation { acceptTemplateUpdate(agentId: "%s", filename: "GUARDRAILS.md", latestSha: "'
    + 64 * "0"
    + '") { id } }',
    'mutation { rollBackPin(agentId: "%s", filename: "GUARDRAILS.md") { id } }',
    'mutation { updateAgent(id: "%s", input: {name: "x"}) { id } }',
    'mutation { updateAgent(id: "mine", input: {humanPairId: "%s"}) { id } }',
    'mutation { updateAgent(id: "mine", input: {ownerId: "%s"}) { id } }',
    'mutation { updateAgent(id: "mine", input: {templateId: "%s"}) { id } }',
    'mutation { deleteAgent(id: "%s") }',
    'mutation { updateUserProfile(userId: "%s", input: {title: "x"}) { id } }',
    'mutation { updatePerson(id: "%s", input: {name: "x"}) { id } }',
    'mutation { deletePerson(id: "%s") }',
    'mutation { updateTemplate(id: "%s", input: {name: "x"}) { id } }',
    'mutation { deleteTemplate(id: "%s") }',
    'mutation { putFile(place: {agentId: "%s"}, path: "a.md", content: "") { warnings } }',
    'mutation { putFile(place: {templateId: "%s"}, path: "a.md", content: "") { warnings } }',
    'mutation { deleteFile(place: {agentId: "%s"}, path: "SOUL.md") }',
    'mutation { restoreFile(place: {agentId: "%s"}, path: "a.md", version: 1) { warnings } }',
)
CREATE = """mutation { createAgentFromTemplate(
  input: {templateId: "%s", name: "X", slug: "x"}) { id } }"""


async def test_records_of_another_tenant_are_not_found(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    other = await server.owner("globex")
    await other.post("/v1/agents", json={"slug": "mine", "name": "Mine"})
    run = (await owner.post("/v1/runs", json={"agentId": "marco"})).json()["runId"]
    for document in (*DOCUMENTS, CREATE):
        for id in (*sample.ids, run, "marco", "sales"):
            assert await query_error_code(other, document % id) == "NOT_FOUND", (document, id)


async def test_lists_contain_only_the_callers_tenant(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    other = await server.owner("globex")
    theirs = await create_graphql_tenant(other)
    document = """{ agents { items { id } } templates { items { id } } people { items { id } }
      runs { items { id } } audit { items { subjects } } tenant { id } }"""
    text = str(await query_data(other, document))
    assert not any(id in text for id in sample.ids)
    assert all(id in text for id in theirs.ids)


NEEDS = {
    "tenant { id }": Permission.TENANT_READ,
    "agents { next }": Permission.TENANT_READ,
    'agent(id: "marco") { id }': Permission.TENANT_READ,
    "templates { next }": Permission.TENANT_READ,
    'template(id: "sales") { id }': Permission.TENANT_READ,
    "people { next }": Permission.TENANT_READ,
    'person(id: "x") { id }': Permission.TENANT_READ,
    "policy { redaction }": Permission.TENANT_READ,
    "files(place: {defaults: true}) { next }": Permission.WORKSPACE_READ,
    'file(place: {agentId: "x"}, path: "a.md") { path }': Permission.WORKSPACE_READ,
    'explain(place: {agentId: "x"}, path: "a.md") { why }': Permission.WORKSPACE_READ,
    'agentPinStatus(agentId: "x") { path }': Permission.WORKSPACE_READ,
    "runs { next }": Permission.RUNS_READ,
    'run(id: "x") { id }': Permission.RUNS_READ,
    "audit { next }": Permission.TENANT_ADMIN,
}


async def test_every_query_needs_exactly_its_permission(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    for field, needed in NEEDS.items():
        without = await server.key(owner, *(set(Permission) - {needed}))
        assert await query_error_code(without, f"{{ {field} }}") == "FORBIDDEN", field
        answer = await execute_query(await server.key(owner, needed), f"{{ {field} }}")
        codes = {error["extensions"]["code"] for error in answer.get("errors", ())}
        assert codes <= {"NOT_FOUND"}, field


EDGES = {
    'agent(id: "marco") { template { id } }': Permission.TENANT_READ,
    'agent(id: "marco") { pins { path } }': Permission.WORKSPACE_READ,
    'agent(id: "marco") { updatesAvailable }': Permission.WORKSPACE_READ,
    'agent(id: "marco") { files { next } }': Permission.WORKSPACE_READ,
    'agent(id: "marco") { file(path: "SOUL.md") { path } }': Permission.WORKSPACE_READ,
    'template(id: "sales") { pins { path } }': Permission.WORKSPACE_READ,
    'template(id: "sales") { files { next } }': Permission.WORKSPACE_READ,
    'template(id: "sales") { file(path: "SOUL.md") { path } }': Permission.WORKSPACE_READ,
    "runs(first: 5) { items { files { next } } }": Permission.WORKSPACE_READ,
    'runs(first: 5) { items { file(path: "SOUL.md") { path } } }': Permission.WORKSPACE_READ,
    "runs(first: 5) { items { changes { path } } }": Permission.WORKSPACE_READ,
    'runs(first: 5) { items { diff(path: "SOUL.md") } }': Permission.WORKSPACE_READ,
    "runs(first: 5) { items { agent { id } } }": Permission.TENANT_READ,
    "me { person { id } }": Permission.TENANT_READ,
}


async def test_every_nested_field_needs_its_permission(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    await owner.post("/v1/runs", json={"agentId": "marco"})
    for field, needed in EDGES.items():
        scopes = sorted(set(Permission) - {needed})
        key = {"name": "narrow", "kind": "person", "scopes": scopes}
        narrow = server.as_((await owner.post("/v1/keys", json=key)).json()["key"])
        assert await query_error_code(narrow, f"{{ {field} }}") == "FORBIDDEN", field
        assert "errors" not in await execute_query(owner, f"{{ {field} }}"), field


async def test_a_workspace_key_sees_no_other_workspace(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    lab = await server.key(owner, workspace="lab")
    for field in (
        'agentPinStatus(agentId: "marco") { path }',
        'files(place: {agentId: "marco"}) { next }',
        'files(place: {templateId: "sales"}) { next }',
        "files(place: {defaults: true}) { next }",
        'files(place: {workspaceId: "other"}) { next }',
    ):
        assert await query_error_code(lab, f"{{ {field} }}") == "NOT_FOUND", field
    own = 'mutation { putFile(place: {workspaceId: "lab"}, path: "a.md", content: "x") {warnings} }'
    assert await query_data(lab, own)


async def test_a_bound_actor_stays_bound_with_every_permission(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    documents = DocumentCache(SCHEMA, LIMITS)
    confined = (
        Actor(sample.tenant, "key", workspace="lab"),
        Actor(sample.tenant, "key", agent="agt_x"),
    )
    for actor in confined:
        for field in (
            'agentPinStatus(agentId: "marco") { path }',
            'agent(id: "marco") { pins { path } }',
            'agent(id: "marco") { updatesAvailable }',
            'agent(id: "marco") { files { next } }',
            'agent(id: "marco") { file(path: "SOUL.md") { path } }',
            'template(id: "sales") { pins { path } }',
            'template(id: "sales") { files { next } }',
            'template(id: "sales") { file(path: "SOUL.md") { path } }',
        ):
            operation = GraphqlOperation(f"{{ {field} }}", {})
            answer = await execute(server.ports, actor, operation, str, documents)
            [error] = answer["errors"]
            assert error["extensions"]["code"] == "NOT_FOUND", (field, error)


async def test_an_agents_key_reads_and_writes_only_its_own_agent(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    await owner.post("/v1/agents", json={"slug": "polo", "name": "Polo", "templateId": "sales"})
    body = {"name": "marco's", "kind": "agent", "agentId": "marco"}
    marco = server.as_((await owner.post("/v1/keys", json=body)).json()["key"])
    assert (await query_data(marco, "{ me { agentId kind } }"))["me"]["agentId"] == sample.agent
    pins = '{ agentPinStatus(agentId: "%s") { path } }'
    assert await query_data(marco, pins % "marco")
    for name in ("polo", "missing"):
        [error] = (await execute_query(marco, pins % name))["errors"]
        assert error["message"] == f"no such agent: {name}"
        assert error["extensions"]["code"] == "NOT_FOUND"
    put = 'mutation { putFile(place: {agentId: "%s"}, path: "%s", content: "x") { warnings } }'
    assert await query_data(marco, put % ("marco", "notes/a.md"))
    assert await query_error_code(marco, put % ("marco", "SOUL.md")) == "FORBIDDEN"
    assert await query_error_code(marco, put % ("polo", "notes/a.md")) == "NOT_FOUND"
    assert await query_error_code(marco, "{ agents { next } }") == "FORBIDDEN"
