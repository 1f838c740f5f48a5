"""Rendering a draft returns what would be served and stores nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.full_app import FullApp, open_full_app

from carrel.core.access import Permission
from carrel.core.overlay.placeholders import TOKENS

pytestmark = pytest.mark.anyio
FILES = "/v1/agents/marco/files"
WORDS = st.sampled_from(
    [*(f"{{{{{token}}}}}" for token in TOKENS), "{{OTHER}}", "{{", "}}", "a", "\n", "1.", ". ", "é"]
)


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def owner(server: FullApp) -> httpx.AsyncClient:
    owner = await server.owner()
    bob = {"name": "Bob *B*", "email": "bob@example.org", "role": "member", "title": "7"}
    person = (await owner.post("/v1/people", json=bob)).json()["id"]
    new = {"slug": "marco", "name": "Marco", "humanPairId": person}
    assert (await owner.post("/v1/agents", json=new)).status_code == 201
    return owner


async def test_a_draft_is_rendered_and_lists_its_placeholder_values(
    owner: httpx.AsyncClient,
) -> None:
    before = (await owner.get(FILES)).text
    draft = "{{HUMAN_NAME}} and {{AGENT_NAME}}, {{HUMAN_NAME}}, {{UNKNOWN}}"
    answer = await owner.post(f"{FILES}/docs/a.md/render", json={"content": draft})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "content": "Bob \\*B\\* and Marco, Bob \\*B\\*, {{UNKNOWN}}",
        "tokens": [
            {"token": "HUMAN_NAME", "value": "Bob \\*B\\*"},
            {"token": "AGENT_NAME", "value": "Marco"},
        ],
    }
    assert (await owner.get(FILES)).text == before


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draft=st.lists(WORDS, max_size=8).map("".join))
@pytest.mark.parametrize("path", ["SOUL.md", "GUARDRAILS.md"])
async def test_a_rendered_draft_equals_the_content_served_after_a_put(
    owner: httpx.AsyncClient, path: str, draft: str
) -> None:
    rendered = (await owner.post(f"{FILES}/{path}/render", json={"content": draft})).json()
    put = {"content": draft, "acceptTemplateUpdate": True}
    assert (await owner.put(f"{FILES}/{path}", json=put)).status_code == 200
    assert (await owner.get(f"{FILES}/{path}")).json()["content"] == rendered["content"]


async def test_a_draft_of_a_pinned_file_keeps_its_placeholders(owner: httpx.AsyncClient) -> None:
    draft = {"content": "{{AGENT_NAME}} is good"}
    rendered = (await owner.post(f"{FILES}/GUARDRAILS.md/render", json=draft)).json()
    assert rendered == {"content": draft["content"], "tokens": []}


async def test_a_secret_in_a_draft_is_redacted(
    owner: httpx.AsyncClient,
) -> None:
    await owner.put("/v1/secrets/till", json={"value": "open-sesame-4711"})
    draft = {"content": "say open-sesame-4711"}
    rendered = (await owner.post(f"{FILES}/notes/a.md/render", json=draft)).json()
    assert rendered["content"] == "say [REDACTED:till]"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("..%2Fx", {"content": "x"}, 400),
        ("guardrails.md", {"content": "x"}, 400),
        ("a.md", {"content": "x", "more": 1}, 400),
        ("a.md", {}, 400),
        ("a.md", {"content": "x" * (2**20 + 1)}, 413),
    ],
)
async def test_a_draft_that_could_not_be_written_is_refused(
    owner: httpx.AsyncClient, path: str, body: dict[str, object], status: int
) -> None:
    answer = await owner.post(f"{FILES}/{path}/render", json=body)
    assert answer.status_code == status, answer.text


async def test_rendering_a_draft_needs_permission_to_write(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    other = (await owner.post("/v1/agents", json={"slug": "nora", "name": "Nora"})).json()["id"]
    other_owner = await server.owner("globex")
    reader = await server.key(owner, Permission.WORKSPACE_READ)
    other_key = await server.key(owner, agent=other)
    for client, status in (
        (other_owner, 404),
        (reader, 403),
        (other_key, 404),
        (server.as_(None), 401),
    ):
        answer = await client.post(f"{FILES}/SOUL.md/render", json={"content": "{{AGENT_NAME}}"})
        assert answer.status_code == status, answer.text
        assert "Marco" not in answer.text
