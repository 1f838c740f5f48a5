"""A key that may write but not read receives nothing that is stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path as File
from typing import Any

import pytest
from tests.server.private_agent import SECRET, Office, Row, create_private_agent, send
from tests.server.test_private_agents import PRIVATE_ROWS
from tests.support.full_app import FullApp, open_full_app

from carrel.core.access import Permission

pytestmark = pytest.mark.anyio
_RESTORE = """mutation ($id: ID!) {
  restoreFile(place: {agentId: $id}, path: "MEMORY.md", version: 1) { file { content } }
}"""
_RETURNING: dict[str, Any] = {
    "POST /v1/agents/{id}/files/{path...}/restore": Row({"version": 1}),
    "POST /v1/agents/{id}/sessions/{sid}/pop": Row(),
    "POST /v1/agents/{id}/dreams": Row({"dryRun": True}),
    "POST /v1/agents/{id}/files/{path...}/render": Row({"content": "{{HUMAN_EMAIL}}"}),
    "POST /v1/agents/{id}/copy": Row({"from": "MEMORY.md", "to": "copy.md"}),
}
"""Requests with write permission whose response has something that was stored before."""


async def open_office(app: FullApp) -> Office:
    """A private agent whose `service` may only write."""
    private = await create_private_agent(app)
    owner = private.callers["tenant owner"]
    writer = await app.key(owner, Permission.WORKSPACE_WRITE, Permission.RUNS_WRITE)
    return Office(app, replace(private, callers={**private.callers, "service": writer}))


async def test_no_response_to_a_write_has_what_the_key_may_not_read(tmp_path: File) -> None:
    async with open_full_app(tmp_path) as app:
        office = await open_office(app)
        for name, row in {**PRIVATE_ROWS, **_RETURNING}.items():
            if not name.startswith("DELETE"):
                response = await send(office, "service", name, row)
                assert SECRET not in response.text, name
        for name, row in _RETURNING.items():
            response = await send(office, "service", name, row)
            assert response.status_code == 403, name
            assert response.json()["details"] == {"scope": "workspace:read"}


async def test_a_file_is_restored_over_graphql_only_by_readers(tmp_path: File) -> None:
    async with open_full_app(tmp_path) as app:
        office = await open_office(app)
        body = {"query": _RESTORE, "variables": {"id": office.private.agent}}
        refused = await office.private.callers["service"].post("/graphql", json=body)
        assert "workspace:read" in refused.json()["errors"][0]["message"]
        restored = await office.private.callers["tenant owner"].post("/graphql", json=body)
        assert SECRET in restored.text
