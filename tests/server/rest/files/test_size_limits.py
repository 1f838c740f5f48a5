"""Content above a limit is refused as such, whatever carries it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FILES, FullApp, create_tool_config, open_full_app

pytestmark = pytest.mark.anyio
AGENT = "/v1/agents/kate"
TEXT = "x" * (30 * 2**20)
SECRET = "12345678"


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    owner = await server.owner()
    new = {"slug": "kate", "name": "Kate", "config": await create_tool_config(owner)}
    assert (await owner.post("/v1/agents", json=new)).status_code == 201
    return owner


def requests(text: str) -> dict[str, tuple[str, str, Any]]:
    """Method, path and body of each request that writes the text."""
    overlay = {"action": "put", "agentId": "kate", "path": "a.md", "content": text}
    document = {"query": "query Q($t: String) { __typename }", "variables": {"t": text}}
    return {
        "file": ("PUT", f"{FILES}/a.md", {"content": text}),
        "agent": ("PUT", f"{AGENT}/files/a.md", {"content": text}),
        "overlay": ("POST", "/api/workspaces/files", overlay),
        "graphql": ("POST", "/graphql", document),
        "item": ("PUT", f"{AGENT}/items/a", {"value": text}),
        "tool": (
            "POST",
            f"{AGENT}/tools/write",
            {"arguments": {"file_path": "a.md", "content": text}},
        ),
    }


@pytest.mark.parametrize("name", requests(""))
async def test_30_mib_of_content_are_too_large_for_a_workspace(
    ada: httpx.AsyncClient, name: str
) -> None:
    method, path, body = requests(TEXT)[name]
    refused = await ada.request(method, path, json=body)
    assert refused.status_code == 413, refused.text
    assert "workspace_too_large" in refused.text or name == "overlay"


@pytest.mark.parametrize("name", ["file", "agent", "overlay"])
async def test_redaction_never_grows_a_file_past_its_limit(
    ada: httpx.AsyncClient, name: str
) -> None:
    await ada.put("/v1/secrets/a-rather-long-name", json={"value": SECRET})
    limit = {"limits": {"maxFileBytes": 100}}
    assert (await ada.put("/v1/policy", json=limit)).status_code == 200
    method, path, body = requests(SECRET * 12)[name]
    refused = await ada.request(method, path, json=body)
    assert refused.status_code == 413, refused.text
    method, path, body = requests("x" * 60 + SECRET)[name]
    stored = await ada.request(method, path, json=body)
    assert stored.status_code == 200, stored.text
