"""Reading, listing, writing and deleting through the overlay endpoint."""

from __future__ import annotations

import asyncio
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.rest_client import RestServer, open_rest_server
from tests.support.rest_tenant import (
    SOUL,
    URL,
    create_member,
    create_overlay_agent,
    files_by_path,
    post_action,
    refused_action,
    run_action,
    sha,
)
from tests.support.stores import overwrite_content

from carrel.actions.accounts import credentials
from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.core.identifiers import Path, digest

pytestmark = pytest.mark.anyio
TEMPLATE, DEFAULTS = {"templateId": "sales"}, {"defaults": True}
LAYERS: list[dict[str, Any]] = [TEMPLATE, DEFAULTS]


@pytest.fixture
async def marco(owner: httpx.AsyncClient) -> str:
    return await create_overlay_agent(owner)


async def test_an_agents_file_is_read_rendered_and_raw_by_id_and_by_slug(
    owner: httpx.AsyncClient, marco: str
) -> None:
    for name in (marco, "marco"):
        result = await run_action(owner, "get", agentId=name, path="SOUL.md")
        assert result == {
            "ok": True,
            "content": "Marco is brisk",
            "source": "template",
            "sha256": sha(SOUL),
            "renderedSha256": sha("Marco is brisk"),
        }
    raw = await run_action(owner, "get", agentId=marco, path="SOUL.md", raw=True)
    assert (raw["content"], raw["renderedSha256"]) == (SOUL, sha("Marco is brisk"))
    for almost in ("true", 1):
        result = await run_action(owner, "get", agentId=marco, path="SOUL.md", raw=almost)
        assert result["content"] == "Marco is brisk"


@pytest.mark.parametrize(
    ("path", "source"),
    [("GUARDRAILS.md", "template-pinned"), ("SOUL.md", "template"), ("ROUTER.md", "defaults")],
)
async def test_every_file_has_its_source_and_override_state(
    owner: httpx.AsyncClient, marco: str, path: str, source: str
) -> None:
    row = (await files_by_path(owner, agentId=marco))[path]
    assert (row["source"], row["overridden"]) == (source, False)
    mine = {"agentId": marco, "path": path}
    await run_action(owner, "put", content="mine {{AGENT_NAME}}", acceptTemplateUpdate=True, **mine)
    row = (await files_by_path(owner, agentId=marco))[path]
    pinned = path == "GUARDRAILS.md"
    override = "agent-override-pinned" if pinned else "agent-override"
    rendered = "mine {{AGENT_NAME}}" if pinned else "mine Marco"
    assert (row["source"], row["overridden"]) == (override, True)
    assert (row["sha256"], row["renderedSha256"]) == (sha("mine {{AGENT_NAME}}"), sha(rendered))
    assert (await run_action(owner, "get", **mine))["content"] == rendered
    await run_action(owner, "delete", **mine)
    assert (await files_by_path(owner, agentId=marco))[path]["source"] == source


async def test_a_missing_file_is_null_and_not_an_error(
    owner: httpx.AsyncClient, marco: str
) -> None:
    expected = {"ok": True, "content": None, "sha256": "", "renderedSha256": ""}
    targets: list[dict[str, Any]] = [{"agentId": marco}, TEMPLATE, DEFAULTS]
    for target, source in zip(targets, ("defaults", "template", "defaults"), strict=True):
        result = await run_action(owner, "get", path="no-such.md", **target)
        assert result == {**expected, "source": source}


async def test_an_empty_override_wins(owner: httpx.AsyncClient, marco: str) -> None:
    await run_action(owner, "put", agentId=marco, path="SOUL.md", content="")
    result = await run_action(owner, "get", agentId=marco, path="SOUL.md")
    assert (result["content"], result["source"], result["sha256"]) == (
        "",
        "agent-override",
        sha(""),
    )


async def test_template_and_default_files_are_read_unrendered(
    owner: httpx.AsyncClient, marco: str
) -> None:
    result = await run_action(owner, "get", path="SOUL.md", **TEMPLATE)
    assert (result["content"], result["source"]) == (SOUL, "template")
    assert result["sha256"] == result["renderedSha256"] == sha(SOUL)
    result = await run_action(owner, "get", path="ROUTER.md", **DEFAULTS)
    assert (result["content"], result["source"]) == ("route {{HUMAN_NAME}}", "defaults")


async def test_a_list_has_content_only_if_include_content_is_true(
    owner: httpx.AsyncClient, marco: str
) -> None:
    for almost in (None, False, "true", 1):
        listed = await files_by_path(owner, agentId=marco, includeContent=almost)
        assert all("content" not in row for row in listed.values())
    full = await files_by_path(owner, agentId=marco, includeContent=True)
    assert full["SOUL.md"] == {
        "path": "SOUL.md",
        "source": "template",
        "sha256": sha(SOUL),
        "renderedSha256": sha("Marco is brisk"),
        "overridden": False,
        "content": "Marco is brisk",
    }
    bare = {path: {**row} for path, row in full.items()}
    for row in bare.values():
        del row["content"]
    assert bare == listed
    assert list(full) == sorted(full)
    raw = await files_by_path(owner, agentId=marco, includeContent=True, raw=True)
    assert (raw["SOUL.md"]["content"], raw["SOUL.md"]["sha256"]) == (SOUL, sha(SOUL))


async def test_a_layer_lists_only_its_own_files_with_their_hashes(
    owner: httpx.AsyncClient, marco: str
) -> None:
    listed = await files_by_path(owner, **TEMPLATE)
    assert set(listed) == {"GUARDRAILS.md", "SOUL.md", "IDENTITY.md"}
    assert listed["SOUL.md"] == {
        "path": "SOUL.md",
        "source": "template",
        "sha256": sha(SOUL),
        "renderedSha256": sha(SOUL),
        "overridden": False,
    }
    full = await files_by_path(owner, includeContent=True, **DEFAULTS)
    assert "SOUL.md" not in full or full["SOUL.md"]["content"] != SOUL
    router = full["ROUTER.md"]
    assert (router["source"], router["content"]) == ("defaults", "route {{HUMAN_NAME}}")


async def test_a_list_is_304_until_anything_in_it_changes(
    server: RestServer, owner: httpx.AsyncClient, marco: str
) -> None:
    bob = await create_member(owner)
    body = {"action": "list", "agentId": marco, "includeContent": True}

    async def changed_by(method: str, url: str, json: Any) -> None:
        before = (await owner.post(URL, json=body)).headers["etag"]
        cached = {"If-None-Match": f'"other", {before}'}
        same = await owner.post(URL, json=body, headers=cached)
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", before)
        created = await owner.request(method, url, json=json)
        assert created.status_code in (200, 204), created.text
        fresh = await owner.post(URL, json=body, headers=cached)
        assert (fresh.status_code, fresh.headers["etag"] != before) == (200, True), url

    await changed_by("PUT", f"/v1/agents/{marco}/files/a.md", {"content": "x"})
    await changed_by("PUT", "/v1/templates/sales/files/b.md", {"content": "x"})
    await changed_by("PUT", "/v1/defaults/files/c.md", {"content": "x"})
    await changed_by("PATCH", f"/v1/agents/{marco}", {"name": "Polo"})
    await changed_by("PATCH", f"/v1/agents/{marco}", {"humanPairId": bob["id"]})
    await changed_by("PATCH", f"/v1/people/{bob['id']}", {"title": "Captain"})
    await changed_by("PUT", "/v1/policy", {"classes": [{"pattern": "z.md", "class": "pinned"}]})
    forms = [{}, {"includeContent": True}, {"includeContent": True, "raw": True}]
    tags = {
        (await post_action(owner, "list", agentId=marco, **form)).headers["etag"] for form in forms
    }
    assert len(tags) == 3


async def test_only_a_list_honours_if_none_match(owner: httpx.AsyncClient, marco: str) -> None:
    body = {"action": "put", "agentId": marco, "path": "a.md", "content": "x"}
    assert (await owner.post(URL, json=body, headers={"If-None-Match": "*"})).status_code == 200
    assert (await run_action(owner, "get", agentId=marco, path="a.md"))["content"] == "x"


async def test_a_pinned_file_is_written_only_if_the_flag_is_true(
    owner: httpx.AsyncClient, marco: str
) -> None:
    mine = {"agentId": marco, "path": "GUARDRAILS.md", "content": "mine"}
    flags: list[dict[str, Any]] = [{}, *({"acceptTemplateUpdate": x} for x in ("true", 1, False))]
    for flag in flags:
        status, error = await refused_action(owner, "put", **mine, **flag)
        assert (status, "pinned" in error, "acceptTemplateUpdate" in error) == (403, True, True)
        assert (await run_action(owner, "get", agentId=marco, path="GUARDRAILS.md"))[
            "content"
        ] == "be good"
    await run_action(owner, "put", acceptTemplateUpdate=True, **mine)
    for target in LAYERS:
        await run_action(owner, "put", path="GUARDRAILS.md", content="be better", **target)
    await run_action(owner, "delete", agentId=marco, path="GUARDRAILS.md")
    result = await run_action(owner, "get", agentId=marco, path="GUARDRAILS.md")
    assert (result["content"], result["source"]) == ("be good", "template-pinned")


async def test_user_md_cannot_be_written_on_an_agent(owner: httpx.AsyncClient, marco: str) -> None:
    for more in ({}, {"acceptTemplateUpdate": True}):
        status, error = await refused_action(
            owner, "put", agentId=marco, path="USER.md", content="x", **more
        )
        assert (status, "managed" in error) == (403, True)
    assert (await refused_action(owner, "delete", agentId=marco, path="USER.md"))[0] == 403
    for target in LAYERS:
        await run_action(owner, "put", path="USER.md", content="for {{HUMAN_NAME}}!", **target)
    assert (await run_action(owner, "get", agentId=marco, path="USER.md"))["content"] == "for —!"


async def test_deleting_a_missing_file_succeeds(owner: httpx.AsyncClient, marco: str) -> None:
    targets: list[dict[str, Any]] = [{"agentId": marco}, *LAYERS]
    for target in targets:
        for _ in range(2):
            await run_action(owner, "delete", path="no-such.md", **target)
    for path in ("SOUL.md", "GUARDRAILS.md"):
        before = await run_action(owner, "get", agentId=marco, path=path)
        await run_action(owner, "delete", agentId=marco, path=path)
        assert await run_action(owner, "get", agentId=marco, path=path) == before


async def test_deleting_a_template_file_reveals_the_default(
    owner: httpx.AsyncClient, marco: str
) -> None:
    await run_action(owner, "put", path="SOUL.md", content="plain", **DEFAULTS)
    for path in ("SOUL.md", "GUARDRAILS.md"):
        await run_action(owner, "delete", path=path, **TEMPLATE)
    listed = await files_by_path(owner, agentId=marco)
    assert listed["SOUL.md"]["source"] == "defaults"
    assert listed["GUARDRAILS.md"]["source"] == "template-pinned"


async def test_writing_the_inherited_content_creates_no_override(
    owner: httpx.AsyncClient, marco: str
) -> None:
    for content in (SOUL, "mine", SOUL):
        await run_action(owner, "put", agentId=marco, path="SOUL.md", content=content)
        row = (await files_by_path(owner, agentId=marco))["SOUL.md"]
        assert row["overridden"] is (content == "mine")


async def test_a_write_may_be_conditional_on_source_and_base_digest(
    owner: httpx.AsyncClient, marco: str
) -> None:
    mine = {"agentId": marco, "path": "SOUL.md"}
    for wrong in ({"baseSha256": sha("x")}, {"baseSha256": ""}, {"ifSource": "agent-override"}):
        assert (await refused_action(owner, "put", content="mine", **mine, **wrong))[0] == 409
    await run_action(owner, "put", content="1", ifSource="template", baseSha256=sha(SOUL), **mine)
    rivals = [
        post_action(owner, "put", content=f"rival {n}", baseSha256=sha("1"), **mine)
        for n in range(4)
    ]
    answers = await asyncio.gather(*rivals)
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    new = {"agentId": marco, "path": "new.md", "baseSha256": ""}
    await run_action(owner, "put", content="x", **new)
    assert (await refused_action(owner, "put", content="y", **new))[0] == 409


async def test_a_file_that_is_too_large_is_413(owner: httpx.AsyncClient, marco: str) -> None:
    big = "x" * (2**20 + 1)
    assert (await refused_action(owner, "put", agentId=marco, path="a.md", content=big))[0] == 413


async def test_an_unreadable_file_is_reported_by_name_and_the_others_are_listed(
    tmp_path: File,
) -> None:
    async with open_rest_server(tmp_path) as server:
        owner = await server.create_tenant()
        marco = await create_overlay_agent(owner)
        rules = digest(b"be good")
        warm = {"action": "list", "agentId": marco, "includeContent": True, "raw": True}
        tag = (await owner.post(URL, json=warm)).headers["etag"]
        overwrite_content(tmp_path, rules, None)
        same = await owner.post(URL, json=warm, headers={"If-None-Match": tag})
        assert same.status_code == 304, "a 304 reads no content"
        listed = await post_action(owner, "list", agentId=marco, includeContent=True)
        assert "etag" not in listed.headers
        by_path = {row["path"]: row for row in listed.json()["files"]}
        broken = by_path["GUARDRAILS.md"]
        assert "GUARDRAILS.md" in broken["error"]
        assert not {"content", "renderedSha256"} & set(broken)
        assert by_path["SOUL.md"]["content"] == "Marco is brisk"
        assert [path for path in by_path if "error" in by_path[path]] == ["GUARDRAILS.md"]
        status, error = await refused_action(owner, "get", agentId=marco, path="GUARDRAILS.md")
        assert (status, "GUARDRAILS.md" in error, "be good" in error) == (500, True, False)
        overwrite_content(tmp_path, rules, b"be evil")
        status, error = await refused_action(owner, "get", agentId=marco, path="GUARDRAILS.md")
        assert (status, "GUARDRAILS.md" in error, "evil" in error) == (500, True, False)
        overwrite_content(tmp_path, rules, b"be good")
        again = await post_action(owner, "list", agentId=marco, includeContent=True)
        assert "etag" in again.headers
        assert not [row for row in again.json()["files"] if "error" in row]


async def test_a_binary_file_is_reported_by_name_and_the_others_are_listed(
    server: RestServer, owner: httpx.AsyncClient, marco: str
) -> None:
    token = owner.headers["authorization"].partition(" ")[2]
    actor = await credentials.authenticate(server.ports, token)
    stack = await stacks.agent_stack(server.ports, actor, marco)
    await files.put(server.ports, stack, Path("a.png"), b"\xff\x00", actor)
    assert (await refused_action(owner, "get", agentId=marco, path="a.png"))[0] == 409
    listed = await post_action(owner, "list", agentId=marco, includeContent=True)
    by_path = {row["path"]: row for row in listed.json()["files"]}
    assert ("a.png" in by_path["a.png"]["error"], "content" in by_path["a.png"]) == (True, False)
    assert by_path["a.png"]["sha256"] == by_path["a.png"]["renderedSha256"]
    assert by_path["SOUL.md"]["content"] == "Marco is brisk"
    assert "etag" in listed.headers
    assert "error" not in (await files_by_path(owner, agentId=marco))["a.png"]
