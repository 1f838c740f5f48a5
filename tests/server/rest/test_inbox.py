"""What waits for people, gathered from all over a tenant, through the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp
from tests.support.server_stores import STORES, open_app_over

from carrel.actions import inbox as inboxes
from carrel.actions.accounts.credentials import authenticate
from carrel.actions.approvals import approvals
from carrel.actions.approvals.approvals import ApprovalRequest
from carrel.actions.memory import memories
from carrel.actions.memory.memories import NewMemory
from carrel.core.access import Permission
from carrel.core.runs import Audience

pytestmark = pytest.mark.anyio
EASY = {"minScore": 0, "minRecallCount": 1, "minUniqueQueries": 1, "minUniqueDays": 1}
DREAMING = {"dreaming": {"review": True, **EASY}}


@pytest.fixture(params=STORES)
async def here(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_app_over(request, tmp_path) as opened:
        yield opened


async def inbox(who: httpx.AsyncClient, mine: str = "") -> dict[str, Any]:
    answer = await who.get("/v1/inbox", params={"mine": mine} if mine else {})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def put(who: httpx.AsyncClient, where: str, text: str) -> None:
    done = await who.put(where, json={"content": text, "acceptTemplateUpdate": True})
    assert done.status_code == 200, done.text


@pytest.fixture
async def owner(here: FullApp) -> httpx.AsyncClient:
    """Ann works for the owner, Bea for nobody; Cem follows no template."""
    owner = await here.owner()
    me = (await owner.get("/v1/people")).json()["items"][0]["id"]
    await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    await put(owner, "/v1/templates/sales/files/GUARDRAILS.md", "be good")
    for slug, more in (
        ("ann", {"templateId": "sales", "humanPairId": me}),
        ("bea", {"templateId": "sales"}),
        ("cem", {"ownerId": me}),
    ):
        new = {"slug": slug, "name": slug.title(), "config": DREAMING, **more}
        assert (await owner.post("/v1/agents", json=new)).status_code == 201
    return owner


async def ids(who: httpx.AsyncClient) -> dict[str, str]:
    return {row["slug"]: row["id"] for row in (await who.get("/v1/agents")).json()["items"]}


def waiting(found: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [(row["agentSlug"], row["path"], row["newlyOffered"]) for row in found["pins"]]


async def test_where_nothing_waits_nothing_is_told(owner: httpx.AsyncClient) -> None:
    counts = {"pins": 0, "approvals": 0, "dreams": 0}
    assert await inbox(owner) == {"pins": [], "approvals": [], "dreams": [], "counts": counts}


async def test_updates_wait_as_each_agents_own_pins_say(owner: httpx.AsyncClient) -> None:
    await put(owner, "/v1/agents/bea/files/GUARDRAILS.md", "of bea's own")
    await put(owner, "/v1/templates/sales/files/GUARDRAILS.md", "be better")
    assert waiting(await inbox(owner)) == [
        ("ann", "GUARDRAILS.md", False),
        ("bea", "GUARDRAILS.md", False),
    ]
    row = (await inbox(owner))["pins"][0]
    [pin] = [
        one
        for one in (await owner.get("/v1/agents/ann/pins")).json()["items"]
        if one["path"] == "GUARDRAILS.md"
    ]
    assert (row["pinnedSha256"], row["latestSha256"]) == (pin["pinnedSha256"], pin["latestSha256"])
    assert (row["agentName"], row["templateName"], row["mine"]) == ("Ann", "Sales", True)
    accept = {"sha256": row["latestSha256"]}
    await owner.post("/v1/agents/ann/pins/GUARDRAILS.md/accept", json=accept)
    assert waiting(await inbox(owner)) == [("bea", "GUARDRAILS.md", False)]
    assert waiting(await inbox(owner, "true")) == []


async def test_what_was_never_reviewed_is_newly_offered_also_without_a_template(
    owner: httpx.AsyncClient,
) -> None:
    policy = {"classes": [{"pattern": "rules/**", "class": "pinned"}]}
    assert (await owner.put("/v1/policy", json=policy)).status_code == 200
    await put(owner, "/v1/defaults/files/rules/new.md", "also be kind")
    found = await inbox(owner)
    assert waiting(found) == [(slug, "rules/new.md", True) for slug in ("ann", "bea", "cem")]
    assert found["pins"][2]["templateId"] is None
    assert found["pins"][2]["pinnedSha256"] is None
    mine = await inbox(owner, "true")
    assert [row["agentSlug"] for row in mine["pins"]] == ["ann", "cem"]
    assert mine["counts"]["pins"] == 2


async def test_calls_and_dreams_wait_until_somebody_answers(
    here: FullApp, owner: httpx.AsyncClient
) -> None:
    actor = await authenticate(here.ports, owner.headers["Authorization"].partition(" ")[2])
    agents = await ids(owner)
    for slug in ("ann", "bea"):
        arguments = {"command": "rm -r old"}
        question = ApprovalRequest(
            agent=agents[slug], tool="bash", arguments=arguments, mode=Audience.MAIN
        )
        await approvals.request_approval(here.ports, actor, question)
        await memories.remember(here.ports, actor, slug, NewMemory("Ada likes tea"))
        for words in ("tea", "what does Ada like"):
            await memories.recall(here.ports, actor, slug, words)
        swept = await owner.post(f"/v1/agents/{slug}/dreams", json={})
        assert swept.json()["status"] == "proposed", swept.text
    found = await inbox(owner)
    listed = (await owner.get("/v1/approvals?status=requested")).json()["items"]
    assert found["approvals"] == listed
    assert [row["agentName"] for row in found["dreams"]] == ["Ann", "Bea"]
    assert [(row["promoted"], row["mine"]) for row in found["dreams"]] == [(1, True), (1, False)]
    mine = await inbox(owner, "true")
    assert mine["counts"] == {"pins": 0, "approvals": 1, "dreams": 1}
    assert [row["agentId"] for row in mine["approvals"]] == [agents["ann"]]
    [dream] = mine["dreams"]
    await owner.post(f"/v1/agents/ann/dreams/{dream['dreamId']}/approve")
    await owner.post(f"/v1/approvals/{mine['approvals'][0]['id']}", json={"approved": False})
    assert (await inbox(owner, "true"))["counts"] == {"pins": 0, "approvals": 0, "dreams": 0}
    assert (await inbox(owner))["counts"] == {"pins": 0, "approvals": 1, "dreams": 1}
    assert (await owner.delete("/v1/agents/bea")).status_code == 204
    assert (await inbox(owner))["dreams"] == []


async def test_not_all_is_told_and_all_is_counted(
    owner: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inboxes, "MAX_LISTED", 1)
    monkeypatch.setattr(inboxes, "_AGENT_PAGE_SIZE", 2)
    await put(owner, "/v1/defaults/files/PLATFORM.md", "another")
    await put(owner, "/v1/templates/sales/files/GUARDRAILS.md", "be better")
    found = await inbox(owner)
    assert (len(found["pins"]), found["counts"]["pins"]) == (1, 5)


async def test_only_who_may_read_the_tenant_and_its_files_is_told(
    here: FullApp, owner: httpx.AsyncClient
) -> None:
    await put(owner, "/v1/defaults/files/PLATFORM.md", "another")
    for scopes in ((Permission.TENANT_READ,), (Permission.WORKSPACE_READ,)):
        half = await here.key(owner, *scopes)
        assert (await half.get("/v1/inbox")).status_code == 403
    service = await here.key(owner, Permission.TENANT_READ, Permission.WORKSPACE_READ)
    assert (await inbox(service))["counts"]["pins"] == 3
    assert (await inbox(service, "true"))["pins"] == []
    stranger = await here.owner("globex")
    assert (await inbox(stranger))["counts"] == {"pins": 0, "approvals": 0, "dreams": 0}
    assert (await owner.get("/v1/inbox?mine=maybe")).status_code == 400
