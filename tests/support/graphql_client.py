"""Asking over the wire, and a scene to ask about."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import httpx
from tests.support.full_app import Whole

Json = dict[str, Any]


async def ask(who: httpx.AsyncClient, document: str, **variables: Any) -> Json:
    """The whole answer; whatever it says, it is JSON and 200."""
    answer = await who.post("/graphql", json={"query": document, "variables": variables})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    found: Json = answer.json()
    return found


async def told(who: httpx.AsyncClient, document: str, **variables: Any) -> Json:
    """The data, where nothing went wrong."""
    answer = await ask(who, document, **variables)
    assert "errors" not in answer, answer["errors"]
    data: Json = answer["data"]
    return data


async def refused(who: httpx.AsyncClient, document: str, **variables: Any) -> str:
    """The code of the one error."""
    answer = await ask(who, document, **variables)
    [error] = answer["errors"]
    code: str = error["extensions"]["code"]
    return code


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def write(who: httpx.AsyncClient, where: str, text: str, **more: object) -> None:
    done = await who.put(where, json={"content": text, **more})
    assert done.status_code == 200, done.text


@dataclass(frozen=True)
class Scene:
    """A tenant with a template, an agent that follows it, and the person whom it works for."""

    tenant: str
    template: str
    agent: str
    person: str

    @property
    def ids(self) -> tuple[str, ...]:
        return (self.tenant, self.template, self.agent, self.person)


async def made(who: httpx.AsyncClient, where: str, **body: object) -> str:
    done = await who.post(where, json=body)
    assert done.status_code == 201, done.text
    id: str = done.json()["id"]
    return id


async def scene(owner: httpx.AsyncClient) -> Scene:
    template = await made(owner, "/v1/templates", slug="sales", name="Sales")
    await write(owner, "/v1/templates/sales/files/GUARDRAILS.md", "be good")
    await write(owner, "/v1/templates/sales/files/SOUL.md", "{{AGENT_NAME}} is brisk")
    new = {"slug": "marco", "name": "Marco", "templateId": "sales"}
    agent = await made(owner, "/v1/agents", **new)
    bob = {"name": "Bob", "email": "bob@example.org", "role": "member"}
    person = await made(owner, "/v1/people", **bob)
    tenant = (await owner.get("/v1/tenants/me")).json()["id"]
    return Scene(tenant, template, agent, person)


async def member(here: Whole, owner: httpx.AsyncClient, role: str = "member") -> httpx.AsyncClient:
    """Somebody with another role, and their own token."""
    email = f"{role}@example.net"
    person = await made(owner, "/v1/people", name="Somebody", email=email, role=role)
    body = {"name": "theirs", "kind": "person", "personId": person}
    done = await owner.post("/v1/keys", json=body)
    assert done.status_code == 201, done.text
    return here.as_(done.json()["key"])
