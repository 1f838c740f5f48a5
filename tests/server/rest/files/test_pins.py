"""Pins and their review, and agents that change, through the wire."""

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


async def rows(who: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    """What the agent has, contents included, by path."""
    found = (await who.get(f"{AGENT}/files?content=true")).json()["files"]
    return {row["path"]: row for row in found}


async def write(who: httpx.AsyncClient, where: str, text: str, **more: object) -> httpx.Response:
    return await who.put(where, json={"content": text, **more})


@pytest.fixture
async def marco(owner: httpx.AsyncClient) -> dict[str, str]:
    """An agent whose template has a guardrail and a voice."""
    await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    await write(owner, f"{SALES}/files/GUARDRAILS.md", "be good")
    await write(owner, f"{SALES}/files/SOUL.md", "{{AGENT_NAME}} is brisk")
    new = {"slug": "marco", "name": "Marco", "templateId": "sales"}
    made: dict[str, str] = (await owner.post("/v1/agents", json=new)).json()
    return made


async def test_rows_tell_source_class_and_both_digests(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    found = await rows(owner)
    rules, soul = found["GUARDRAILS.md"], found["SOUL.md"]
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


async def test_the_lists_tag_changes_with_a_name_and_else_not(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    url = f"{AGENT}/files?content=true"
    known = {"If-None-Match": (await owner.get(url)).headers["etag"]}
    assert (await owner.get(url, headers=known)).status_code == 304
    assert (await owner.patch(AGENT, json={"name": "Polo"})).status_code == 200
    fresh = await owner.get(url, headers=known)
    assert fresh.status_code == 200
    assert (await rows(owner))["SOUL.md"]["content"] == "Polo is brisk"


async def test_a_pinned_file_is_overridden_only_on_purpose_and_reverts_to_its_pin(
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


async def test_accepting_for_all_tells_of_each(
    here: RestServer, owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    polo = {"slug": "polo", "name": "Polo", "templateId": "sales"}
    await owner.post("/v1/agents", json=polo)
    await write(owner, f"{SALES}/files/GUARDRAILS.md", "be better")
    url, body = f"{SALES}/pins/GUARDRAILS.md/accept", {"sha256": sha("be better")}
    machine = await here.key(owner)
    assert (await machine.post(url, json=body)).status_code == 403
    told = (await owner.post(url, json=body)).json()
    assert (told["accepted"], told["failed"]) == (2, 0)
    assert {one["success"] for one in told["results"]} == {True}
    assert (await owner.post("/v1/templates/nobody/pins/GUARDRAILS.md/accept", json=body)).json()[
        "error"
    ] == "not_found"


async def test_an_agent_is_paired_with_somebody_of_its_own_tenant(
    here: RestServer, owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    await write(owner, f"{DEFAULTS}/files/USER.md", "for {{HUMAN_NAME}}")
    bob = {"name": "Bob", "email": "bob@example.org", "role": "member"}
    mine = (await owner.post("/v1/people", json=bob)).json()["id"]
    other = await here.create_tenant("globex")
    theirs = (await other.post("/v1/people", json=bob)).json()["id"]
    assert (await owner.patch(AGENT, json={"humanPairId": theirs})).status_code == 404
    paired = await owner.patch(AGENT, json={"humanPairId": mine})
    assert (paired.status_code, paired.json()["humanPairId"]) == (200, mine)
    assert (await owner.get(f"{AGENT}/files/USER.md")).json()["content"] == "for Bob"
    assert (await owner.patch(f"/v1/people/{mine}", json={"name": "Rob"})).status_code == 200
    assert (await owner.get(f"{AGENT}/files/USER.md")).json()["content"] == "for Rob"
    assert (await other.patch(AGENT, json={"name": "X"})).status_code == 404


async def test_the_class_of_a_file_is_told_where_it_is_edited_too(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    for where in (SALES, DEFAULTS):
        put = await write(owner, f"{where}/files/GUARDRAILS.md", "be better")
        assert put.json()["class"] == "pinned"
        assert (await owner.get(f"{where}/files/GUARDRAILS.md")).json()["class"] == "pinned"
    listed = await owner.get(f"{DEFAULTS}/files")
    found = {row["path"]: row["class"] for row in listed.json()["files"]}
    assert (found["USER.md"], found["PLATFORM.md"], found["SOUL.md"]) == (
        *("managed", "pinned"),
        "live",
    )
    rule = {"pattern": "SOUL.md", "class": "pinned"}
    assert (await owner.put("/v1/policy", json={"classes": [rule]})).status_code == 200
    known = {"If-None-Match": listed.headers["etag"]}
    rows = (await owner.get(f"{DEFAULTS}/files", headers=known)).json()["files"]
    assert {row["path"]: row["class"] for row in rows}["SOUL.md"] == "pinned"


@pytest.mark.parametrize(
    ("path", "flag"), [("GUARDRAILS.md", {"acceptTemplateUpdate": True}), ("SOUL.md", {})]
)
async def test_a_files_tag_tells_that_an_update_has_come_and_a_write_does_not_mind(
    owner: httpx.AsyncClient, marco: dict[str, str], path: str, flag: dict[str, bool]
) -> None:
    url = f"{AGENT}/files/{path}"
    seen = (await write(owner, url, "mine", **flag)).headers["etag"]
    known = {"If-None-Match": seen}
    assert (await owner.get(url, headers=known)).status_code == 304
    await write(owner, f"{SALES}/files/{path}", "newer")
    now = await owner.get(url, headers=known)
    assert (now.status_code, now.json()["updateAvailable"]) == (200, True)
    assert now.headers["etag"] == now.json()["etag"] == (await rows(owner))[path]["etag"]
    known = {"If-None-Match": now.headers["etag"]}
    assert (await owner.get(url, headers=known)).status_code == 304

    body = {"content": "mine again", **flag}
    done = await owner.put(url, json=body, headers={"If-Match": seen})
    assert done.status_code == 200
    for stale in (seen, now.headers["etag"]):
        late = await owner.put(url, json=body, headers={"If-Match": stale})
        assert (late.status_code, late.json()["error"]) == (409, "workspace_conflict")
    current = (await owner.get(url)).headers["etag"]
    assert (await owner.put(url, json=body, headers={"If-Match": current})).status_code == 200


async def test_a_version_is_of_a_layer_and_the_tag_tells_which(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    url = f"{AGENT}/files/GUARDRAILS.md"
    seen = []
    for text in ("be better", "be best"):
        made_with = (await owner.get(url)).json()
        seen.append((made_with["version"], made_with["etag"], made_with["content"]))
        then = await owner.get(f"{url}?version={made_with['version']}")
        told = then.json()
        assert (told["version"], told["content"]) == (made_with["version"], made_with["content"])
        assert then.headers["etag"] == told["etag"] == made_with["etag"]
        await write(owner, f"{SALES}/files/GUARDRAILS.md", text)
        accept = {"sha256": sha(text)}
        assert (await owner.post(f"{AGENT}/pins/GUARDRAILS.md/accept", json=accept)).is_success
    (first, first_tag, _), (again, again_tag, _) = seen
    assert (first, again) == (1, 1)
    assert first_tag != again_tag
    known = {"If-None-Match": first_tag}
    assert (await owner.get(f"{url}?version=1", headers=known)).json()["content"] == "be better"
    stale = {"If-Match": first_tag}
    body = {"content": "mine", "acceptTemplateUpdate": True}
    assert (await owner.put(url, json=body, headers=stale)).status_code == 409
    for number, text in ((1, "be better"), (2, "be best")):
        assert (await owner.get(f"{url}?version={number}")).json()["content"] == text


async def test_a_tag_that_was_weakened_on_the_way_is_known_again(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    for url in (f"{AGENT}/files?content=true", f"{AGENT}/files/SOUL.md"):
        weak = f"W/{(await owner.get(url)).headers['etag']}"
        assert (await owner.get(url, headers={"If-None-Match": weak})).status_code == 304
        other = {"If-None-Match": 'W/"other"'}
        assert (await owner.get(url, headers=other)).status_code == 200


async def test_an_override_can_be_restored_on_purpose(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    url = f"{AGENT}/files/GUARDRAILS.md"
    await write(owner, url, "mine", acceptTemplateUpdate=True)
    await owner.delete(url)
    assert (await owner.post(f"{url}/restore", json={"version": 1})).status_code == 403
    body = {"version": 1, "acceptTemplateUpdate": True}
    assert (await owner.post(f"{url}/restore", json=body)).json()["content"] == "mine"


async def test_a_digest_is_64_digits_and_nothing_after(
    owner: httpx.AsyncClient, marco: dict[str, str]
) -> None:
    url = f"{AGENT}/pins/GUARDRAILS.md/accept"
    for wrong in (sha("be good") + "\n", sha("be good").upper(), sha("be good")[1:]):
        assert (await owner.post(url, json={"sha256": wrong})).status_code == 400, wrong
