"""Drafts through the wire: what would be served, and nothing stored."""

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
async def here(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def owner(here: FullApp) -> httpx.AsyncClient:
    owner = await here.owner()
    bob = {"name": "Bob *B*", "email": "bob@example.org", "role": "member", "title": "7"}
    person = (await owner.post("/v1/people", json=bob)).json()["id"]
    new = {"slug": "marco", "name": "Marco", "humanPairId": person}
    assert (await owner.post("/v1/agents", json=new)).status_code == 201
    return owner


async def test_a_draft_is_shown_filled_in_and_with_what_was_filled_in(
    owner: httpx.AsyncClient,
) -> None:
    before = (await owner.get(FILES)).text
    draft = "{{HUMAN_NAME}} and {{AGENT_NAME}}, {{HUMAN_NAME}}, {{WHO}}"
    answer = await owner.post(f"{FILES}/docs/a.md/render", json={"content": draft})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {
        "content": "Bob \\*B\\* and Marco, Bob \\*B\\*, {{WHO}}",
        "tokens": [
            {"token": "HUMAN_NAME", "value": "Bob \\*B\\*"},
            {"token": "AGENT_NAME", "value": "Marco"},
        ],
    }
    assert (await owner.get(FILES)).text == before


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draft=st.lists(WORDS, max_size=8).map("".join))
@pytest.mark.parametrize("path", ["SOUL.md", "GUARDRAILS.md"])
async def test_what_is_shown_is_what_is_served_once_it_is_stored(
    owner: httpx.AsyncClient, path: str, draft: str
) -> None:
    shown = (await owner.post(f"{FILES}/{path}/render", json={"content": draft})).json()
    put = {"content": draft, "acceptTemplateUpdate": True}
    assert (await owner.put(f"{FILES}/{path}", json=put)).status_code == 200
    assert (await owner.get(f"{FILES}/{path}")).json()["content"] == shown["content"]


async def test_a_pinned_draft_is_served_to_the_letter(owner: httpx.AsyncClient) -> None:
    draft = {"content": "{{AGENT_NAME}} is good"}
    shown = (await owner.post(f"{FILES}/GUARDRAILS.md/render", json=draft)).json()
    assert shown == {"content": draft["content"], "tokens": []}


async def test_a_secret_is_shown_by_its_name_as_it_would_be_stored(
    owner: httpx.AsyncClient,
) -> None:
    await owner.put("/v1/secrets/till", json={"value": "open-sesame-4711"})
    draft = {"content": "say open-sesame-4711"}
    shown = (await owner.post(f"{FILES}/notes/a.md/render", json=draft)).json()
    assert shown["content"] == "say [REDACTED:till]"


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
async def test_what_could_not_be_written_is_refused(
    owner: httpx.AsyncClient, path: str, body: dict[str, object], status: int
) -> None:
    answer = await owner.post(f"{FILES}/{path}/render", json=body)
    assert answer.status_code == status, answer.text


async def test_only_whoever_may_write_here_is_shown_anything(
    here: FullApp, owner: httpx.AsyncClient
) -> None:
    other = (await owner.post("/v1/agents", json={"slug": "nora", "name": "Nora"})).json()["id"]
    stranger = await here.owner("globex")
    reader = await here.key(owner, Permission.WORKSPACE_READ)
    elsewhere = await here.key(owner, agent=other)
    for who, status in ((stranger, 404), (reader, 403), (elsewhere, 404), (here.as_(None), 401)):
        answer = await who.post(f"{FILES}/SOUL.md/render", json={"content": "{{AGENT_NAME}}"})
        assert answer.status_code == status, answer.text
        assert "Marco" not in answer.text
