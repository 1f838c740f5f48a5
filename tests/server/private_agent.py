"""A private agent full of private texts, and every kind of caller."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any, Final

import httpx
from tests.support.full_app import FullApp, open_full_app, settings_in
from tests.support.tenants import sign_in_as

from carrel.actions.accounts import credentials
from carrel.actions.approvals import approvals
from carrel.actions.approvals.approvals import ApprovalRequest
from carrel.core.access import Permission
from carrel.core.runs import Audience
from carrel.server.http.endpoint import Endpoint
from carrel.wiring.server_app import endpoints

SECRET = "xylophone"
"""Word that stands in every private text."""
SESSION = "0b8f8f8e-0000-4000-8000-000000000001"
ADMINS: Final = frozenset({"tenant owner", "tenant admin"})
PEOPLE: Final = frozenset({"agent's owner", "paired human"})
OPEN_TO: Final = ADMINS | PEOPLE | {"own key", "service"}
"""Callers who may open what is private to the agent."""
_ABSENT: Final = ("no such agent", "no such run", "no such approval", "Target not found")


@dataclass(frozen=True)
class Row:
    """Request to an endpoint, and how a caller who may not open the agent is refused."""

    json: Any = None
    query: str = ""
    refusal: int = 403
    admins_only: bool = False
    """Whether people of the agent who are members are refused: it writes the agent's files."""
    content: bytes | None = None
    content_type: str = "application/json"


_INHERITED_FILES = "test_members_see_the_agent_and_its_inherited_live_files"
_INHERITED_SKILLS = "test_private_skills.py"
INHERITED_ROWS = {
    "GET /v1/agents/{id}/files": _INHERITED_FILES,
    "POST /api/workspaces/files": _INHERITED_FILES,
    "GET /v1/agents": _INHERITED_FILES,
    "GET /v1/agents/{id}": _INHERITED_FILES,
    "GET /v1/agents/{id}/skills": _INHERITED_SKILLS,
    "GET /.well-known/agent-skills/index.json": _INHERITED_SKILLS,
    "GET /.well-known/agent-skills/{name}/SKILL.md": _INHERITED_SKILLS,
    "GET /.well-known/agent-skills/{name}.zip": _INHERITED_SKILLS,
}
"""Endpoints that show members what a private agent inherits, and where that is tested."""


@dataclass(frozen=True)
class PrivateAgent:
    """Ids of a private agent and its things, and a client of each kind of caller."""

    agent: str
    run: str
    memory: str
    approval: str
    callers: Mapping[str, httpx.AsyncClient]

    def url(self, path: str) -> str:
        """Path of an endpoint with the ids filled in."""
        values = {
            "/v1/runs/{id}": f"/v1/runs/{self.run}",
            "/v1/approvals/{id}": f"/v1/approvals/{self.approval}",
            "{id}": self.agent,
            "{repository}": f"{self.agent}.git",
            "{sid}": SESSION,
            "{number}": "1",
            "{memory}": self.memory,
            "{dream}": "drm_000000000000000000000000",
            "{key...}": "plan",
            "{path...}": "MEMORY.md",
        }
        for name, value in values.items():
            path = path.replace(name, value)
        return path


async def _post(client: httpx.AsyncClient, url: str, body: Mapping[str, Any]) -> dict[str, Any]:
    response = await client.post(url, json=body)
    assert response.status_code in {200, 201}, response.text
    result: dict[str, Any] = response.json()
    return result


async def _add_member(
    app: FullApp, owner: httpx.AsyncClient, name: str, role: str = "member"
) -> tuple[str, httpx.AsyncClient]:
    body = {"name": name, "email": f"{name}@example.org", "role": role}
    id = (await _post(owner, "/v1/people", body))["id"]
    return id, app.as_(await sign_in_as(owner, id))


async def create_private_agent(app: FullApp) -> PrivateAgent:
    owner = await app.owner()
    _, admin = await _add_member(app, owner, "adam", "admin")
    keeper_id, keeper = await _add_member(app, owner, "keeper")
    human_id, human = await _add_member(app, owner, "human")
    _, other = await _add_member(app, owner, "other")
    config = {"workspaceGit": {"enabled": True}}
    fields = {"slug": "desk", "name": "Desk", "ownerId": keeper_id, "humanPairId": human_id}
    agent = (await _post(owner, "/v1/agents", {**fields, "config": config}))["id"]
    stranger = (await _post(owner, "/v1/agents", {"slug": "peer", "name": "Peer"}))["id"]
    approval = await _request_approval(app, owner, agent)
    memory, run = await _fill(owner, agent)
    body = {"name": "own", "kind": "agent"}
    keys = [
        (await _post(owner, "/v1/keys", {**body, "agentId": id}))["key"] for id in (agent, stranger)
    ]
    callers = {
        "tenant owner": owner,
        "tenant admin": admin,
        "agent's owner": keeper,
        "paired human": human,
        "other member": other,
        "own key": app.as_(keys[0]),
        "other agent's key": app.as_(keys[1]),
        "service": await app.key(owner),
        "service without": await app.key(owner, Permission.TENANT_READ),
        "anonymous": app.as_(None),
        "other tenant": await app.owner("globex"),
    }
    return PrivateAgent(agent, run, memory, approval, callers)


async def _fill(owner: httpx.AsyncClient, agent: str) -> tuple[str, str]:
    """Write private texts of every kind; return the ids of a memory and a run."""
    root = f"/v1/agents/{agent}"
    for path in ("MEMORY.md", "notes/2026-01-01.md", "SOUL.md", "own.md"):
        put = await owner.put(f"{root}/files/{path}", json={"content": f"# {SECRET} {path}"})
        assert put.status_code == 200, put.text
    memory = await _post(owner, f"{root}/memories", {"content": f"the {SECRET} is tuned"})
    await _post(owner, f"{root}/sessions", {"id": SESSION})
    entry = {"role": "user", "content": f"hide the {SECRET}"}
    await _post(owner, f"{root}/sessions/{SESSION}/entries", entry)
    put = await owner.put(f"{root}/items/plan", json={"value": SECRET})
    assert put.status_code == 200, put.text
    run = await _post(owner, "/v1/runs", {"agentId": agent})
    return memory["id"], run["runId"]


async def _request_approval(app: FullApp, owner: httpx.AsyncClient, agent: str) -> str:
    token = owner.headers["Authorization"].partition(" ")[2]
    actor = await credentials.authenticate(app.ports, token)
    arguments = {"command": f"echo {SECRET}"}
    request = ApprovalRequest(agent=agent, tool="bash", arguments=arguments, mode=Audience.MAIN)
    return (await approvals.request_approval(app.ports, actor, request)).id


@dataclass(frozen=True)
class Office:
    app: FullApp
    private: PrivateAgent
    registry: dict[str, Endpoint] = field(default_factory=dict)


@asynccontextmanager
async def open_office(directory: File) -> AsyncIterator[Office]:
    async with open_full_app(directory) as app:
        registry = {item.name: item for item in endpoints(settings_in(directory))}
        yield Office(app, await create_private_agent(app), registry)


def is_refused(response: httpx.Response) -> bool:
    """Whether the caller, not the request, was refused."""
    absent = response.status_code == 404 and any(text in response.text for text in _ABSENT)
    return response.status_code in {401, 403} or absent


async def send(office: Office, caller: str, name: str, row: Row) -> httpx.Response:
    method, path = name.split(" ")
    url = office.private.url(path) + row.query
    client = office.private.callers[caller]
    if row.content is not None:
        headers = {"Content-Type": row.content_type}
        return await client.request(method, url, content=row.content, headers=headers)
    return await client.request(method, url, json=row.json)
