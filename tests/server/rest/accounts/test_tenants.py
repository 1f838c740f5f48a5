"""Tenants, sign-in, policy and audit over REST."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.support.rest_client import PLATFORM, RestServer

from carrel.actions.accounts import sign_in, tenants
from carrel.core.text_validation import RESERVED_SLUGS

pytestmark = pytest.mark.anyio
ACME = {"slug": "acme", "name": "Acme", "owner": {"name": "Ada", "email": "ada@acme.example"}}


async def test_the_platform_creates_a_tenant_whose_owner_token_works(server: RestServer) -> None:
    created = await server.as_(PLATFORM).post("/v1/tenants", json=ACME)
    assert created.status_code == 201
    assert created.headers["cache-control"] == "no-store"
    body = created.json()
    fields = ["createdAt", "id", "name", "ownerId", "ownerToken", "slug", "updatedAt"]
    assert sorted(body) == fields
    owner = server.as_(body["ownerToken"])
    mine = (await owner.get("/v1/tenants/me")).json()
    assert mine == {name: body[name] for name in ("id", "slug", "name", "createdAt", "updatedAt")}
    assert mine["createdAt"].endswith("Z")
    person = (await owner.get(f"/v1/people/{body['ownerId']}")).json()
    assert (person["name"], person["email"], person["role"]) == ("Ada", "ada@acme.example", "owner")


async def test_only_the_platform_creates_tenants_and_it_does_nothing_else(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    assert (await owner.post("/v1/tenants", json=ACME)).status_code == 403
    assert (await server.as_(None).post("/v1/tenants", json=ACME)).status_code == 401
    platform = server.as_(PLATFORM)
    for path in ("tenants/me", "people", "keys", "secrets", "policy", "agents", "audit"):
        assert (await platform.get(f"/v1/{path}")).status_code == 403, path


async def test_of_concurrent_creates_with_one_slug_exactly_one_succeeds(server: RestServer) -> None:
    platform = server.as_(PLATFORM)
    answers = await asyncio.gather(*(platform.post("/v1/tenants", json=ACME) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]
    lost = next(answer.json() for answer in answers if answer.status_code == 409)
    assert (lost["error"], lost["details"]) == ("conflict", {"slug": "acme"})


async def test_an_invalid_tenant_is_400(server: RestServer) -> None:
    wrongs: list[dict[str, Any]] = [
        *({"slug": slug} for slug in ("", "A", "a b", "a\n", "_catalog", 1, None, "x" * 64)),
        *({"slug": slug} for slug in sorted(RESERVED_SLUGS)),
        *({"name": name} for name in ("", " ", "a\x00b", "a\n", "a\u2028", "x" * 201, None)),
        {"owner": None},
        {"owner": {"name": "Ada"}},
        {"owner": {"name": "Ada", "email": "no address"}},
        {"owner": {"name": "Ada", "email": "ada@x", "role": "owner"}},
        {"tenant": "mine"},
    ]
    for wrong in wrongs:
        answer = await server.as_(PLATFORM).post("/v1/tenants", json={**ACME, **wrong})
        assert answer.status_code == 400, (wrong, answer.text)
        assert answer.json()["error"] == "validation_error"


async def test_a_body_that_is_not_valid_json_is_400(server: RestServer) -> None:
    for raw in [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff",
        b'{"slug": "acme", "name": "\\ud800", "owner": {"name": "A", "email": "a@b"}}',
        b'{"slug": "acme", "name": "\xed\xa0\x80", "owner": {"name": "A", "email": "a@b"}}',
        b'{"slug":' * 5000,
    ]:
        answer = await server.as_(PLATFORM).post("/v1/tenants", content=raw)
        assert answer.status_code == 400, answer.text


async def test_renaming_a_tenant_needs_tenant_admin(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    renamed = await owner.patch("/v1/tenants/me", json={"name": "Acme & Sons"})
    assert (renamed.status_code, renamed.json()["name"]) == (200, "Acme & Sons")
    assert (await owner.get("/v1/tenants/me")).json() == renamed.json()
    assert (await owner.patch("/v1/tenants/me", json={})).json() == renamed.json()
    for wrong in ({"name": None}, {"slug": "other"}, {"name": ""}):
        assert (await owner.patch("/v1/tenants/me", json=wrong)).status_code == 400
    reader = await server.key(owner, scopes=["tenant:read"])
    assert (await reader.get("/v1/tenants/me")).status_code == 200
    assert (await reader.patch("/v1/tenants/me", json={"name": "Mine"})).status_code == 403


async def test_a_code_signs_in_once(server: RestServer) -> None:
    await tenants.bootstrap(server.ports)
    code = await sign_in.issue_owner_code(server.ports, tenants.DEFAULT_TENANT_SLUG)
    anonymous = server.as_(None)
    answers = await asyncio.gather(
        *(anonymous.post("/v1/sign-in", json={"code": code}) for _ in range(4))
    )
    assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401]
    created = next(answer for answer in answers if answer.status_code == 200)
    assert created.headers["cache-control"] == "no-store"
    assert sorted(created.json()) == ["person", "tenant", "token"]
    signed_in = server.as_(created.json()["token"])
    assert (await signed_in.get("/v1/tenants/me")).json() == created.json()["tenant"]
    people = (await signed_in.get("/v1/people")).json()["items"]
    assert people == [created.json()["person"]]


async def test_an_invalid_code_is_400(server: RestServer) -> None:
    for code in ["", 1, None, "x" * 201]:
        answer = await server.as_(None).post("/v1/sign-in", json={"code": code})
        assert answer.status_code == 400


async def test_an_unknown_code_is_401(server: RestServer) -> None:
    for code in ["x", "\x00", "é", "code_" + "A" * 43]:
        answer = await server.as_(None).post("/v1/sign-in", json={"code": code})
        assert (answer.status_code, answer.json()["error"]) == (401, "unauthenticated")


async def test_a_policy_is_read_and_replaced(server: RestServer, owner: httpx.AsyncClient) -> None:
    before = (await owner.get("/v1/policy")).json()
    assert before["redaction"] == "redact"
    changed = {**before, "redaction": "warn", "runRetentionDays": 30}
    answer = await owner.put("/v1/policy", json=changed)
    assert (answer.status_code, answer.json()) == (200, changed)
    assert (await owner.get("/v1/policy")).json() == changed
    for wrong in ({"redaction": "maybe"}, {"limits": {"maxFiles": 0}}, {"unknown": 1}):
        assert (await owner.put("/v1/policy", json=wrong)).status_code == 400
    reader = await server.key(owner, scopes=["tenant:read"])
    assert (await reader.get("/v1/policy")).status_code == 200
    assert (await reader.put("/v1/policy", json=before)).status_code == 403


async def test_the_audit_is_paged_from_the_newest(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    await server.create_tenant("globex")
    for number in range(4):
        await owner.post("/v1/templates", json={"slug": f"t{number}", "name": "T"})
    entries: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await owner.get("/v1/audit", params={"limit": 2, "cursor": cursor})).json()
        entries += page["items"]
        cursor = page["next"]
        assert len(entries) <= 5, "a page was repeated"
    assert [entry["why"] for entry in entries] == ["create a template"] * 4 + ["create the tenant"]
    assert sorted(entries[0]) == [
        *("action", "at", "by", "byName", "id", "key", "objects", "subjects", "why"),
    ]
    [owner_key] = (await owner.get("/v1/keys")).json()["items"]
    assert entries[0]["byName"] == "Ada"
    assert entries[0]["key"] == {"id": owner_key["id"], "name": "owner"}
    assert (entries[-1]["byName"], entries[-1]["key"]) == (None, None), "created by the platform"
    assert len({entry["id"] for entry in entries}) == 5


async def test_an_invalid_audit_page_is_400(owner: httpx.AsyncClient) -> None:
    for query in [
        "limit=0",
        "limit=501",
        "limit=x",
        "cursor=x",
        "cursor=-1",
        f"cursor={'9' * 19}",
        "what=1",
    ]:
        assert (await owner.get(f"/v1/audit?{query}")).status_code == 400


async def test_the_audit_needs_tenant_admin(server: RestServer, owner: httpx.AsyncClient) -> None:
    reader = await server.key(owner, scopes=["tenant:read"])
    assert (await reader.get("/v1/audit")).status_code == 403


async def test_a_repeated_create_makes_one_tenant(server: RestServer) -> None:
    platform = server.as_(PLATFORM)
    key = {"Idempotency-Key": "once"}
    first = await platform.post("/v1/tenants", json=ACME, headers=key)
    again = await platform.post("/v1/tenants", json=ACME, headers=key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert again.headers["openwop-idempotent-replay"] == "true"
