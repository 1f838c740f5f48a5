"""Pins, their review, and changes of agents over REST."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx
import pytest
from tests.support.rest_client import RestServer

pytestmark = pytest.mark.anyio
AGENT, SALES, DEFAULTS = "/v1/agents/marco", "/v1/templates/sales", "/v1/defaults"


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def rows(client: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    """The agent's files with contents, by path."""
    files = (await client.get(f"{AGENT}/files?content=true")).json()["files"]
    return {row["path"]: row for row in files}


async def write(client: httpx.AsyncClient, url: str, text: str, **more: object) -> httpx.Response:
    return await client.put(url, json={"content": text, **more})


@pytest.fixture
async def marco(owner: httpx.AsyncClient) -> dict[str, str]:
    """An agent whose template has a guardrail and a voice."""
    await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    await write(owner, f"{SALES}/files/GUARDRAILS.md", "be good")
    await write(owner, f"{SALES}/files/SOUL.md", "{{AGENT_NAME}} is brisk")
    new = {"slug": "marco", "name": "Marco", "templateId": "sales"}
    created: dict[str, str] = (await owner.post("/v1/agents", json=new)).json()
    return created


async def test_rows_have_source_class_and_both_digests(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    by_path = await rows(owner)
    rules, soul = by_path["GUARDRAILS.md"], by_path["SOUL.md"]
    assert (rules["source"], rules["class"], rules["content"]) == (
        *("template-pinned", "pinned"),
        "be good",
    )
    assert rules["sha256"] == rules["renderedSha256"] == sha("be good")
    assert (soul["source"], soul["class"]) == ("template", "live")
    assert (soul["sha256"], soul["renderedSha256"]) == (
        sha("{{AGENT_NAME}} is brisk"),
        sha("Marco is brisk"),
    )
    raw = (await owner.get(f"{AGENT}/files/SOUL.md?raw=true")).json()
    assert raw["content"] == "{{AGENT_NAME}} is brisk"
    assert (await owner.get(f"{AGENT}/files/SOUL.md")).json()["content"] == "Marco is brisk"


async def test_the_lists_etag_changes_with_the_agents_name(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    url = f"{AGENT}/files?content=true"
    cached = {"If-None-Match": (await owner.get(url)).headers["etag"]}
    assert (await owner.get(url, headers=cached)).status_code == 304
    assert (await owner.patch(AGENT, json={"name": "Polo"})).status_code == 200
    fresh = await owner.get(url, headers=cached)
    assert fresh.status_code == 200
    assert (await rows(owner))["SOUL.md"]["content"] == "Polo is brisk"


async def test_a_pinned_file_is_overridden_only_with_the_flag_and_reverts_to_its_pin(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    url = f"{AGENT}/files/GUARDRAILS.md"
    for flag in ({}, {"acceptTemplateUpdate": False}):
        refused = await write(owner, url, "mine", **flag)
        assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    for wrong in ("true", 1):
        assert (await write(owner, url, "mine", acceptTemplateUpdate=wrong)).status_code == 400
    done = await write(owner, url, "mine", acceptTemplateUpdate=True)
    assert (done.status_code, done.json()["source"]) == (200, "agent-override-pinned")
    await write(owner, f"{SALES}/files/GUARDRAILS.md", "be better")
    assert (await owner.delete(url)).status_code == 204
    assert (await owner.get(url)).json()["content"] == "be good"
    assert (await owner.delete(url)).status_code == 404
    assert (await write(owner, f"{AGENT}/files/USER.md", "x")).status_code == 403


async def test_an_update_is_reviewed_accepted_and_rolled_back(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    await write(owner, f"{SALES}/files/GUARDRAILS.md", "be better")
    _, pin, _ = (await owner.get(f"{AGENT}/pins")).json()["items"]
    assert (pin["path"], pin["updateAvailable"], pin["overridden"]) == (
        *("GUARDRAILS.md", True),
        False,
    )
    assert (pin["pinnedContent"], pin["latestContent"]) == ("be good", "be better")
    accept = f"{AGENT}/pins/GUARDRAILS.md/accept"
    stale = await owner.post(accept, json={"sha256": sha("be good")})
    assert (stale.status_code, stale.json()["error"]) == (409, "workspace_conflict")
    done = await owner.post(accept, json={"sha256": pin["latestSha256"]})
    assert (done.status_code, done.json()["updateAvailable"]) == (200, False)
    assert (await owner.get(f"{AGENT}/files/GUARDRAILS.md")).json()["content"] == "be better"
    back = await owner.post(f"{AGENT}/pins/GUARDRAILS.md/rollback", json={})
    assert (back.status_code, back.json()["pinnedSha256"]) == (200, sha("be good"))
    assert (await owner.post(f"{AGENT}/pins/SOUL.md/accept", json={"sha256": "0" * 64})).json()[
        "error"
    ] == "validation_error"


async def test_a_bulk_accept_reports_every_agent(
    server: RestServer, owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    polo = {"slug": "polo", "name": "Polo", "templateId": "sales"}
    await owner.post("/v1/agents", json=polo)
    await write(owner, f"{SALES}/files/GUARDRAILS.md", "be better")
    url, body = f"{SALES}/pins/GUARDRAILS.md/accept", {"sha256": sha("be better")}
    machine = await server.key(owner)
    assert (await machine.post(url, json=body)).status_code == 403
    result = (await owner.post(url, json=body)).json()
    assert (result["accepted"], result["failed"]) == (2, 0)
    assert {entry["success"] for entry in result["results"]} == {True}
    assert (await owner.post("/v1/templates/missing/pins/GUARDRAILS.md/accept", json=body)).json()[
        "error"
    ] == "not_found"


@pytest.mark.parametrize("layer", [SALES, DEFAULTS])
async def test_what_was_accepted_for_all_is_rolled_back_with_a_result_per_agent(
    server: RestServer, owner: httpx.AsyncClient, marco: dict[str, str], layer: str
) -> None:
    path = "GUARDRAILS.md" if layer == SALES else "CAPABILITIES.md"
    nora = {"slug": "nora", "name": "Nora", "templateId": "sales"}
    ids = {marco["id"], (await owner.post("/v1/agents", json=nora)).json()["id"]}
    before = (await owner.get(f"{AGENT}/files/{path}")).json()["content"]
    await write(owner, f"{layer}/files/{path}", "be better")
    body = {"sha256": sha("be better")}
    accepted = (await owner.post(f"{layer}/pins/{path}/accept", json=body)).json()
    assert ({entry["agentId"] for entry in accepted["results"]}, accepted["failed"]) == (ids, 0)
    assert (await owner.get(f"{AGENT}/files/{path}")).json()["content"] == "be better"

    url = f"{layer}/pins/{path}/rollback"
    machine = await server.key(owner)
    assert (await machine.post(url, json=body)).status_code == 403
    done = (await owner.post(url, json=body)).json()
    assert {entry["agentId"] for entry in done["results"] if entry["changed"]} == ids
    assert (await owner.get(f"{AGENT}/files/{path}")).json()["content"] == before


async def test_an_agent_is_paired_only_with_a_person_of_its_tenant(
    server: RestServer, owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    await write(owner, f"{DEFAULTS}/files/USER.md", "for {{HUMAN_NAME}}")
    bob = {"name": "Bob", "email": "bob@example.org", "role": "member"}
    mine = (await owner.post("/v1/people", json=bob)).json()["id"]
    other = await server.create_tenant("globex")
    theirs = (await other.post("/v1/people", json=bob)).json()["id"]
    assert (await owner.patch(AGENT, json={"humanPairId": theirs})).status_code == 404
    paired = await owner.patch(AGENT, json={"humanPairId": mine})
    assert (paired.status_code, paired.json()["humanPairId"]) == (200, mine)
    assert (await owner.get(f"{AGENT}/files/USER.md")).json()["content"] == "for Bob"
    assert (await owner.patch(f"/v1/people/{mine}", json={"name": "Rob"})).status_code == 200
    assert (await owner.get(f"{AGENT}/files/USER.md")).json()["content"] == "for Rob"
    assert (await other.patch(AGENT, json={"name": "X"})).status_code == 404


async def test_template_and_default_files_have_their_class(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    for layer in (SALES, DEFAULTS):
        put = await write(owner, f"{layer}/files/GUARDRAILS.md", "be better")
        assert put.json()["class"] == "pinned"
        assert (await owner.get(f"{layer}/files/GUARDRAILS.md")).json()["class"] == "pinned"
    listed = await owner.get(f"{DEFAULTS}/files")
    classes = {row["path"]: row["class"] for row in listed.json()["files"]}
    assert (classes["USER.md"], classes["PLATFORM.md"], classes["SOUL.md"]) == (
        *("managed", "pinned"),
        "live",
    )
    rule = {"pattern": "SOUL.md", "class": "pinned"}
    policy = {"classes": [rule], "confirm": True}
    assert (await owner.put("/v1/policy", json=policy)).status_code == 200
    cached = {"If-None-Match": listed.headers["etag"]}
    rows = (await owner.get(f"{DEFAULTS}/files", headers=cached)).json()["files"]
    assert {row["path"]: row["class"] for row in rows}["SOUL.md"] == "pinned"


@pytest.mark.parametrize(
    ("path", "flag"), [("GUARDRAILS.md", {"acceptTemplateUpdate": True}), ("SOUL.md", {})]
)
async def test_an_available_update_changes_the_etag_but_the_old_etag_still_allows_a_write(
    owner: httpx.AsyncClient, marco: dict[str, str], path: str, flag: dict[str, bool]
) -> None:
    url = f"{AGENT}/files/{path}"
    old_etag = (await write(owner, url, "mine", **flag)).headers["etag"]
    cached = {"If-None-Match": old_etag}
    assert (await owner.get(url, headers=cached)).status_code == 304
    await write(owner, f"{SALES}/files/{path}", "newer")
    now = await owner.get(url, headers=cached)
    assert (now.status_code, now.json()["updateAvailable"]) == (200, True)
    assert now.headers["etag"] == now.json()["etag"] == (await rows(owner))[path]["etag"]
    cached = {"If-None-Match": now.headers["etag"]}
    assert (await owner.get(url, headers=cached)).status_code == 304

    body = {"content": "mine again", **flag}
    done = await owner.put(url, json=body, headers={"If-Match": old_etag})
    assert done.status_code == 200
    for stale in (old_etag, now.headers["etag"]):
        late = await owner.put(url, json=body, headers={"If-Match": stale})
        assert (late.status_code, late.json()["error"]) == (409, "workspace_conflict")
    current = (await owner.get(url)).headers["etag"]
    assert (await owner.put(url, json=body, headers={"If-Match": current})).status_code == 200


async def test_versions_rise_with_each_review_and_etags_differ_per_layer(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    url = f"{AGENT}/files/GUARDRAILS.md"
    served = []
    for text in ("be better", "be best"):
        current = (await owner.get(url)).json()
        served.append((current["version"], current["etag"], current["content"]))
        then = await owner.get(f"{url}?version={current['version']}")
        versioned = then.json()
        assert (versioned["version"], versioned["content"]) == (
            current["version"],
            current["content"],
        )
        assert then.headers["etag"] == versioned["etag"] == current["etag"]
        await write(owner, f"{SALES}/files/GUARDRAILS.md", text)
        accept = {"sha256": sha(text)}
        assert (await owner.post(f"{AGENT}/pins/GUARDRAILS.md/accept", json=accept)).is_success
    (first, first_tag, _), (again, again_tag, _) = served
    assert (first, again) == (1, 2)
    assert first_tag != again_tag
    cached = {"If-None-Match": first_tag}
    assert (await owner.get(f"{url}?version=2", headers=cached)).json()["content"] == "be better"
    stale = {"If-Match": first_tag}
    body = {"content": "mine", "acceptTemplateUpdate": True}
    assert (await owner.put(url, json=body, headers=stale)).status_code == 409
    for number, text in ((1, "be good"), (2, "be better"), (3, "be best")):
        assert (await owner.get(f"{url}?version={number}")).json()["content"] == text


async def test_a_weakened_etag_still_returns_304(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    for url in (f"{AGENT}/files?content=true", f"{AGENT}/files/SOUL.md"):
        weak = f"W/{(await owner.get(url)).headers['etag']}"
        assert (await owner.get(url, headers={"If-None-Match": weak})).status_code == 304
        other = {"If-None-Match": 'W/"other"'}
        assert (await owner.get(url, headers=other)).status_code == 200


async def test_an_override_can_be_restored_with_the_flag(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    url = f"{AGENT}/files/GUARDRAILS.md"
    await write(owner, url, "mine", acceptTemplateUpdate=True)
    await owner.delete(url)
    assert (await owner.post(f"{url}/restore", json={"version": 2})).status_code == 403
    body = {"version": 2, "acceptTemplateUpdate": True}
    assert (await owner.post(f"{url}/restore", json=body)).json()["content"] == "mine"


async def test_a_digest_is_exactly_64_lowercase_hex_digits(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    url = f"{AGENT}/pins/GUARDRAILS.md/accept"
    for wrong in (sha("be good") + "\n", sha("be good").upper(), sha("be good")[1:]):
        assert (await owner.post(url, json={"sha256": wrong})).status_code == 400, wrong
