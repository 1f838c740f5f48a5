"""Raw MCP over HTTP: access, refusals and hostile input."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.mcp_clients import MODERN, OWNER, PLATFORM, McpServer
from tests.support.server_process import PLAIN

from carrel.server.mcp.http import _replay_body

pytestmark = pytest.mark.anyio
HEAD = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def rpc_request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def modern(method: str, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
    body = rpc_request(method, _meta=META, **params)
    head = {**HEAD, "MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    named = params.get("name") or params.get("uri")
    return body, {**head, "Mcp-Name": named} if isinstance(named, str) else head


async def test_without_a_valid_token_every_request_is_401(server: McpServer) -> None:
    slug = await server.agent()
    for token in (None, "nonsense"):
        async with server.as_(token) as wire:
            for address in (slug, "missing"):
                for method in ("POST", "GET", "DELETE"):
                    answer = await wire.request(method, f"/mcp/agents/{address}", content=b"{}")
                    assert answer.status_code == 401
                    assert answer.headers["www-authenticate"] == "Bearer"
                    assert answer.json()["error"] == "unauthenticated"


async def test_an_agent_of_another_tenant_or_key_is_404(server: McpServer) -> None:
    slug, other = await server.agent(), await server.agent()
    for token in (await server.foreign_token(), await server.own_key(other)):
        async with server.as_(token) as wire:
            for body, head in (modern("tools/list"), (rpc_request("tools/list"), HEAD)):
                answer = await wire.post(f"/mcp/agents/{slug}", json=body, headers=head)
                assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


async def test_the_platform_and_keys_without_read_are_403(server: McpServer) -> None:
    slug = await server.agent()
    writer = await server.key(kind="service", scopes=["workspace:write"])
    for token in (PLATFORM, writer):
        async with server.as_(token) as wire:
            answer = await wire.post(
                f"/mcp/agents/{slug}", json=rpc_request("tools/list"), headers=HEAD
            )
            assert answer.status_code == 403


async def test_x_api_key_with_its_tenant_id_is_accepted(server: McpServer) -> None:
    slug = await server.agent()
    key = await server.key(kind="service")
    async with server.as_() as owner, server.as_(None) as wire:
        tenant = (await owner.get("/v1/tenants/me")).json()["id"]
        service_headers = {**HEAD, "x-api-key": key, "x-tenant-id": tenant}
        answer = await wire.post(
            f"/mcp/agents/{slug}", json=rpc_request("tools/list"), headers=service_headers
        )
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["result"]["tools"]


async def test_only_post_is_allowed_and_responses_are_json(server: McpServer) -> None:
    slug = await server.agent()
    async with server.as_() as wire:
        for method in ("GET", "DELETE", "PUT"):
            answer = await wire.request(method, f"/mcp/agents/{slug}", headers=HEAD)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        body, head = modern("tools/call", name="who_am_i", arguments={})
        answer = await wire.post(f"/mcp/agents/{slug}", json=body, headers=head)
        assert answer.headers["content-type"] == "application/json"
        assert not answer.json()["result"]["isError"]
        assert "mcp-session-id" not in answer.headers
        for address in ("/mcp", "/mcp/", "/mcp/agents", "/mcp/agents/", f"/mcp/agents/{slug}/x"):
            answer = await wire.post(address, json=rpc_request("tools/list"), headers=HEAD)
            assert answer.status_code == 404, address


@pytest.mark.parametrize(
    "query", ["scope=a&scope=b", "colour=red", "session=", "run=" + "x" * 200, "run=%FF", "run=x"]
)
async def test_an_invalid_query_is_refused(server: McpServer, query: str) -> None:
    slug = await server.agent()
    async with server.as_() as wire:
        answer = await wire.post(
            f"/mcp/agents/{slug}?{query}", json=rpc_request("ping"), headers=HEAD
        )
        assert answer.status_code in {400, 404}


async def test_a_body_that_is_too_large_is_refused(server: McpServer) -> None:
    slug = await server.agent()
    async with server.as_() as wire:
        answer = await wire.post(f"/mcp/agents/{slug}", content=b" " * 9_000_000, headers=HEAD)
        assert (answer.status_code, answer.json()["error"]) == (413, "workspace_too_large")


HOSTILE = [
    b"",
    b"\xff\xfe",
    b"{",
    b"null",
    b"[]",
    b"1",
    b"[" * 100_000,
    b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":7}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who_am_i","arguments":[]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800","arguments":{}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"\\u0000"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"cursor":"\\u00e9"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"system","arguments":[]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}',
    b'{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":7}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}',
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
]
VERSIONS = [None, "2025-11-25", "2024-11-05", MODERN, "1999-01-01", "x" * 5000]


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: str(version)[:12])
async def test_hostile_input_is_never_a_server_error(
    server: McpServer, version: str | None
) -> None:
    slug = await server.agent()
    head = {**HEAD} if version is None else {**HEAD, "MCP-Protocol-Version": version}
    async with server.as_() as wire:
        for body in HOSTILE:
            answer = await wire.post(f"/mcp/agents/{slug}", content=body, headers=head)
            assert answer.status_code < 500, (body[:80], answer.text)
            assert "correlationId" not in answer.text, (body[:80], answer.text)
        assert (await wire.get("/healthz")).status_code == 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
METHODS = st.sampled_from(
    [
        *("tools/list", "tools/call", "resources/list", "resources/read", "prompts/get", "ping"),
        *("resources/templates/list", "prompts/list", "server/discover", "completion/complete"),
    ]
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["who_am_i", "workspace_read", "workspace_list", "system"]) | JSON,
        "arguments": JSON,
        "uri": st.text() | JSON,
        "cursor": st.text() | JSON,
        "requestState": st.text() | JSON,
        "inputResponses": JSON,
        "_meta": st.dictionaries(
            st.sampled_from(["carrel/scope", "carrel/session", "carrel/run", "carrel/call"]), JSON
        ),
    },
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(METHODS, PARAMS, st.booleans())
def test_no_message_is_a_server_error(
    server: McpServer, method: str, params: dict[str, Any], new: bool
) -> None:
    head = dict(HEAD)
    if new:
        params = {**params, "_meta": {**params.get("_meta", {}), **META}}
        named = params.get("uri" if method == "resources/read" else "name")
        head |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if isinstance(named, str) and named.isascii() and named.isprintable() and named.strip():
            head["Mcp-Name"] = named.strip()
    url = f"{server.url}/mcp/agents/{_agent(server)}"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    head["Authorization"] = f"Bearer {OWNER}"
    answer = httpx.post(url, content=body.encode(), headers=head, timeout=60, verify=PLAIN)
    assert answer.status_code < 500, answer.text
    assert "correlationId" not in answer.text, answer.text


_AGENTS: dict[str, str] = {}


def _agent(server: McpServer) -> str:
    """The slug of an agent that is created once per server."""
    if server.url not in _AGENTS:
        head = {"Authorization": f"Bearer {OWNER}"}
        body = {"slug": "fuzzed", "name": "Fuzzed"}
        created = httpx.post(f"{server.url}/v1/agents", json=body, headers=head, verify=PLAIN)
        assert created.status_code == 201, created.text
        _AGENTS[server.url] = "fuzzed"
    return _AGENTS[server.url]


@pytest.mark.parametrize(
    ("body", "ends"),
    [
        (b'{"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}', True),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}', False),
        (b"no message", False),
    ],
)
async def test_a_disconnect_ends_a_subscription_but_not_a_call(body: bytes, ends: bool) -> None:
    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    receive = _replay_body(body, gone)
    assert (await receive())["body"] == body
    waiting = asyncio.ensure_future(receive())
    await asyncio.wait({waiting}, timeout=0.05)
    assert waiting.done() == ends
    waiting.cancel()
