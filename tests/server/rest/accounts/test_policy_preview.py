"""A policy preview reports the changes that a put would make."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp
from tests.support.server_stores import STORES, open_app_over

from carrel.core.access import Permission

pytestmark = pytest.mark.anyio
PINS = {"classes": [{"pattern": "docs/**", "class": "pinned"}]}


@pytest.fixture(params=STORES)
async def server(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_app_over(request, tmp_path) as opened:
        yield opened


@pytest.fixture
async def owner(server: FullApp) -> httpx.AsyncClient:
    owner = await server.owner()
    for slug in ("sales", "help"):
        await owner.post("/v1/templates", json={"slug": slug, "name": slug})
    for slug, template in (("ann", "sales"), ("bea", "sales"), ("cem", "help")):
        new = {"slug": slug, "name": slug, "templateId": template}
        assert (await owner.post("/v1/agents", json=new)).status_code == 201
    for path in ("templates/sales/files/docs/a.md", "agents/cem/files/docs/b.md"):
        assert (await owner.put(f"/v1/{path}", json={"content": "x"})).status_code == 200
    return owner


async def preview(client: httpx.AsyncClient, policy: dict[str, Any]) -> dict[str, Any]:
    answer = await client.post("/v1/policy/preview", json=policy)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_a_preview_lists_changes_and_changes_nothing(owner: httpx.AsyncClient) -> None:
    before = (await owner.get("/v1/policy")).json()
    result = await preview(owner, PINS)
    both = {"from": "live", "to": "pinned"}
    assert result == {
        "changes": [
            {"path": "docs/a.md", **both, "agents": 2},
            {"path": "docs/b.md", **both, "agents": 1},
        ],
        "count": 2,
        "loosens": False,
        "placeholderFiles": [],
        "rules": [{"pattern": "docs/**", "class": "pinned", "files": 2}],
    }
    assert (await owner.get("/v1/policy")).json() == before
    assert (await owner.put("/v1/policy", json=PINS)).status_code == 200
    again = await preview(owner, PINS)
    assert again == {**result, "changes": [], "count": 0}


async def test_a_preview_counts_the_files_of_each_rule_that_decides_them(
    owner: httpx.AsyncClient,
) -> None:
    patterns = ("docs/a*", "docs/**", "*.md", "later/*")
    rules = [{"pattern": pattern, "class": "pinned"} for pattern in patterns]
    result = await preview(owner, {"classes": rules})
    assert [rule["files"] for rule in result["rules"]] == [1, 1, 4, 0]
    assert [rule["pattern"] for rule in result["rules"]] == list(patterns)


@pytest.mark.parametrize("pattern", ["policies/", "policies/**/", "a//b", "**/../x"])
async def test_a_rule_that_can_never_match_is_refused(
    owner: httpx.AsyncClient, pattern: str
) -> None:
    for policy in (
        {"classes": [{"pattern": pattern, "class": "pinned"}]},
        {"agentWritable": [pattern]},
    ):
        for answer in (
            await owner.put("/v1/policy", json=policy),
            await owner.post("/v1/policy/preview", json=policy),
        ):
            assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


@pytest.mark.parametrize(
    "patterns",
    [("docs/**", "docs/b.md"), ("GUARDRAILS.md",), ("*.md", "a?.md"), ("x", "x"), ("**", "a/*")],
)
async def test_a_rule_that_another_one_always_outranks_is_refused(
    owner: httpx.AsyncClient, patterns: tuple[str, ...]
) -> None:
    rules = [{"pattern": pattern, "class": "pinned"} for pattern in patterns]
    for send, url in ((owner.put, "/v1/policy"), (owner.post, "/v1/policy/preview")):
        answer = await send(url, json={"classes": rules})
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")
        assert f"{patterns[-1]!r} can never match" in answer.json()["message"]


@pytest.mark.parametrize(
    ("pattern", "agent_path", "template_path", "named"),
    [
        ("law/**", "law/x.md", "law/X.md", ["law/X.md", "law/x.md"]),
        ("**/x.md", "law/x.md", "Law/y.txt", ["Law/y.txt", "law/x.md"]),
        ("law/x.md", "Law/x.md", "z", ["Law/x.md"]),
    ],
)
async def test_a_policy_that_would_pin_one_of_two_variants_is_refused(
    owner: httpx.AsyncClient, pattern: str, agent_path: str, template_path: str, named: list[str]
) -> None:
    for url in (f"agents/ann/files/{agent_path}", f"templates/sales/files/{template_path}"):
        assert (await owner.put(f"/v1/{url}", json={"content": "x"})).status_code == 200
    policy = {"classes": [{"pattern": pattern, "class": "pinned"}]}
    refused = await owner.put("/v1/policy", json=policy)
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert refused.json()["details"] == {"collidingPaths": named}
    assert all(path in refused.json()["message"] for path in named)
    assert (await owner.get("/v1/policy")).json()["classes"] == []
    await owner.delete(f"/v1/agents/ann/files/{agent_path}")
    assert (await owner.put("/v1/policy", json=policy)).status_code == 200


async def test_a_decomposed_pattern_pins_the_composed_path(owner: httpx.AsyncClient) -> None:
    policy = {"classes": [{"pattern": "re\u0301gles/*", "class": "pinned"}]}
    saved = (await owner.put("/v1/policy", json=policy)).json()
    assert saved["classes"][0]["pattern"] == "r\u00e9gles/*"
    written = await owner.put("/v1/templates/sales/files/r\u00e9gles/a.md", json={"content": "x"})
    assert written.json()["class"] == "pinned"


async def test_pinning_a_file_with_placeholders_names_it_and_needs_a_confirmation(
    owner: httpx.AsyncClient,
) -> None:
    for url, text in (
        ("templates/sales/files/docs/a.md", "{{AGENT_NAME}} sells"),
        ("agents/cem/files/docs/b.md", "{{TENANT_NAME}}"),
        ("templates/help/files/docs/c.md", "{{UNKNOWN}} token"),
    ):
        await owner.put(f"/v1/{url}", json={"content": text})
    named = ["docs/a.md", "docs/b.md"]
    assert (await preview(owner, PINS))["placeholderFiles"] == named
    refused = await owner.put("/v1/policy", json=PINS)
    assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
    assert refused.json()["details"] == {"placeholderFiles": named}
    assert "docs/a.md" in refused.json()["message"]
    assert (await owner.get("/v1/policy")).json()["classes"] == []
    sold = (await owner.get("/v1/agents/ann/files/docs/a.md")).json()["content"]
    assert sold == "ann sells"
    saved = await owner.put("/v1/policy", json={**PINS, "confirm": True})
    assert (saved.status_code, saved.json()["placeholderFiles"]) == (200, named)
    stored = (await owner.get("/v1/policy")).json()
    assert not {"confirm", "placeholderFiles"} & stored.keys()
    assert (await owner.put("/v1/policy", json=stored)).json() == stored


async def test_a_policy_that_loosens_needs_a_reason(owner: httpx.AsyncClient) -> None:
    assert (await owner.put("/v1/policy", json=PINS)).status_code == 200
    result = await preview(owner, {})
    assert result["loosens"]
    assert {row["to"] for row in result["changes"]} == {"live"}
    assert (await owner.put("/v1/policy", json={})).status_code == 400
    await owner.delete("/v1/templates/sales/files/docs/a.md")
    for slug in ("ann", "bea", "cem"):
        assert (await preview(owner, {}))["loosens"]
        assert (await owner.put("/v1/policy", json={})).status_code == 400
        assert (await owner.delete(f"/v1/agents/{slug}")).status_code == 204
    assert not (await preview(owner, {}))["loosens"]
    assert (await owner.put("/v1/policy", json={})).status_code == 200


async def test_a_preview_needs_permission_to_change_the_policy(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    reader = await server.key(owner, Permission.TENANT_READ)
    assert (await reader.post("/v1/policy/preview", json=PINS)).status_code == 403
    for body in (b"", b"[]", b'{"classes": [{"pattern": "../x", "class": "live"}]}'):
        headers = {"Content-Type": "application/json"}
        answer = await owner.post("/v1/policy/preview", content=body, headers=headers)
        assert answer.status_code == 400, answer.text
    other_owner = await server.owner("globex")
    assert (await preview(other_owner, PINS))["changes"] == []
