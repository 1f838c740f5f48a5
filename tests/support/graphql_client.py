"""GraphQL requests over HTTP, and a tenant to query."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import httpx
from tests.support.full_app import FullApp
from tests.support.tenants import sign_in_as

Json = dict[str, Any]


async def execute_query(client: httpx.AsyncClient, document: str, **variables: Any) -> Json:
    """The complete response, which must be JSON with status 200."""
    response = await client.post("/graphql", json={"query": document, "variables": variables})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    payload: Json = response.json()
    return payload


async def query_data(client: httpx.AsyncClient, document: str, **variables: Any) -> Json:
    """The data of a response without errors."""
    response = await execute_query(client, document, **variables)
    assert "errors" not in response, response["errors"]
    data: Json = response["data"]
    return data


async def query_error_code(client: httpx.AsyncClient, document: str, **variables: Any) -> str:
    """The code of the only error."""
    response = await execute_query(client, document, **variables)
    [error] = response["errors"]
    code: str = error["extensions"]["code"]
    return code


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def write(client: httpx.AsyncClient, url: str, text: str, **more: object) -> None:
    done = await client.put(url, json={"content": text, **more})
    assert done.status_code == 200, done.text


@dataclass(frozen=True)
class GraphqlTenant:
    """A tenant with a template, an agent of it, and the agent's human."""

    tenant: str
    template: str
    agent: str
    person: str

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.tenant, self.template, self.agent, self.person)


async def create(client: httpx.AsyncClient, url: str, **body: object) -> str:
    done = await client.post(url, json=body)
    assert done.status_code == 201, done.text
    id: str = done.json()["id"]
    return id


async def create_graphql_tenant(owner: httpx.AsyncClient) -> GraphqlTenant:
    template = await create(owner, "/v1/templates", slug="sales", name="Sales")
    await write(owner, "/v1/templates/sales/files/GUARDRAILS.md", "be good")
    await write(owner, "/v1/templates/sales/files/SOUL.md", "{{AGENT_NAME}} is brisk")
    new = {"slug": "marco", "name": "Marco", "templateId": "sales"}
    agent = await create(owner, "/v1/agents", **new)
    bob = {"name": "Bob", "email": "bob@example.org", "role": "member"}
    person = await create(owner, "/v1/people", **bob)
    tenant = (await owner.get("/v1/tenants/me")).json()["id"]
    return GraphqlTenant(tenant, template, agent, person)


async def create_member(
    here: FullApp, owner: httpx.AsyncClient, role: str = "member"
) -> httpx.AsyncClient:
    """A client with the token of a new person with this role."""
    email = f"{role}@example.net"
    person = await create(owner, "/v1/people", name="Bob", email=email, role=role)
    return here.as_(await sign_in_as(owner, person))
