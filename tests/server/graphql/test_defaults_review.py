"""A default is accepted for all that inherit it, by persons only, on every protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import pytest
from tests.support.full_app import FullApp, open_full_app
from tests.support.graphql_client import execute_query, query_data, sha, write

from carrel.core.access import Permission

pytestmark = pytest.mark.anyio
MUTATION = """mutation($s: String) { acceptDefaultsUpdateBulk(filename: "GUARDRAILS.md",
  latestSha: $s) { accepted failed results { agentId success error } } }"""
ROLL_BACK = """mutation($s: String!) { rollBackDefaultsUpdateBulk(filename: "GUARDRAILS.md",
  acceptedSha: $s) { rolledBack failed results { agentId success error } } }"""
ENDPOINT = "/v1/defaults/pins/GUARDRAILS.md/accept"


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as app:
        yield app


async def test_a_default_is_accepted_by_a_person_for_all_that_inherit_it(server: FullApp) -> None:
    owner = await server.owner()
    for slug in ("first", "second"):
        created = await owner.post("/v1/agents", json={"slug": slug, "name": slug})
        assert created.status_code == 201, created.text
    await write(owner, "/v1/defaults/files/GUARDRAILS.md", "be better")
    service = await server.key(owner, Permission.TENANT_ADMIN, Permission.WORKSPACE_WRITE)

    refused = await service.post(ENDPOINT, json={"sha256": sha("be better")})
    assert refused.status_code == 403
    [error] = (await execute_query(service, MUTATION, s=sha("be better")))["errors"]
    assert error["extensions"]["code"] == "FORBIDDEN"
    unchanged = await owner.get("/v1/agents/first/files/GUARDRAILS.md")
    assert unchanged.json()["content"] != "be better"

    result = (await query_data(owner, MUTATION, s=sha("be better")))["acceptDefaultsUpdateBulk"]
    assert (result["accepted"], result["failed"]) == (2, 0)
    again = (await owner.post(ENDPOINT, json={"sha256": sha("be better")})).json()
    assert [row["changed"] for row in again["results"]] == [False, False]
    for slug in ("first", "second"):
        file = await owner.get(f"/v1/agents/{slug}/files/GUARDRAILS.md")
        assert file.json()["content"] == "be better"

    body = {"sha256": sha("be better")}
    rollback = ENDPOINT.replace("accept", "rollback")
    assert (await service.post(rollback, json=body)).status_code == 403
    [error] = (await execute_query(service, ROLL_BACK, s=sha("be better")))["errors"]
    assert error["extensions"]["code"] == "FORBIDDEN"
    result = (await query_data(owner, ROLL_BACK, s=sha("be better")))["rollBackDefaultsUpdateBulk"]
    assert (result["rolledBack"], result["failed"]) == (2, 0)
    repeated = (await owner.post(rollback, json=body)).json()
    assert (repeated["rolledBack"], [row["changed"] for row in repeated["results"]]) == (
        2,
        [False, False],
    )
    for slug in ("first", "second"):
        file = await owner.get(f"/v1/agents/{slug}/files/GUARDRAILS.md")
        assert file.json()["content"] == unchanged.json()["content"]
