"""Prompt of a run, requested again after everything it was made of has changed."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path as File
from typing import Any

import httpx
from tests.support.server_process import ServerProcess, serving

KATE = "/v1/agents/kate"
FACT = "Luis prefers Spanish"


async def ask(owner: httpx.AsyncClient, method: str, url: str, **body: Any) -> Any:
    answer = await owner.request(method, url, json=body or None)
    assert answer.is_success, (method, url, answer.text)
    return answer.json() if answer.content else None


async def write(owner: httpx.AsyncClient, scope_url: str, path: str, content: str) -> None:
    await ask(owner, "PUT", f"{scope_url}/files/{path}", content=content)


async def tool(owner: httpx.AsyncClient, name: str, **arguments: Any) -> Any:
    return (await ask(owner, "POST", f"{KATE}/tools/{name}", arguments=arguments))["structured"]


async def begin(owner: httpx.AsyncClient) -> dict[str, str]:
    """Create an agent of a template, with a main and a shared run."""
    await ask(owner, "POST", "/v1/templates", slug="sales", name="Sales")
    await write(owner, "/v1/templates/sales", "SOUL.md", "I am {{AGENT_NAME}} of {{TENANT_NAME}}.")
    await write(owner, "/v1/templates/sales", "GUARDRAILS.md", "No discounts.")
    human = {"name": "Luis", "email": "luis@acme.example", "role": "member"}
    luis = (await ask(owner, "POST", "/v1/people", **human))["id"]
    config = {"extraDocs": ["team/style.md"], "timezone": "America/Bogota"}
    new = {"slug": "kate", "name": "Kate", "templateId": "sales", "humanPairId": luis}
    await ask(owner, "POST", "/v1/agents", **new, config=config)
    today = datetime.now(UTC).date().isoformat()
    for path in ("MEMORY.md", "AGENTS.md", "team/style.md", f"notes/{today}.md"):
        await write(owner, KATE, path, f"## First\n\n- {path} as it was\n")
    runs = [
        await ask(owner, "POST", "/v1/runs", agentId="kate", scope=scope)
        for scope in ("main", "shared")
    ]
    return {run["runId"]: await prompt(owner, run["runId"]) for run in runs}


async def prompt(owner: httpx.AsyncClient, run: str) -> str:
    return str((await ask(owner, "GET", f"/v1/runs/{run}/prompt"))["text"])


async def dream(owner: httpx.AsyncClient) -> None:
    await tool(owner, "remember", content=FACT)
    for query in ("Luis", "Luis language", "which language, Luis"):
        await tool(owner, "recall", query=query)
    assert (await ask(owner, "POST", f"{KATE}/dreams", dryRun=False))["promotedCount"] == 1
    assert FACT in (await ask(owner, "GET", f"{KATE}/files/MEMORY.md"))["content"]
    assert FACT in (await ask(owner, "GET", f"{KATE}/prompt"))["text"]


async def change_everything(owner: httpx.AsyncClient) -> None:
    await ask(owner, "PUT", "/v1/policy", limits={"maxVersions": 1})
    await dream(owner)
    await write(owner, "/v1/templates/sales", "SOUL.md", "I am different.")
    for path in ("AGENTS.md", "MEMORY.md", "MEMORY.md"):
        await write(owner, KATE, path, f"another {path}")
    await ask(owner, "DELETE", f"{KATE}/files/team/style.md")
    await dream_again_and_forget(owner)
    await ask(owner, "PATCH", "/v1/tenants/me", name="Renamed")
    changed = {"name": "Mara", "humanPairId": None, "templateId": None}
    await ask(owner, "PATCH", KATE, **changed, config={"timezone": "Asia/Tokyo"})
    await ask(owner, "DELETE", "/v1/templates/sales")


async def dream_again_and_forget(owner: httpx.AsyncClient) -> None:
    for memory in (await ask(owner, "GET", f"{KATE}/memories"))["items"]:
        await ask(owner, "DELETE", f"{KATE}/memories/{memory['id']}")
    await ask(owner, "POST", f"{KATE}/dreams", dryRun=False)


async def same(owner: httpx.AsyncClient, before: dict[str, str]) -> None:
    for run, text in before.items():
        assert await prompt(owner, run) == text
        for following in ({"replayOf": run}, {"parentRunId": run, "shareSnapshot": True}):
            again = await ask(owner, "POST", "/v1/runs", **following)
            assert await prompt(owner, again["runId"]) == text


async def first_server(live: ServerProcess) -> dict[str, str]:
    async with live.http() as owner:
        before = await begin(owner)
        main, shared = before.values()
        assert "I am Kate of" in main
        assert "MEMORY.md as it was" in main
        assert "as it was" not in shared.replace("AGENTS.md as it was", "")
        await change_everything(owner)
        await same(owner, before)
        now = (await ask(owner, "GET", f"{KATE}/prompt"))["text"]
        assert now not in before.values()
        return before


async def second_server(live: ServerProcess, before: dict[str, str]) -> None:
    async with live.http() as owner:
        await same(owner, before)
        await ask(owner, "DELETE", KATE)
        for run in before:
            assert (await ask(owner, "GET", f"/v1/runs/{run}"))["status"] == "cancelled"
            gone = await owner.get(f"/v1/runs/{run}/prompt")
            assert (gone.status_code, "its agent was" in gone.text) == (404, True)


def test_prompt_of_a_run_is_unchanged_after_edits_a_rename_a_dream_and_deletion_of_its_template(
    tmp_path: File,
) -> None:
    with serving(tmp_path) as live:
        before = asyncio.run(first_server(live))
        live.kill()
    with serving(tmp_path) as live:
        asyncio.run(second_server(live, before))
