"""The inbox over REST: pins, approvals and dreams that wait for review."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp
from tests.support.graphql_client import create_member
from tests.support.server_stores import STORES, open_app_over

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
async def server(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_app_over(request, tmp_path) as opened:
        yield opened


async def inbox(client: httpx.AsyncClient, mine: str = "") -> dict[str, Any]:
    answer = await client.get("/v1/inbox", params={"mine": mine} if mine else {})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def put(client: httpx.AsyncClient, url: str, text: str) -> None:
    response = await client.put(url, json={"content": text, "acceptTemplateUpdate": True})
    assert response.status_code == 200, response.text


@pytest.fixture
async def owner(server: FullApp) -> httpx.AsyncClient:
    """Owner of three agents: ann is paired with the owner, cem has no template."""
    owner = await server.owner()
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


async def ids(client: httpx.AsyncClient) -> dict[str, str]:
    return {row["slug"]: row["id"] for row in (await client.get("/v1/agents")).json()["items"]}


def waiting_pins(inbox_body: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [(row["agentSlug"], row["path"], row["newlyOffered"]) for row in inbox_body["pins"]]


async def test_an_empty_inbox_has_zero_counts(owner: httpx.AsyncClient) -> None:
    counts = {"pins": 0, "approvals": 0, "dreams": 0}
    lists: dict[str, Any] = {
        name: [] for name in ("groups", "templates", "pins", "approvals", "dreams")
    }
    assert await inbox(owner) == {**lists, "counts": counts}


async def test_updates_wait_for_every_agent_with_an_outdated_pin(owner: httpx.AsyncClient) -> None:
    await put(owner, "/v1/agents/bea/files/GUARDRAILS.md", "of bea's own")
    await put(owner, "/v1/templates/sales/files/GUARDRAILS.md", "be better")
    assert waiting_pins(await inbox(owner)) == [
        ("ann", "GUARDRAILS.md", False),
        ("bea", "GUARDRAILS.md", False),
    ]
    row = (await inbox(owner))["pins"][0]
    [pin] = [
        item
        for item in (await owner.get("/v1/agents/ann/pins")).json()["items"]
        if item["path"] == "GUARDRAILS.md"
    ]
    assert (row["pinnedSha256"], row["latestSha256"]) == (pin["pinnedSha256"], pin["latestSha256"])
    assert (row["agentName"], row["templateName"], row["mine"]) == ("Ann", "Sales", True)
    accept = {"sha256": row["latestSha256"]}
    await owner.post("/v1/agents/ann/pins/GUARDRAILS.md/accept", json=accept)
    assert waiting_pins(await inbox(owner)) == [("bea", "GUARDRAILS.md", False)]
    assert waiting_pins(await inbox(owner, "true")) == []


async def test_a_never_reviewed_file_is_newly_offered_even_without_a_template(
    owner: httpx.AsyncClient,
) -> None:
    policy = {"classes": [{"pattern": "rules/**", "class": "pinned"}]}
    assert (await owner.put("/v1/policy", json=policy)).status_code == 200
    await put(owner, "/v1/defaults/files/rules/new.md", "also be kind")
    result = await inbox(owner)
    assert waiting_pins(result) == [(slug, "rules/new.md", True) for slug in ("ann", "bea", "cem")]
    assert result["pins"][2]["templateId"] is None
    assert result["pins"][2]["pinnedSha256"] is None
    mine = await inbox(owner, "true")
    assert [row["agentSlug"] for row in mine["pins"]] == ["ann", "cem"]
    assert mine["counts"]["pins"] == 2


async def test_approvals_and_dreams_wait_until_they_are_answered(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    actor = await authenticate(server.ports, owner.headers["Authorization"].partition(" ")[2])
    agents = await ids(owner)
    for slug in ("ann", "bea"):
        arguments = {"command": "rm -r old"}
        question = ApprovalRequest(
            agent=agents[slug], tool="bash", arguments=arguments, mode=Audience.MAIN
        )
        await approvals.request_approval(server.ports, actor, question)
        await memories.remember(server.ports, actor, slug, NewMemory("Ada likes tea"))
        for words in ("tea", "what does Ada like"):
            await memories.recall(server.ports, actor, slug, words)
        swept = await owner.post(f"/v1/agents/{slug}/dreams", json={})
        assert swept.json()["status"] == "proposed", swept.text
    result = await inbox(owner)
    listed = (await owner.get("/v1/approvals?status=requested")).json()["items"]
    assert result["approvals"] == listed
    assert [row["agentName"] for row in result["dreams"]] == ["Ann", "Bea"]
    assert [(row["promoted"], row["mine"]) for row in result["dreams"]] == [(1, True), (1, False)]
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


async def pages(client: httpx.AsyncClient, **filters: Any) -> list[tuple[str, str, bool]]:
    """Agent, path and override of all pins that wait, read one to a page."""
    rows, cursor = [], ""
    while cursor is not None:
        params = {**filters, "limit": 1, "cursor": cursor}
        page = (await client.get("/v1/inbox/pins", params=params)).json()
        assert len(page["items"]) <= 1
        rows += [(row["agentSlug"], row["path"], row["overridden"]) for row in page["items"]]
        cursor = page["next"]
    return rows


async def test_an_edit_of_the_defaults_is_one_group_whatever_the_template(
    owner: httpx.AsyncClient,
) -> None:
    await put(owner, "/v1/agents/bea/files/PLATFORM.md", "of bea's own")
    await put(owner, "/v1/defaults/files/PLATFORM.md", "another")
    await put(owner, "/v1/templates/sales/files/GUARDRAILS.md", "be better")
    result = await inbox(owner)
    groups = [(g["path"], g["templateName"], g["count"], g["overridden"]) for g in result["groups"]]
    assert groups == [("PLATFORM.md", None, 3, 1), ("GUARDRAILS.md", "Sales", 2, 0)]
    [sales] = (await owner.get("/v1/templates")).json()["items"]
    by_template = {row["templateId"]: row["pins"] for row in result["templates"]}
    assert by_template == {sales["id"]: 4, None: 1}
    assert result["counts"]["pins"] == 5

    accepted = {"sha256": result["groups"][0]["latestSha256"]}
    await owner.post("/v1/defaults/pins/PLATFORM.md/accept", json=accepted)
    groups_after = (await inbox(owner))["groups"]
    assert [(group["path"], group["count"]) for group in groups_after] == [("GUARDRAILS.md", 2)]


async def test_the_agents_of_a_group_are_read_in_pages(owner: httpx.AsyncClient) -> None:
    await put(owner, "/v1/agents/bea/files/PLATFORM.md", "of bea's own")
    await put(owner, "/v1/defaults/files/PLATFORM.md", "another")
    await put(owner, "/v1/templates/sales/files/GUARDRAILS.md", "be better")
    rows = await pages(owner)
    assert rows == [
        ("ann", "GUARDRAILS.md", False),
        ("ann", "PLATFORM.md", False),
        ("bea", "GUARDRAILS.md", False),
        ("bea", "PLATFORM.md", True),
        ("cem", "PLATFORM.md", False),
    ]
    assert await pages(owner, offeredBy="sales") == [row for row in rows if row[1][0] == "G"]
    assert await pages(owner, offeredBy="defaults", path="PLATFORM.md") == [
        row for row in rows if row[1][0] == "P"
    ]
    assert await pages(owner, overridden=True) == [("bea", "PLATFORM.md", True)]
    assert {row[0] for row in await pages(owner, mine=True)} == {"ann", "cem"}
    assert (await owner.get("/v1/inbox?limit=2")).json()["counts"]["pins"] == 5
    for bad, status in (("cursor=x", 400), ("offeredBy=nothing", 404), ("path=..", 400)):
        assert (await owner.get(f"/v1/inbox/pins?{bad}")).status_code == status


async def test_members_see_what_waits_for_shared_agents_and_their_own(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    await put(owner, "/v1/defaults/files/PLATFORM.md", "another")
    await owner.patch("/v1/agents/bea", json={"isShared": True})
    member = await create_member(server, owner)
    people = (await owner.get("/v1/people")).json()["items"]
    [person] = [row["id"] for row in people if row["email"] == "member@example.net"]
    assert (await inbox(member))["counts"]["pins"] == 1
    await owner.patch("/v1/agents/cem", json={"ownerId": person})
    assert [group["count"] for group in (await inbox(member))["groups"]] == [2]
    assert [row[0] for row in await pages(member)] == ["bea", "cem"]
    assert (await inbox(member, "true"))["counts"]["pins"] == 1


async def test_the_inbox_needs_permission_to_read_the_tenant_and_its_files(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    await put(owner, "/v1/defaults/files/PLATFORM.md", "another")
    for scopes in ((Permission.TENANT_READ,), (Permission.WORKSPACE_READ,)):
        half = await server.key(owner, *scopes)
        assert (await half.get("/v1/inbox")).status_code == 403
    service = await server.key(owner, Permission.TENANT_READ, Permission.WORKSPACE_READ)
    assert (await inbox(service))["counts"]["pins"] == 3
    assert (await inbox(service, "true"))["pins"] == []
    other_owner = await server.owner("globex")
    assert (await inbox(other_owner))["counts"] == {"pins": 0, "approvals": 0, "dreams": 0}
    assert (await owner.get("/v1/inbox?mine=maybe")).status_code == 400
