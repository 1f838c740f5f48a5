"""The audit log over REST: filters, names, exports, and uses of keys."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from tests.support.rest_client import RestServer

from carrel.actions.accounts.credential_audit import store_credential_uses
from carrel.ports.attempt_limiter import CLIENT_ADDRESS
from carrel.ports.credential_uses import CredentialUses

pytestmark = pytest.mark.anyio


async def entries(client: httpx.AsyncClient, **query: str) -> list[dict[str, Any]]:
    response = await client.get("/v1/audit", params=query)
    assert response.status_code == 200, response.text
    page = response.json()
    assert page["total"] == len(page["items"]), "every page of this test is the only one"
    return list(page["items"])


async def test_edits_of_templates_and_defaults_are_audited_with_names(
    owner: httpx.AsyncClient,
) -> None:
    template = (await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})).json()
    headers = {"Carrel-Reason": "tone"}
    url = f"/v1/templates/{template['id']}/files/SOUL.md"
    await owner.put(url, json={"content": "# SOUL"}, headers=headers)
    await owner.put("/v1/defaults/files/SOUL.md", json={"content": "# SOUL"})

    default, edit = await entries(owner, action="write files")
    assert (edit["why"], edit["action"], edit["byName"]) == ("tone", "write files", "Ada")
    named = {"type": "template", "id": template["id"], "name": "Sales"}
    assert edit["objects"] == [named | {"path": None}, named | {"path": "SOUL.md"}]
    assert [item["path"] for item in default["objects"]] == [None, "SOUL.md"]
    of_template = await entries(owner, object=f"template/{template['id']}")
    assert [entry["why"] for entry in of_template] == ["tone", "create a template"]
    assert await entries(owner, object=f"file/template/{template['id']}/SOUL.md") == [edit]
    assert await entries(owner, object="template", action="write files") == [edit]
    assert await entries(owner, who=edit["by"], action="write files") == [default, edit]
    assert await entries(owner, to=edit["at"], object="template") == [of_template[1]]
    assert edit in await entries(owner, **{"from": edit["at"]})
    for query in ("from=yesterday", "to=2026-01-01", "unknown=1", "action=" + "a" * 61):
        assert (await owner.get(f"/v1/audit?{query}")).status_code == 400, query


async def test_the_audit_log_is_exported_whole(owner: httpx.AsyncClient) -> None:
    for number in range(3):
        await owner.post("/v1/templates", json={"slug": f"t{number}", "name": "=1+1"})
    exported = await owner.get("/v1/audit/export?object=template")
    assert exported.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(exported.text)))
    assert [row["why"] for row in rows] == ["create a template"] * 3
    assert {row["byName"] for row in rows} == {"Ada"}
    lines = (await owner.get("/v1/audit/export?format=json&object=template")).text.splitlines()
    assert [json.loads(line)["action"] for line in lines] == ["create a template"] * 3
    assert list(json.loads(lines[0])["names"].values()) == ["=1+1"]
    assert (await owner.get("/v1/audit/export?format=xml")).status_code == 400


async def test_a_key_is_audited_once_for_each_address_and_day(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    key = (await owner.post("/v1/keys", json={"name": "ci", "kind": "service"})).json()
    headers = {"Authorization": f"Bearer {key['key']}"}

    async def use(address: str) -> None:
        transport = httpx.ASGITransport(app=server.app, client=(address, 1))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://carrel", headers=headers
        ) as client:
            assert (await client.get("/v1/agents")).status_code != 401
        await store_credential_uses(server.ports)

    for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2"):
        await use(address)
    uses = await entries(owner, action="use a key", who=key["id"])
    assert [entry["why"].rpartition(" ")[2] for entry in uses] == ["192.0.2.2", "192.0.2.1"]
    assert uses[0]["objects"] == [{"type": "key", "id": key["id"], "path": None, "name": "ci"}]
    other_process = replace(server.ports, credential_uses=CredentialUses())
    tenant = owner_tenant(await owner.get("/v1/tenants/me"))
    token = CLIENT_ADDRESS.set("192.0.2.1")
    other_process.credential_uses.add(
        *(tenant, f"key/{key['id']}", "ci", key["id"]),
        server.ports.clock.now(),
    )
    CLIENT_ADDRESS.reset(token)
    await store_credential_uses(other_process)
    assert await entries(owner, action="use a key", who=key["id"]) == uses


async def test_an_expired_code_is_audited_as_a_refused_sign_in(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    tenant = owner_tenant(await owner.get("/v1/tenants/me"))
    token = CLIENT_ADDRESS.set("192.0.2.9")
    server.ports.credential_uses.add(tenant, "person/per_1", "web", "", server.ports.clock.now())
    CLIENT_ADDRESS.reset(token)
    await store_credential_uses(server.ports)
    [refused] = await entries(owner, action="refuse a sign-in")
    assert (refused["why"], refused["by"], refused["key"]) == (
        "refused an expired credential from 192.0.2.9",
        "platform",
        None,
    )


def owner_tenant(response: httpx.Response) -> str:
    return str(response.json()["id"])
