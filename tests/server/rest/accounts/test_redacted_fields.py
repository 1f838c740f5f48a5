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


async def create_targets(owner: httpx.AsyncClient) -> dict[str, str]:
    """Records to change, by their place in a URL."""
    webhook = {"url": "https://a.example/hook", "events": ["*"]}
    person = {"name": "Luis", "email": "luis@x.example", "role": "member"}
    await owner.put("/v1/agents/kate/items/key", json={"value": "one"})
    return {
        "webhook": (await owner.post("/v1/webhooks", json=webhook)).json()["id"],
        "person": (await owner.post("/v1/people", json=person)).json()["id"],
        "workspace": (await owner.post("/accounts/me/workspaces", json={"name": "w"})).json()[
            "workspaceId"
        ],
    }


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
    "person change": (
        "PATCH",
        "/v1/people/{person}",
        {"name": TEXT, "title": TEXT, "pronouns": TEXT},
        "/v1/people",
    ),
    "workspace change": (
        "PATCH",
        "/accounts/me/workspaces/{workspace}",
        {"name": TEXT, "description": TEXT},
        "/accounts/me/workspaces",
    ),
    "deleted file": (
        "DELETE",
        "/v1/agents/kate/files/a.md",
        {},
        "/v1/agents/kate/files/a.md/history",
    ),
    "deleted item": ("DELETE", "/v1/agents/kate/items/key", {}, "/v1/audit"),
    "tool call": (
        "POST",
        "/v1/agents/kate/tools/remember",
        {"arguments": {"content": TEXT}, "callId": TEXT.replace(" ", "-")},
        "/v1/agents/kate/memories",
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
    url = url.format(**await create_targets(owner))
    answer = await owner.request(method, url, json=body, headers={"Carrel-Reason": TEXT})
    assert answer.status_code < 300, answer.text
    texts = [answer.text, (await owner.get(listed)).text, (await owner.get("/v1/audit")).text]
    assert VALUE not in "".join(texts)
    if sent not in ("policy", "file", "deleted item"):
        assert json.dumps(MARKER)[1:-1] in texts[0] + texts[1]
    assert not is_stored(tmp_path)


async def test_a_slug_with_a_secret_is_refused_without_it(owner: httpx.AsyncClient) -> None:
    for url in ("/v1/agents", "/v1/templates"):
        refused = await owner.post(url, json={"slug": VALUE, "name": "x"})
        assert refused.status_code == 400, refused.text
        assert VALUE not in refused.text


REFUSED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "path": ("PUT", f"/v1/agents/kate/files/{VALUE}.md", {"content": "b"}),
    "media type": ("PUT", "/v1/agents/kate/files/b", {"content": "b", "contentType": f"a/{VALUE}"}),
    "key of an item": ("PUT", f"/v1/agents/kate/items/{VALUE}", {"value": "b"}),
    "id of a secret": ("PUT", f"/v1/secrets/{VALUE}", {"value": "another-value"}),
    "URL": ("POST", "/v1/webhooks", {"url": f"https://a.example/{VALUE}", "events": ["*"]}),
    "changed URL": ("PATCH", "/v1/webhooks/{webhook}", {"url": f"https://a.example/{VALUE}"}),
    "pattern": ("PUT", "/v1/policy", {"classes": [{"pattern": f"{VALUE}.md", "class": "pinned"}]}),
    "pattern of agents": ("PUT", "/v1/policy", {"agentWritable": [f"{VALUE}/**"]}),
}


@pytest.mark.parametrize("sent", REFUSED)
async def test_a_secret_in_what_names_something_is_refused(
    owner: httpx.AsyncClient, sent: str, tmp_path: File
) -> None:
    method, url, body = REFUSED[sent]
    url = url.format(**await create_targets(owner))
    refused = await owner.request(method, url, json=body)
    assert (refused.status_code, "contains a secret" in refused.text) == (400, True), refused.text
    assert VALUE not in refused.text
    assert not is_stored(tmp_path)


async def test_environment_variables_of_a_sandbox_keep_a_secret_sealed(
    owner: httpx.AsyncClient, tmp_path: File
) -> None:
    body = {"name": "box", "config": {"envVars": {"PASS": VALUE}}}
    created = await owner.post("/accounts/me/sandboxes", json=body)
    assert created.status_code < 300, created.text
    assert MARKER not in created.text
    assert not is_stored(tmp_path)
