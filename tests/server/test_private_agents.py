"""Who may open what of a private agent, over every endpoint and tool.

Every endpoint that concerns agents has a row here; a new one without a row fails a test.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any, Final

import httpx
import pytest
from tests.server.private_agent import (
    ADMINS,
    INHERITED_ROWS,
    OPEN_TO,
    PEOPLE,
    SECRET,
    Office,
    Row,
    is_refused,
    open_office,
    send,
)
from tests.support.full_app import settings_in

from carrel.actions.accounts import credentials
from carrel.actions.events.event_access import select_visible
from carrel.core.access import Permission
from carrel.core.store.event import EventFilter
from carrel.server.http.cookies import SiteSettings
from carrel.server.mcp.http import McpApp
from carrel.tools.registry import ALL_TOOLS
from carrel.wiring.server_app import authenticator, endpoints

pytestmark = pytest.mark.anyio

_FILE: Final[Any] = {"content": "x"}
_COMMIT: Final = {"writes": [{"op": "put", "path": "notes/b.md", "content": "x"}]}
_MOVE: Final = {"from": "notes/none.md", "to": "notes/new.md"}
PRIVATE_ROWS: Final = {
    "GET /v1/agents/{id}/files/{path...}": Row(),
    "PUT /v1/agents/{id}/files/{path...}": Row(_FILE, admins_only=True),
    "DELETE /v1/agents/{id}/files/{path...}": Row(admins_only=True),
    "POST /v1/agents/{id}/commits": Row(_COMMIT, admins_only=True),
    "POST /v1/agents/{id}/move": Row(_MOVE, admins_only=True),
    "POST /v1/agents/{id}/copy": Row(_MOVE, admins_only=True),
    "POST /v1/agents/{id}/directories": Row({"path": "notes/folder"}, admins_only=True),
    "DELETE /v1/agents/{id}/directories/{path...}": Row(admins_only=True),
    "GET /v1/agents/{id}/files/{path...}/history": Row(),
    "GET /v1/agents/{id}/files/{path...}/diff": Row(),
    "GET /v1/agents/{id}/files/{path...}/readers": Row(query="?version=1"),
    "GET /v1/agents/{id}/files/{path...}/explain": Row(),
    "POST /v1/agents/{id}/files/{path...}/restore": Row({"version": 1}, admins_only=True),
    "POST /v1/agents/{id}/files/{path...}/render": Row(_FILE),
    "GET /v1/agents/{id}/prompt": Row(),
    "GET /v1/agents/{id}/prompt/lint": Row(),
    "GET /v1/agents/{id}/pins": Row(),
    "GET /v1/agents/{id}/sessions": Row(),
    "POST /v1/agents/{id}/sessions": Row({}),
    "GET /v1/agents/{id}/sessions/{sid}": Row(),
    "GET /v1/agents/{id}/session-entries": Row(query="?session=0:chat"),
    "POST /v1/agents/{id}/sessions/{sid}/entries": Row({"role": "assistant", "content": "x"}),
    "GET /v1/agents/{id}/sessions/{sid}/entries": Row(),
    "GET /v1/agents/{id}/sessions/{sid}/entries/{number}/provenance": Row(),
    "POST /v1/agents/{id}/sessions/{sid}/pop": Row(),
    "POST /v1/agents/{id}/sessions/{sid}/clear": Row(),
    "POST /v1/agents/{id}/sessions/{sid}/close": Row(),
    "GET /v1/agents/{id}/sessions/{sid}.jsonl": Row(),
    "GET /v1/agents/{id}/memories": Row(query="?q=tuned"),
    "POST /v1/agents/{id}/memories": Row({"content": "it is tuned"}),
    "GET /v1/agents/{id}/memories/{memory}": Row(),
    "PATCH /v1/agents/{id}/memories/{memory}": Row({"tags": ["tuned"]}),
    "DELETE /v1/agents/{id}/memories/{memory}": Row(),
    "GET /v1/agents/{id}/dreams": Row(),
    "POST /v1/agents/{id}/dreams": Row({"dryRun": True}),
    "GET /v1/agents/{id}/dreams/{dream}": Row(),
    "GET /v1/agents/{id}/items": Row(),
    "GET /v1/agents/{id}/items/{key...}": Row(),
    "PUT /v1/agents/{id}/items/{key...}": Row({"value": "x"}),
    "DELETE /v1/agents/{id}/items/{key...}": Row(),
    "GET /v1/agents/{id}/tools": Row(),
    "GET /git/{repository}/info/refs": Row(query="?service=git-upload-pack"),
    "POST /git/{repository}/git-upload-pack": Row(
        content=b"0000", content_type="application/x-git-upload-pack-request"
    ),
    "GET /v1/runs/{id}": Row(refusal=404),
    "PATCH /v1/runs/{id}": Row({}, refusal=404),
    **{
        f"GET /v1/runs/{{id}}/{part}": Row(refusal=404)
        for part in ("files", "diff", "events", "prompt", "provenance", "timeline")
    },
    "GET /v1/runs/{id}/files/{path...}": Row(refusal=404),
    "GET /v1/runs/{id}/events/poll": Row(query="?timeout=0", refusal=404),
    **{f"POST /v1/runs/{{id}}/{part}": Row({}, refusal=404) for part in ("cancel", "heartbeat")},
    "GET /v1/approvals/{id}": Row(refusal=404),
}
"""Endpoints that open what is private to one agent."""
OTHER_ROWS: Final = {
    "POST /v1/agents/{id}/tools/{name}": "test_no_tool_of_a_private_agent_runs_for_others",
    "POST /v1/runs": "test_only_callers_with_access_start_runs",
    "POST /v1/dry-run": "test_a_dry_run_opens_nothing_that_the_request_itself_does_not",
    "POST /v1/approvals/{id}": "answering has a rule of its own: tests of approvals",
    **INHERITED_ROWS,
    **dict.fromkeys(("GET /v1/runs", "GET /v1/approvals"), "test_listings_omit_what_is_private"),
    **dict.fromkeys(("GET /v1/agents/{id}/connection", "GET /v1/event-types"), "public facts"),
    "GET /v1/inbox": "test_listings_omit_what_is_private",
    "GET /v1/overview": "rest/test_overview.py",
    "GET /v1/tags": "rest/agents/test_agents.py",
    **{
        f"GET /v1/{layer}/pins/{{path...}}/versions": "test_private_reviews.py"
        for layer in ("defaults", "templates/{id}")
    },
    **dict.fromkeys(("GET /v1/inbox/pins", "GET /v1/inbox/dreams"), "rest/test_inbox.py"),
    "GET /v1/compare": "tests/server/rest/test_compare.py",
    "GET /v1/search": "test_listings_omit_what_is_private",
    "POST /graphql": "test_listings_omit_what_is_private",
    "GET /v1/events": "test_events_of_private_agents_are_for_their_people",
    "GET /v1/host/workspace/events": "the caller's own workspace",
    "POST /git/{repository}/git-receive-pack": "refused for everybody",
    "GET /v1/workflows/{id}": "public definition",
    "GET /graphql/schema": "public schema",
}
"""Endpoints that concern agents otherwise, and where that is tested."""
UNCONCERNED_TAGS: Final = frozenset(
    {
        *("Files of templates", "Files of defaults", "Files of workspaces", "Workspace files"),
        *("Sandboxes and shared workspaces", "Webhooks", "Signing in", "People", "Keys"),
        *("Templates", "Secrets", "Discovery", "Tenants", "Policy", "Page", "Operations"),
        *("Defaults", "Audit", "Memory stores"),
    }
)
"""Tags of endpoints that open nothing of one agent."""


@pytest.fixture
async def office(tmp_path: File) -> AsyncIterator[Office]:
    async with open_office(tmp_path) as office:
        yield office


def test_every_endpoint_that_concerns_an_agent_has_a_row(tmp_path: File) -> None:
    concerned = {
        item.name
        for item in endpoints(settings_in(tmp_path))
        if item.tag not in UNCONCERNED_TAGS and item.permission is not Permission.TENANT_ADMIN
    }
    assert concerned == set(PRIVATE_ROWS) | set(OTHER_ROWS)


async def test_every_private_thing_is_open_to_the_agents_people_only(office: Office) -> None:
    outcomes = {}
    for name, row in sorted(PRIVATE_ROWS.items(), key=lambda item: "DELETE" in item[0]):
        for caller in office.private.callers:
            response = await send(office, caller, name, row)
            assert response.status_code < 500, (name, caller, response.text)
            expected = caller not in OPEN_TO or (row.admins_only and caller in PEOPLE)
            if is_refused(response) is not expected:
                outcomes[name, caller] = (response.status_code, response.text[:200])
            if caller == "other member" and response.status_code != row.refusal:
                outcomes[name, caller] = (response.status_code, response.text[:200])
    assert not outcomes


async def test_endpoints_for_admins_refuse_everybody_else(office: Office) -> None:
    for name, endpoint in office.registry.items():
        if endpoint.permission is Permission.TENANT_ADMIN and "/agents/{id}" in name:
            for caller in set(office.private.callers) - ADMINS - {"other tenant"}:
                response = await send(office, caller, name, Row({}))
                assert response.status_code in {401, 403}, (name, caller)


async def test_no_tool_of_a_private_agent_runs_for_others(office: Office) -> None:
    for tool in ALL_TOOLS:
        url = f"/v1/agents/{office.private.agent}/tools/{tool.name}"
        for caller, client in office.private.callers.items():
            for scope in ("main", "shared"):
                response = await client.post(url, json={"arguments": {}, "scope": scope})
                assert is_refused(response) is (caller not in OPEN_TO), (tool.name, caller)


async def test_only_callers_with_access_start_runs(office: Office) -> None:
    for caller, client in office.private.callers.items():
        for scope in ("main", "shared"):
            body = {"agentId": office.private.agent, "scope": scope}
            response = await client.post("/v1/runs", json=body)
            assert is_refused(response) is (caller not in OPEN_TO), (caller, response.text)
            replay = await client.post("/v1/runs", json={"replayOf": office.private.run})
            assert is_refused(replay) is (caller not in OPEN_TO), (caller, replay.text)


async def test_a_dry_run_opens_nothing_that_the_request_itself_does_not(office: Office) -> None:
    member, url = office.private.callers["other member"], f"/v1/agents/{office.private.agent}"
    put = {"method": "PUT", "path": f"{url}/files/MEMORY.md", "body": {"content": "x"}}
    listing = {"method": "GET", "path": f"{url}/files", "query": {"content": "true"}}
    response = await member.post("/v1/dry-run", json={"requests": [put, listing]})
    refused, listed = response.json()["responses"]
    assert refused["status"] == 403
    itself = await member.get(f"{url}/files", params={"content": "true"})
    assert listed["body"] == itself.json()


async def test_members_see_the_agent_and_its_inherited_live_files(office: Office) -> None:
    member, agent = office.private.callers["other member"], office.private.agent
    assert (await member.get(f"/v1/agents/{agent}")).status_code == 200
    listed = await member.get(f"/v1/agents/{agent}/files", params={"content": "true"})
    paths = {file["path"] for file in listed.json()["files"]}
    hidden = {"MEMORY.md", "USER.md", "SOUL.md", "own.md", "GUARDRAILS.md", "notes/2026-01-01.md"}
    assert "IDENTITY.md" in paths
    assert not paths & hidden
    assert SECRET not in listed.text
    for path in (*sorted(hidden), "no-such-file.md"):
        assert (await member.get(f"/v1/agents/{agent}/files/{path}")).status_code == 403, path
        body = {"action": "get", "agentId": agent, "path": path}
        assert (await member.post("/api/workspaces/files", json=body)).status_code == 403, path
    read = await member.get(f"/v1/agents/{agent}/files/IDENTITY.md")
    assert read.status_code == 200
    version = {"version": read.json()["version"]}
    again = await member.get(f"/v1/agents/{agent}/files/IDENTITY.md", params=version)
    assert again.json()["content"] == read.json()["content"]
    listing: Any = {"action": "list", "agentId": agent, "includeContent": True}
    overlay = await member.post("/api/workspaces/files", json=listing)
    assert {file["path"] for file in overlay.json()["files"]} == paths
    owner = await office.private.callers["tenant owner"].post("/api/workspaces/files", json=listing)
    assert SECRET in owner.text


_GRAPHQL: Final = """query ($id: ID!) {
  agents(first: 5) { items { id updatesAvailable overrideCount lastRun { id } pins { path } } }
  agent(id: $id) { files(first: 20) { items { path content } } }
  runs(first: 5) { items { id files(first: 20) { items { path content } } } }
}"""


def listing_requests(agent: str) -> list[tuple[str, str, Any]]:
    return [
        ("GET", "/v1/runs", None),
        ("GET", "/v1/approvals", None),
        ("GET", "/v1/inbox", None),
        ("GET", f"/v1/search?q={SECRET}", None),
        ("POST", "/graphql", {"query": _GRAPHQL, "variables": {"id": agent}}),
    ]


async def test_listings_omit_what_is_private(office: Office) -> None:
    private = office.private
    for method, url, body in listing_requests(private.agent):
        leaks = {}
        for caller in ("other member", "other tenant", "agent's owner", "tenant admin"):
            response = await private.callers[caller].request(method, url, json=body)
            assert response.status_code == 200, (caller, url, response.text)
            things = (SECRET, private.run, private.approval)
            leaks[caller] = any(thing in response.text for thing in things)
        assert leaks == {
            "other member": False,
            "other tenant": False,
            "agent's owner": True,
            "tenant admin": True,
        }, (url, response.text)


async def test_graphql_refuses_private_files_and_history_to_members(office: Office) -> None:
    member, agent = office.private.callers["other member"], office.private.agent
    for field_text in (
        f'file(place: {{agentId: "{agent}"}}, path: "MEMORY.md") {{ content }}',
        f'file(place: {{agentId: "{agent}"}}, path: "IDENTITY.md") {{ explain {{ why }} }}',
        f'explain(place: {{agentId: "{agent}"}}, path: "MEMORY.md") {{ why }}',
        f'agentPinStatus(agentId: "{agent}") {{ path }}',
        f'run(id: "{office.private.run}") {{ id }}',
    ):
        response = await member.post("/graphql", json={"query": f"{{ {field_text} }}"})
        assert response.json()["errors"], field_text
        assert SECRET not in response.text


async def test_events_of_private_agents_are_for_their_people(office: Office) -> None:
    ports, counts = office.app.ports, {}
    for caller in ("other member", "agent's owner", "tenant admin", "service"):
        token = office.private.callers[caller].headers["Authorization"].partition(" ")[2]
        actor = await credentials.authenticate(ports, token)
        batch = await ports.events.read_after(None, EventFilter(actor.tenant), limit=500)
        visible = await select_visible(ports, actor, batch)
        private_events = [
            event
            for event in visible
            if (event.scope and event.scope.name == office.private.agent)
            or event.payload.get("agentId") == office.private.agent
            or event.payload.get("noun") == "memory"
        ]
        counts[caller] = len(private_events)
    assert counts["other member"] == 0
    assert counts["agent's owner"] == counts["tenant admin"] == counts["service"] > 5


async def test_mcp_is_closed_to_others(office: Office, tmp_path: File) -> None:
    authenticate = authenticator(office.app.ports, settings_in(tmp_path))
    app = McpApp(office.app.ports, authenticate, asyncio.Event(), SiteSettings())
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for caller in set(office.private.callers) - OPEN_TO:
        headers = office.private.callers[caller].headers
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://carrel") as client:
            response = await client.post(
                f"/mcp/agents/{office.private.agent}", json=body, headers=headers
            )
        assert is_refused(response), (caller, response.text)


async def test_reading_transcripts_and_memories_as_an_admin_is_audited_once(
    office: Office,
) -> None:
    private = office.private
    root, admin = f"/v1/agents/{private.agent}", private.callers["tenant admin"]
    reads = [
        f"{root}/sessions/{private.url('{sid}')}",
        f"{root}/sessions/{private.url('{sid}')}.jsonl",
        f"{root}/sessions?q={SECRET}",
        f"{root}/memories",
        f"{root}/memories/{private.memory}",
        f"/v1/search?q={SECRET}",
    ]
    before = len((await admin.get("/v1/audit?limit=500")).json()["items"])
    for caller in ("tenant admin", "agent's owner", "paired human", "service", "own key"):
        for url in reads:
            assert (await private.callers[caller].get(url)).status_code == 200
    log = await admin.get("/v1/audit?limit=500")
    entries = log.json()["items"][: len(log.json()["items"]) - before]
    assert len(entries) == len(reads)
    assert SECRET not in log.text
    assert all(f"agent/{private.agent}" in str(entry) for entry in entries)


_READING_TOOLS: Final[Any] = {
    "recall": {"query": SECRET},
    "my_stats": {},
    "session_logs": {"action": "search", "query": SECRET},
}


async def test_tools_that_quote_memories_and_transcripts_are_audited_for_admins(
    office: Office,
) -> None:
    root = f"/v1/agents/{office.private.agent}/tools"
    admin, keeper = (office.private.callers[name] for name in ("tenant admin", "agent's owner"))
    for caller, audited in ((keeper, 0), (admin, 1)):
        for tool, arguments in _READING_TOOLS.items():
            before = await count_audit_entries(admin)
            answer = await caller.post(f"{root}/{tool}", json={"arguments": arguments})
            assert SECRET in answer.text, tool
            assert await count_audit_entries(admin) - before == audited, tool


async def test_tools_that_are_not_audited_quote_no_memory(office: Office) -> None:
    admin, root = office.private.callers["tenant admin"], f"/v1/agents/{office.private.agent}"
    canary = "marimba"
    await office.private.callers["agent's owner"].post(
        f"{root}/memories", json={"content": f"{canary} in the attic"}
    )
    await office.private.callers["agent's owner"].get(f"{root}/memories?q={canary}")
    for tool in ALL_TOOLS:
        before = await count_audit_entries(admin)
        answer = await admin.post(f"{root}/tools/{tool.name}", json={"arguments": {}})
        if await count_audit_entries(admin) == before:
            assert canary not in answer.text, tool.name


async def count_audit_entries(client: httpx.AsyncClient) -> int:
    return len((await client.get("/v1/audit?limit=500")).json()["items"])
