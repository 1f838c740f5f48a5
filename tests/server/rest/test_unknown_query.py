"""Unknown query parameters: refused, except on conventions that are not Carrel's own."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path as File

import pytest
from tests.support.full_app import FullApp, open_full_app

from carrel.settings import Settings
from carrel.wiring.server_app import endpoints

pytestmark = pytest.mark.anyio

FOREIGN = re.compile(
    r"(GET|PUT|DELETE|POST) /v1/host/workspace/(files(/\{path\.\.\.\})?|events)"
    r"|POST /v1/runs|GET /v1/runs/\{id\}|POST /v1/runs/\{id\}/cancel"
    r"|GET /v1/runs/\{id\}/events(/poll)?|GET /v1/workflows/\{id\}"
    r"|GET /\.well-known/(openwop|agent-skills/.*)"
    r"|POST /api/workspaces/files|\w+ /accounts/me/(sandboxes|workspaces)(/\{id\})?"
    r"|\w+ /git/.*|\w+ /v1/memory_stores(/.*)?"
)
"""openwop, Agent Skills Discovery, workspace overlays, sandbox accounts, git and memory stores."""
NOT_API = re.compile(
    r"GET /(schemas/\{name\}|asyncapi\.json|graphql(/schema)?|icon\.svg|v1/session/.*|ui/.*|)"
)


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


def test_only_foreign_conventions_ignore_unknown_query_parameters() -> None:
    ignoring = {e.name for e in endpoints(Settings()) if e.allow_unknown_query}
    api = {name for name in ignoring if not NOT_API.fullmatch(name)}
    assert {name for name in api if not FOREIGN.fullmatch(name)} == set()
    refusing = {e.name for e in endpoints(Settings()) if not e.allow_unknown_query}
    assert {name for name in refusing if FOREIGN.fullmatch(name)} == set()


async def test_a_foreign_client_s_query_is_ignored_and_ours_is_refused(server: FullApp) -> None:
    owner = await server.owner()
    query = {"beta": "true"}
    listed = await owner.get("/v1/host/workspace/files", params=query)
    body = {"workflowId": "wf"}
    started = await owner.post("/v1/runs", params=query, json=body)
    boxes = await owner.get("/accounts/me/sandboxes", params=query)
    assert [answer.status_code for answer in (listed, started, boxes)] == [200, 201, 200]
    refused = await owner.get("/v1/agents", params=query)
    assert (refused.status_code, refused.json()["error"]) == (400, "validation_error")
    assert "beta" in refused.json()["message"]
