"""Secrets of the vault are redacted in every free text that callers send."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import open_full_app

pytestmark = pytest.mark.anyio

VALUE = "hunter2-hunter2"
MARKER = "[REDACTED:pass]"
TEXT = f"uses {VALUE}"
CLASSES = [{"pattern": "NOTES.md", "class": "pinned"}]


@pytest.fixture
async def owner(tmp_path: File) -> AsyncIterator[httpx.AsyncClient]:
    async with open_full_app(tmp_path) as server:
        client = await server.owner()
        await client.post("/v1/agents", json={"slug": "kate", "name": "Kate"})
        await client.post("/v1/templates", json={"slug": "plain", "name": "Plain"})
        await client.put("/v1/agents/kate/files/a.md", json={"content": "one"})
        put = await client.put("/v1/secrets/pass", json={"value": VALUE})
        assert put.status_code < 300, put.text
        yield client


def is_stored(directory: File) -> bool:
    """Whether any file of the store has the secret in plain text."""
    files = (file for file in directory.rglob("*") if file.is_file())
    return any(VALUE.encode() in file.read_bytes() for file in files)


CONFIG = {"model": TEXT, "unknown": {VALUE: [TEXT]}}
SENT: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "agent": ("POST", "/v1/agents", {"slug": "luis", "name": TEXT, "config": CONFIG}, "/v1/agents"),
    "agent change": ("PATCH", "/v1/agents/kate", {"name": TEXT, "config": CONFIG}, "/v1/agents"),
    "template": ("POST", "/v1/templates", {"slug": "other", "name": TEXT}, "/v1/templates"),
    "template change": ("PATCH", "/v1/templates/plain", {"name": TEXT}, "/v1/templates"),
    "person": (
        "POST",
        "/v1/people",
        {"name": TEXT, "email": "b@c.de", "role": "member", "title": TEXT, "pronouns": TEXT},
        "/v1/people",
    ),
    "key": ("POST", "/v1/keys", {"name": TEXT, "kind": "service"}, "/v1/keys"),
    "tenant": ("PATCH", "/v1/tenants/me", {"name": TEXT}, "/v1/tenants/me"),
    "sandbox": (
        "POST",
        "/accounts/me/sandboxes",
        {"name": TEXT, "description": TEXT, "config": {"options": {"image": TEXT}}},
        "/accounts/me/sandboxes",
    ),
    "workspace": (
        "POST",
        "/accounts/me/workspaces",
        {"name": TEXT, "description": TEXT},
        "/accounts/me/workspaces",
    ),
    "run": (
        "POST",
        "/v1/runs",
        {"agentId": "kate", "workflowId": TEXT, "metadata": {"note": TEXT}},
        "/v1/runs",
    ),
    "policy": ("PUT", "/v1/policy", {"classes": CLASSES}, "/v1/audit"),
    "file": ("PUT", "/v1/agents/kate/files/b.md", {"content": "b"}, "/v1/audit"),
    "session": (
        "POST",
        "/v1/agents/kate/sessions",
        {"sourcePlugin": TEXT},
        "/v1/agents/kate/sessions",
    ),
    "memory": (
        "POST",
        "/v1/agents/kate/memories",
        {"content": TEXT, "tags": [TEXT]},
        "/v1/agents/kate/memories",
    ),
}


@pytest.mark.parametrize("sent", SENT)
async def test_a_secret_in_free_text_is_redacted(
    owner: httpx.AsyncClient, sent: str, tmp_path: File
) -> None:
    method, url, body, listed = SENT[sent]
    answer = await owner.request(method, url, json=body, headers={"Carrel-Reason": TEXT})
    assert answer.status_code < 300, answer.text
    texts = [answer.text, (await owner.get(listed)).text, (await owner.get("/v1/audit")).text]
    assert VALUE not in "".join(texts)
    if sent not in ("policy", "file"):
        assert json.dumps(MARKER)[1:-1] in texts[0] + texts[1]
    assert not is_stored(tmp_path)


async def test_a_slug_with_a_secret_is_refused_without_it(owner: httpx.AsyncClient) -> None:
    for url in ("/v1/agents", "/v1/templates"):
        refused = await owner.post(url, json={"slug": VALUE, "name": "x"})
        assert refused.status_code == 400, refused.text
        assert VALUE not in refused.text


async def test_environment_variables_of_a_sandbox_keep_a_secret_sealed(
    owner: httpx.AsyncClient, tmp_path: File
) -> None:
    body = {"name": "box", "config": {"envVars": {"PASS": VALUE}}}
    created = await owner.post("/accounts/me/sandboxes", json=body)
    assert created.status_code < 300, created.text
    assert MARKER not in created.text
    assert not is_stored(tmp_path)
