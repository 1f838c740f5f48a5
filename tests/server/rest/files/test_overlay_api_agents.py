"""The overlay endpoint for agents: identity fields, file map and agent keys."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from tests.support.rest_client import RestServer
from tests.support.rest_tenant import (
    IDENTITY,
    URL,
    create_overlay_agent,
    files_by_path,
    post_action,
    refused_action,
    run_action,
)

from carrel.actions.accounts import credentials
from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.core.agents.file_map import AGENTS_PATH

pytestmark = pytest.mark.anyio


@pytest.fixture
async def marco(owner: httpx.AsyncClient) -> str:
    return await create_overlay_agent(owner)


async def read_raw(client: httpx.AsyncClient, agent: str, path: str) -> Any:
    return (await run_action(client, "get", agentId=agent, path=path, raw=True))["content"]


async def update_field(
    client: httpx.AsyncClient, agent: str, field: str, value: str
) -> tuple[int, Any]:
    answer = await post_action(
        client, "update-identity-field", agentId=agent, field=field, value=value
    )
    return answer.status_code, answer.json()


async def test_updating_a_field_of_an_inherited_file_overrides_only_that_field(
    owner: httpx.AsyncClient, marco: str
) -> None:
    assert await update_field(owner, marco, "vibe", "brisk") == (200, {"ok": True})
    assert await read_raw(owner, marco, "IDENTITY.md") == IDENTITY.replace("calm", "brisk")
    assert (await files_by_path(owner, agentId=marco))["IDENTITY.md"]["overridden"] is True
    assert await update_field(owner, marco, "emoji", "🧙‍♂️") == (200, {"ok": True})
    text = IDENTITY.replace("calm", "brisk").replace(":** x", ":** 🧙‍♂️")
    assert await read_raw(owner, marco, "IDENTITY.md") == text
    rendered = await run_action(owner, "get", agentId=marco, path="IDENTITY.md")
    assert "- **Name:** Marco\n" in rendered["content"]


async def test_updating_a_field_to_its_current_value_creates_no_override(
    owner: httpx.AsyncClient, marco: str
) -> None:
    assert (await update_field(owner, marco, "vibe", " calm\n"))[0] == 200
    assert (await files_by_path(owner, agentId=marco))["IDENTITY.md"]["overridden"] is False


@pytest.mark.parametrize(
    "value",
    ["{{HUMAN_NAME}}", "a\n- **Name:** Eve", "a\u2028b", "<!-- x", "**b** [l](u)", "\ud83d"],
)
async def test_a_value_cannot_inject_lines_or_placeholders(
    owner: httpx.AsyncClient, marco: str, value: str
) -> None:
    body = {"action": "update-identity-field", "agentId": marco, "field": "vibe", "value": value}
    answer = await owner.post(URL, content=json.dumps(body).encode())
    assert answer.status_code in (200, 400)
    text = await read_raw(owner, marco, "IDENTITY.md")
    assert len(text.splitlines()) == len(IDENTITY.splitlines())
    assert text.count("{{") == 1
    assert text.splitlines()[2] == "- **Name:** {{AGENT_NAME}}"


async def test_other_fields_and_other_targets_are_400(owner: httpx.AsyncClient, marco: str) -> None:
    for name in ("name", "Name", "", "__proto__", "constructor", "vibe ", "Vibe", ".*"):
        assert (await update_field(owner, marco, name, "x"))[0] == 400
    body = {"field": "vibe", "value": "x"}
    targets: list[dict[str, Any]] = [{"templateId": "sales"}, {"defaults": True}]
    for target in targets:
        assert (await refused_action(owner, "update-identity-field", **target, **body))[0] == 400
        assert (await refused_action(owner, "regenerate-map", **target))[0] == 400


async def test_a_field_without_a_line_in_the_file_is_422(
    owner: httpx.AsyncClient, marco: str
) -> None:
    status, body = await update_field(owner, marco, "creature", "fox")
    assert (status, body["ok"], "creature" in body["error"]) == (422, False, True)
    fenced = "```\n- **Vibe:** calm\n```\n"
    await run_action(owner, "put", agentId=marco, path="IDENTITY.md", content=fenced)
    assert (await update_field(owner, marco, "vibe", "x"))[0] == 422
    assert await read_raw(owner, marco, "IDENTITY.md") == fenced


async def test_concurrent_updates_of_different_fields_all_land(
    owner: httpx.AsyncClient, marco: str
) -> None:
    fields = {"vibe": "brisk", "emoji": "🦊"}
    answers = await asyncio.gather(*(update_field(owner, marco, *item) for item in fields.items()))
    assert [status for status, _ in answers] == [200, 200]
    text = await read_raw(owner, marco, "IDENTITY.md")
    assert text == IDENTITY.replace("calm", "brisk").replace(":** x", ":** 🦊")


async def test_an_agents_key_updates_its_vibe_but_not_its_name(
    server: RestServer, owner: httpx.AsyncClient, marco: str
) -> None:
    await owner.post("/v1/agents", json={"slug": "polo", "name": "Polo", "templateId": "sales"})
    own = await server.key(owner, kind="agent", agentId=marco)
    assert (await update_field(own, marco, "vibe", "brisk"))[0] == 200
    assert (await update_field(own, "marco", "name", "Eve"))[0] == 400
    assert (await update_field(own, "polo", "vibe", "evil"))[0] == 404
    await run_action(own, "put", agentId=marco, path="memory/a.md", content="x")
    for path in ("SOUL.md", "GUARDRAILS.md", "USER.md", "AGENTS.md"):
        body = {"path": path, "content": "x", "acceptTemplateUpdate": True}
        assert (await refused_action(own, "put", agentId=marco, **body))[0] == 403
        assert (await refused_action(own, "delete", agentId=marco, path=path))[0] == 403
    assert (await refused_action(own, "regenerate-map", agentId=marco))[0] == 403
    await run_action(owner, "regenerate-map", agentId=marco)
    assert (await refused_action(own, "regenerate-map", agentId=marco))[0] == 403
    evil = IDENTITY.replace("{{AGENT_NAME}}", "Eve")
    assert (await refused_action(own, "put", agentId=marco, path="IDENTITY.md", content=evil))[
        0
    ] == 403
    for action in ("list", "get", "put", "delete", "regenerate-map"):
        for target in ({"agentId": "polo"}, {"templateId": "sales"}, {"defaults": True}):
            body = {"path": "memory/a.md", "content": "x"}
            assert (await post_action(own, action, **target, **body)).status_code == 404


async def test_a_scoped_key_is_limited_to_its_permissions(
    server: RestServer, owner: httpx.AsyncClient, marco: str
) -> None:
    reader = await server.key(owner, scopes=["workspace:read"])
    writer = await server.key(owner, scopes=["workspace:write"])
    neither = await server.key(owner, scopes=["runs:read"])
    plain = await server.key(owner)
    mine = {"agentId": marco, "path": "a.md"}
    await run_action(writer, "put", content="x", **mine)
    assert (await run_action(reader, "get", **mine))["content"] == "x"
    assert (await refused_action(writer, "get", **mine))[0] == 403
    assert (await refused_action(reader, "put", content="y", **mine))[0] == 403
    for action in ("get", "list", "put", "nonsense"):
        for name in (marco, "missing"):
            assert (await refused_action(neither, action, agentId=name, path="a.md"))[0] == 403
    await run_action(plain, "put", content="y", **mine)
    await run_action(plain, "get", templateId="sales", path="SOUL.md")
    for target in ({"templateId": "sales"}, {"defaults": True}):
        assert (
            await post_action(plain, "put", path="a.md", content="x", **target)
        ).status_code == 403


MAP = ("<!-- carrel:map -->", "<!-- /carrel:map -->")


async def test_the_map_is_written_in_its_block_and_a_second_run_writes_nothing(
    owner: httpx.AsyncClient, marco: str
) -> None:
    await run_action(
        owner, "put", agentId=marco, path="memory/lessons.md", content="# What I learnt\n"
    )
    await run_action(owner, "regenerate-map", agentId=marco)
    text = await read_raw(owner, marco, "AGENTS.md")
    assert (text.count(MAP[0]), text.count(MAP[1])) == (1, 1)
    lines = text.splitlines()
    assert "- memory/" in lines
    assert "lessons.md" not in text, "AGENTS.md is part of shared prompts"
    assert "- SOUL.md: agent name is brisk" in lines
    assert any(line.startswith("- AGENTS.md") for line in lines)
    history = f"/v1/agents/{marco}/files/AGENTS.md/history"
    before = (await owner.get(history)).json()
    for _ in range(2):
        await run_action(owner, "regenerate-map", agentId=marco)
    assert (await owner.get(history)).json() == before
    for path in ("notes.md", "SOUL.md"):
        await run_action(owner, "put", agentId=marco, path=path, content="plan for Q4. More.")
    await run_action(owner, "regenerate-map", agentId=marco)
    lines = (await read_raw(owner, marco, "AGENTS.md")).splitlines()
    assert "- SOUL.md: plan for Q4." in lines
    assert "- notes.md" in lines, "a shared session may not see it, so the map has only its name"


async def test_a_secret_added_later_is_redacted_and_does_not_rewrite_the_map(
    owner: httpx.AsyncClient, marco: str
) -> None:
    await run_action(owner, "put", agentId=marco, path="SOUL.md", content="# swordfish-of-the-team")
    secret = {"value": "swordfish-of-the-team"}
    assert (await owner.put("/v1/secrets/team", json=secret)).status_code in (200, 201, 204)
    await run_action(owner, "regenerate-map", agentId=marco)
    first = await owner.get(f"/v1/agents/{marco}/files/AGENTS.md?raw=true")
    assert "swordfish" not in first.text
    await run_action(owner, "regenerate-map", agentId=marco)
    again = await owner.get(f"/v1/agents/{marco}/files/AGENTS.md?raw=true")
    assert again.headers["etag"] == first.headers["etag"]


async def test_text_around_the_map_stays_and_an_inherited_file_is_overridden(
    owner: httpx.AsyncClient, marco: str
) -> None:
    theirs = "# Ours\r\n\r\nHello {{AGENT_NAME}}."
    await run_action(owner, "put", templateId="sales", path="AGENTS.md", content=theirs)
    await run_action(owner, "regenerate-map", agentId=marco)
    first = await read_raw(owner, marco, "AGENTS.md")
    assert first.startswith(theirs)
    assert "\r\n- AGENTS.md: Ours\r\n" in first
    around = f"before\n\n{MAP[0]}\nstale\n{MAP[1]}\n\nafter {{{{AGENT_NAME}}}}"
    await run_action(owner, "put", agentId=marco, path="AGENTS.md", content=around)
    await run_action(owner, "regenerate-map", agentId=marco)
    text = await read_raw(owner, marco, "AGENTS.md")
    before, _, rest = text.partition(MAP[0])
    inside, _, after = rest.partition(MAP[1])
    assert (before, after) == ("before\n\n", "\n\nafter {{AGENT_NAME}}")
    assert ("stale" in inside, "SOUL.md" in inside) == (False, True)
    assert (await run_action(owner, "get", templateId="sales", path="AGENTS.md"))[
        "content"
    ] == theirs


async def test_the_map_lists_the_peers_the_agent_may_delegate_to(
    server: RestServer, owner: httpx.AsyncClient, marco: str
) -> None:
    other = await server.create_tenant("globex")
    await other.post("/v1/agents", json={"slug": "ops-eve", "name": "Eve"})
    for slug in ("ops-ann", "ops-ben", "law-cy"):
        await owner.post("/v1/agents", json={"slug": slug, "name": f"*{slug}* <!-- x -->"})

    async def peers(*allowed: Any) -> set[str]:
        config = {"allowedDelegates": list(allowed)} if allowed else {}
        assert (
            await owner.patch(f"/v1/agents/{marco}", json={"config": config})
        ).status_code == 200
        await run_action(owner, "regenerate-map", agentId=marco)
        text = await read_raw(owner, marco, "AGENTS.md")
        lines = text.partition("## Peers")[2].partition(MAP[1])[0].split("\n")
        assert all(line.endswith("\\*") for line in lines if line)
        return {line.removeprefix("- ").partition(":")[0] for line in lines if line}

    assert await peers() == {"ops-ann", "ops-ben", "law-cy"}
    assert await peers("ops-*") == {"ops-ann", "ops-ben"}
    assert await peers("law-cy", "marco", "ops-eve") == {"law-cy"}
    assert await peers("missing") == set()
    wrong = await owner.patch(f"/v1/agents/{marco}", json={"config": {"allowedDelegates": [5]}})
    assert (wrong.status_code, "config" in wrong.json()["message"]) == (400, True)


async def test_hostile_text_stays_one_line_in_the_map(owner: httpx.AsyncClient, marco: str) -> None:
    hostile = f"# {MAP[1]} {{{{HUMAN_EMAIL}}}} <script> | `x` {MAP[0]}\n"
    for path in ("{{HUMAN_NAME}} `x`.md", "SOUL.md"):
        await run_action(owner, "put", agentId=marco, path=path, content=hostile)
    await run_action(owner, "regenerate-map", agentId=marco)
    text = await read_raw(owner, marco, "AGENTS.md")
    assert (text.count(MAP[0]), text.count(MAP[1])) == (1, 1)
    assert "{{" not in text
    assert "<script" not in text.replace("\\<", "")


async def test_a_map_in_a_pinned_or_binary_file_is_refused(
    server: RestServer, owner: httpx.AsyncClient, marco: str
) -> None:
    token = owner.headers["authorization"].partition(" ")[2]
    actor = await credentials.authenticate(server.ports, token)
    stack = await stacks.agent_stack(server.ports, actor, marco)
    await files.put(server.ports, stack, AGENTS_PATH, b"\xff\x00", actor)
    assert (await refused_action(owner, "regenerate-map", agentId=marco))[0] == 409
    await run_action(owner, "delete", agentId=marco, path="AGENTS.md")
    classes = {"classes": [{"pattern": "AGENTS.md", "class": "pinned"}]}
    assert (await owner.put("/v1/policy", json=classes)).status_code == 200
    assert (await refused_action(owner, "regenerate-map", agentId=marco))[0] == 403
