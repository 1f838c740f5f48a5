"""Agents, templates, people and the policy, changed over GraphQL."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, create_rest_app
from tests.support.graphql_client import (
    GraphqlTenant,
    create_member,
    execute_query,
    query_data,
    query_error_code,
    write,
)
from tests.support.rest_client import ForgetfulIdempotencyStore
from tests.support.tenants import sign_in_as

from carrel.core.access import Permission

pytestmark = pytest.mark.anyio

CREATE = """mutation($input: CreateAgentFromTemplateInput!) {
  createAgentFromTemplate(input: $input) {
    id tenantId slug name templateId config template { slug followerCount }
    pins { path pinnedContent } } }"""
UPDATE = """mutation($id: ID!, $input: UpdateAgentInput!) { updateAgent(id: $id, input: $input) {
  id name slug humanPairId humanPair { name } templateId isShared config } }"""
PROFILE = """mutation($id: ID!, $input: UpdateUserProfileInput!) {
  updateUserProfile(userId: $id, input: $input) { id name title timezone pronouns } }"""
POLO = {"templateId": "sales", "name": "Polo", "slug": "polo"}


async def test_an_agent_is_created_from_a_template_with_its_pins(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    created = await query_data(owner, CREATE, input={**POLO, "teamId": "blue"})
    agent = created["createAgentFromTemplate"]
    assert (agent["tenantId"], agent["templateId"]) == (sample.tenant, sample.template)
    assert (agent["slug"], agent["name"], agent["config"]) == ("polo", "Polo", {"teamId": "blue"})
    assert agent["template"] == {"slug": "sales", "followerCount": 2}
    assert agent["pins"][0] == {"path": "GUARDRAILS.md", "pinnedContent": "be good"}
    assert await query_error_code(owner, CREATE, input=POLO) == "CONFLICT"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"templateId": "missing"}, "NOT_FOUND"),
        ({"name": "  "}, "BAD_USER_INPUT"),
        ({"slug": "No Slug"}, "BAD_USER_INPUT"),
        ({"slug": "me"}, "BAD_USER_INPUT"),
        ({"idempotencyKey": "no spaces"}, "BAD_USER_INPUT"),
        ({"teamId": "x" * 300}, "BAD_USER_INPUT"),
        ({"name": None}, "BAD_USER_INPUT"),
        ({"more": 1}, "BAD_USER_INPUT"),
    ],
)
async def test_an_invalid_agent_is_refused(
    owner: httpx.AsyncClient, sample: GraphqlTenant, fields: dict[str, Any], code: str
) -> None:
    assert await query_error_code(owner, CREATE, input={**POLO, **fields}) == code


async def test_repeated_and_concurrent_creates_return_the_same_agent(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    once = {"input": {**POLO, "idempotencyKey": "k1"}}
    answers = await asyncio.gather(*(query_data(owner, CREATE, **once) for _ in range(4)))
    ids = {answer["createAgentFromTemplate"]["id"] for answer in answers}
    assert len(ids) == 1
    await query_data(owner, UPDATE, id="polo", input={"name": "Paolo"})
    again = (await query_data(owner, CREATE, **once))["createAgentFromTemplate"]
    assert ({again["id"]}, again["name"]) == (ids, "Polo")
    other = {"input": {**POLO, "slug": "pola", "idempotencyKey": "k1"}}
    assert await query_error_code(owner, CREATE, **other) == "CONFLICT"


async def test_a_lost_response_is_rebuilt(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    ports = replace(server.ports, idempotency=ForgetfulIdempotencyStore(server.ports.idempotency))
    forgetful = FullApp(ports, create_rest_app(ports)).as_(
        owner.headers["Authorization"].partition(" ")[2]
    )
    once = {"input": {**POLO, "idempotencyKey": "k1"}}
    first = (await query_data(forgetful, CREATE, **once))["createAgentFromTemplate"]
    for client in (forgetful, owner, owner):
        assert (await query_data(client, CREATE, **once))["createAgentFromTemplate"] == first


async def test_idempotency_keys_are_separate_per_caller(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    once = {"input": {**POLO, "idempotencyKey": "k1"}}
    await query_data(owner, CREATE, **once)
    admin = await create_member(server, owner, "admin")
    assert await query_error_code(admin, CREATE, **once) == "CONFLICT"
    other = {"input": {**POLO, "slug": "pola", "idempotencyKey": "k1"}}
    assert (await query_data(admin, CREATE, **other))["createAgentFromTemplate"]["slug"] == "pola"


async def test_creating_and_updating_agents_needs_tenant_admin(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    for client in (await create_member(server, owner), await server.key(owner)):
        assert await query_error_code(client, CREATE, input=POLO) == "FORBIDDEN"
        for name in ("marco", "missing"):
            assert (
                await query_error_code(client, UPDATE, id=name, input={"name": "X"}) == "FORBIDDEN"
            )
    service = await server.key(owner, Permission.TENANT_ADMIN)
    document = (
        "mutation($i: CreateAgentFromTemplateInput!) { createAgentFromTemplate(input: $i) {id} }"
    )
    assert (await query_data(service, document, i=POLO))["createAgentFromTemplate"]["id"]


async def test_changing_an_agent_renders_its_files_anew(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    await write(owner, "/v1/defaults/files/USER.md", "{{AGENT_NAME}} for {{HUMAN_NAME}}")
    fields = {"name": "Polo", "humanPairId": sample.person, "config": {"a": [1, {"b": None}]}}
    changed = (await query_data(owner, UPDATE, id="marco", input=fields))["updateAgent"]
    assert (changed["name"], changed["humanPair"]) == ("Polo", {"name": "Bob"})
    assert changed["config"] == {"a": [1, {"b": None}]}
    read = '{ file(place: {agentId: "marco"}, path: "USER.md") { content class source } }'
    assert (await query_data(owner, read))["file"] == {
        "content": "Polo for Bob",
        "class": "managed",
        "source": "agent-override",
    }
    gone = (await query_data(owner, UPDATE, id="marco", input={"humanPairId": None}))["updateAgent"]
    assert (gone["humanPairId"], gone["humanPair"], gone["name"]) == (None, None, "Polo")
    assert (await query_data(owner, read))["file"]["content"] == "Polo for —"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": None}, "BAD_USER_INPUT"),
        ({"name": "\n"}, "BAD_USER_INPUT"),
        ({"slug": None}, "BAD_USER_INPUT"),
        ({"isShared": None}, "BAD_USER_INPUT"),
        ({"config": None}, "BAD_USER_INPUT"),
        ({"config": [1]}, "BAD_USER_INPUT"),
        ({"config": {"n": 2**60}}, "BAD_USER_INPUT"),
        ({"config": {"n": "x" * 2**20}}, "BAD_USER_INPUT"),
        ({"humanPairId": "missing"}, "NOT_FOUND"),
        ({"humanPairId": "no\u0000body"}, "NOT_FOUND"),
        ({"ownerId": ""}, "NOT_FOUND"),
        ({"templateId": "nothing"}, "NOT_FOUND"),
    ],
)
async def test_an_invalid_update_of_an_agent_is_refused(
    owner: httpx.AsyncClient, sample: GraphqlTenant, fields: dict[str, Any], code: str
) -> None:
    assert await query_error_code(owner, UPDATE, id="marco", input=fields) == code


async def test_a_config_that_is_too_large_or_too_deep_is_refused(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    change = 'mutation { updateAgent(id: "marco", input: {config: %s}) { id } }'
    for wide in ("9" * 400, "9" * 5000, "1e999"):
        assert await query_error_code(owner, change % f"{{n: {wide}}}") == "BAD_USER_INPUT"
    for deep in (20, 150, 900):
        literal = "{n: " * deep + "1" + "}" * deep
        assert await query_error_code(owner, change % literal) == "BAD_USER_INPUT"
        value: Any = 1
        for _ in range(deep):
            value = {"n": value}
        assert (
            await query_error_code(owner, UPDATE, id="marco", input={"config": value})
            == "BAD_USER_INPUT"
        )


async def test_people_change_their_own_profile_and_others_only_as_admins(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    await write(owner, "/v1/defaults/files/USER.md", "{{HUMAN_TITLE}}")
    await query_data(owner, UPDATE, id="marco", input={"humanPairId": sample.person})
    bob = server.as_(await sign_in_as(owner, sample.person))
    fields = {"title": "Buyer", "timezone": "Europe/Paris", "pronouns": "he"}
    changed = (await query_data(bob, PROFILE, id=sample.person, input=fields))["updateUserProfile"]
    assert changed == {"id": sample.person, "name": "Bob", **fields}
    user = (await owner.get("/v1/agents/marco/files/USER.md")).json()
    assert user["content"] == "Buyer"
    ada = (await query_data(owner, "{ me { personId } }"))["me"]["personId"]
    for other in (ada, "missing"):
        assert (
            await query_error_code(bob, PROFILE, id=other, input={"title": "Boss"}) == "FORBIDDEN"
        )
    cleared = await query_data(owner, PROFILE, id=sample.person, input={"title": None})
    assert cleared["updateUserProfile"]["title"] is None
    admin = await create_member(server, owner, "admin")
    await query_data(admin, PROFILE, id=sample.person, input={"title": "Seller"})
    assert await query_error_code(admin, PROFILE, id="missing", input={"title": "x"}) == "NOT_FOUND"
    assert await query_error_code(admin, PROFILE, id=ada, input={"title": "x"}) == "FORBIDDEN"
    wrong = {"timezone": "Mars/Base"}
    assert await query_error_code(bob, PROFILE, id=sample.person, input=wrong) == "BAD_USER_INPUT"


async def test_a_scoped_key_cannot_change_a_profile(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    signed_in = server.as_(await sign_in_as(owner, sample.person))
    key = {"name": "a", "kind": "person", "scopes": ["tenant:read"]}
    bob = server.as_((await signed_in.post("/v1/keys", json=key)).json()["key"])
    assert (
        await query_error_code(bob, PROFILE, id=sample.person, input={"title": "x"}) == "FORBIDDEN"
    )


async def test_templates_are_created_updated_and_deleted(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    created = await query_data(
        owner, 'mutation { createTemplate(input: {slug: "ops", name: "Ops"}) { id slug name } }'
    )
    id = created["createTemplate"]["id"]
    changed = await query_data(
        owner,
        'mutation($id: ID!) { updateTemplate(id: $id, input: {name: "Operations"}) { name } }',
        id=id,
    )
    assert changed["updateTemplate"] == {"name": "Operations"}
    null = 'mutation { updateTemplate(id: "ops", input: {name: null}) { name } }'
    assert await query_error_code(owner, null) == "BAD_USER_INPUT"
    gone = 'mutation { deleteTemplate(id: "%s") }'
    assert (await query_data(owner, gone % "ops"))["deleteTemplate"] is True
    assert await query_error_code(owner, gone % "ops") == "NOT_FOUND"
    assert await query_error_code(owner, gone % "sales") == "CONFLICT"
    assert (await query_data(owner, 'mutation { deleteAgent(id: "marco") }'))["deleteAgent"] is True
    assert (await query_data(owner, gone % "sales"))["deleteTemplate"] is True


async def test_people_are_created_updated_and_deleted(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    add = """mutation($input: CreatePersonInput!) { createPerson(input: $input) { id role } }"""
    eve = {"name": "Eve", "email": "eve@example.org", "role": "admin", "timezone": "Asia/Tokyo"}
    created = (await query_data(owner, add, input=eve))["createPerson"]
    assert created["role"] == "admin"
    assert (
        await query_error_code(owner, add, input={**eve, "email": "EVE@example.org"}) == "CONFLICT"
    )
    assert await query_error_code(owner, add, input={**eve, "email": "missing"}) == "BAD_USER_INPUT"
    change = """mutation($id: ID!, $input: UpdatePersonInput!) {
      updatePerson(id: $id, input: $input) { name role timezone } }"""
    done = await query_data(
        owner, change, id=created["id"], input={"role": "member", "timezone": None}
    )
    assert done["updatePerson"] == {"name": "Eve", "role": "member", "timezone": None}
    assert (
        await query_error_code(owner, change, id=created["id"], input={"email": None})
        == "BAD_USER_INPUT"
    )
    gone = "mutation($id: ID!) { deletePerson(id: $id) }"
    assert (await query_data(owner, gone, id=created["id"]))["deletePerson"] is True
    ada = (await query_data(owner, "{ me { personId } }"))["me"]["personId"]
    assert await query_error_code(owner, gone, id=ada) == "CONFLICT"


async def test_pinning_a_file_with_placeholders_needs_a_confirmation(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    put = """mutation($policy: PolicyInput!, $confirm: Boolean! = false) {
      putPolicy(policy: $policy, confirm: $confirm) { placeholderFiles } }"""
    await write(owner, "/v1/templates/sales/files/a.md", "{{AGENT_NAME}}")
    policy = {"classes": [{"pattern": "a.md", "class": "pinned"}]}
    assert await query_error_code(owner, put, policy=policy) == "CONFLICT"
    done = await query_data(owner, put, policy=policy, confirm=True)
    assert done["putPolicy"] == {"placeholderFiles": ["a.md"]}
    assert (await query_data(owner, "{ policy { placeholderFiles } }"))["policy"] == {
        "placeholderFiles": None
    }


async def test_a_policy_is_replaced_and_loosening_it_needs_a_reason(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    put = """mutation($policy: PolicyInput!, $reason: String! = "") {
      putPolicy(policy: $policy, reason: $reason) {
        limits { maxFiles maxBytes } classes { pattern class } redaction agentWritable } }"""
    await write(owner, "/v1/templates/sales/files/a.md", "x")
    policy = {
        "limits": {"maxFiles": 50, "maxBytes": 2**40},
        "classes": [{"pattern": "a.md", "class": "pinned"}],
        "redaction": "warn",
    }
    done = (await query_data(owner, put, policy=policy))["putPolicy"]
    assert done["limits"] == policy["limits"]
    assert (done["classes"], done["redaction"]) == (policy["classes"], "warn")
    assert "MEMORY.md" in done["agentWritable"]
    assert await query_error_code(owner, put, policy={}) == "BAD_USER_INPUT"
    loosened = await query_data(owner, put, policy={}, reason="it may move again")
    assert loosened["putPolicy"]["classes"] == []
    for wrong in (
        {"limits": {"maxFiles": 0}},
        {"limits": {"maxFiles": 1.5}},
        {"limits": {"maxFiles": True}},
        {"classes": [{"pattern": "../x", "class": "live"}]},
        {"agentWritable": None},
        {"redaction": "never"},
    ):
        assert await query_error_code(owner, put, policy=wrong, reason="x") == "BAD_USER_INPUT"


async def test_a_member_cannot_change_or_audit_anything(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    client = await create_member(server, owner)
    for change in (
        'deleteAgent(id: "%s")',
        'deleteTemplate(id: "%s")',
        'deletePerson(id: "%s")',
        'updateTemplate(id: "%s", input: {}) { id }',
        'updatePerson(id: "%s", input: {}) { id }',
        'rollBackPin(agentId: "%s", filename: "GUARDRAILS.md") { id }',
        'putFile(place: {templateId: "%s"}, path: "a.md", content: "") { warnings }',
        'deleteFile(place: {templateId: "%s"}, path: "a.md")',
    ):
        for id in (*sample.ids, "missing"):
            assert await query_error_code(client, f"mutation {{ {change % id} }}") == "FORBIDDEN", (
                change
            )
    for document in (
        'mutation { createTemplate(input: {slug: "x", name: "X"}) { id } }',
        "mutation { putPolicy(policy: {}) { redaction } }",
        "{ audit { next } }",
    ):
        assert await query_error_code(client, document) == "FORBIDDEN"


async def test_mutations_run_in_order_and_see_earlier_changes(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    document = """mutation($p: ID!) {
      pair: updateAgent(id: "marco", input: {humanPairId: $p}) { humanPair { title } }
      title: updateUserProfile(userId: $p, input: {title: "Buyer"}) { title }
      name: updateAgent(id: "marco", input: {name: "Polo"}) { humanPair { title } }
      wrong: updateTemplate(id: "missing", input: {name: "x"}) { id }
      last: updateTemplate(id: "sales", input: {name: "Seller"}) { name } }"""
    answer = await execute_query(owner, document, p=sample.person)
    assert answer["data"] == {
        "pair": {"humanPair": {"title": None}},
        "title": {"title": "Buyer"},
        "name": {"humanPair": {"title": "Buyer"}},
        "wrong": None,
        "last": {"name": "Seller"},
    }
    assert [error["path"] for error in answer["errors"]] == [["wrong"]]
