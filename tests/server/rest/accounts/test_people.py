"""People over REST."""

from __future__ import annotations

import asyncio
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.rest_client import RestServer, open_rest_server

pytestmark = pytest.mark.anyio
BOB = {"name": "Bob", "email": "bob@example.org", "role": "member"}


async def person(owner: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    created = await owner.post("/v1/people", json={**BOB, **more})
    assert created.status_code == 201, created.text
    return dict(created.json())


async def test_a_person_is_added_read_changed_and_removed(owner: httpx.AsyncClient) -> None:
    bob = await person(owner, title="Cook", timezone="Europe/Paris")
    assert {**BOB, "title": "Cook", "timezone": "Europe/Paris", "pronouns": None}.items() <= (
        bob.items()
    )
    url = f"/v1/people/{bob['id']}"
    assert (await owner.get(url)).json() == bob
    changed = await owner.patch(url, json={"title": None, "name": "Robert", "role": "admin"})
    assert changed.status_code == 200
    assert changed.json() == {
        **bob,
        "title": None,
        "name": "Robert",
        "role": "admin",
        "updatedAt": changed.json()["updatedAt"],
    }
    assert (await owner.patch(url, json={})).json() == changed.json()
    removed = await owner.delete(url)
    assert (removed.status_code, removed.content) == (204, b"")
    assert (await owner.get(url)).status_code == 404
    assert (await owner.delete(url)).status_code == 404


WRONG: list[dict[str, Any]] = [
    *({"name": name} for name in ("", " a", "a\x00", "a\n", "a\x85", "x" * 201, 1, None)),
    *({"email": at} for at in ("", "bob", "a@b@c", "a@b\n", "a b@c", "x" * 250 + "@a", None)),
    *({"role": role} for role in ("boss", "Owner", "", 1, None)),
    *({"title": title} for title in ("", "a\nb", "\x00", "x" * 201, 1)),
    *({"pronouns": value} for value in ("", "a\tb", 1)),
    *({"timezone": zone} for zone in ("", "Mars", "../x", "a\x00", "localtime", "x" * 65)),
    {"id": "per_1"},
    {"tenant": "globex"},
]


async def test_an_invalid_person_is_400(owner: httpx.AsyncClient) -> None:
    url = f"/v1/people/{(await person(owner, email='carol@example.org'))['id']}"
    for wrong in WRONG:
        for attempt in (
            await owner.post("/v1/people", json={**BOB, **wrong}),
            await owner.patch(url, json=wrong),
        ):
            assert attempt.status_code == 400, (wrong, attempt.text)
            assert set(attempt.json()) <= {"error", "message", "details"}


async def test_an_unknown_id_is_404(owner: httpx.AsyncClient) -> None:
    for id in ("per_0", "%00", "a%2Fb", "%F0%9F%98%80", "x" * 3000, "a%0A"):
        url = f"/v1/people/{id}"
        assert (await owner.get(url)).status_code == 404, id
        assert (await owner.patch(url, json={"name": "X"})).status_code == 404, id
        assert (await owner.delete(url)).status_code == 404, id


async def test_an_email_address_is_unique_regardless_of_case(owner: httpx.AsyncClient) -> None:
    await person(owner)
    again = await owner.post("/v1/people", json={**BOB, "email": "BOB@example.org"})
    assert again.status_code == 409
    assert again.json()["details"] == {"email": "bob@example.org"}


async def test_the_last_owner_cannot_step_down_or_be_removed(owner: httpx.AsyncClient) -> None:
    [ada] = (await owner.get("/v1/people")).json()["items"]
    url = f"/v1/people/{ada['id']}"
    assert (await owner.patch(url, json={"role": "admin"})).status_code == 409
    assert (await owner.delete(url)).status_code == 409


async def test_of_two_owners_who_step_down_concurrently_one_stays(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    [ada] = (await owner.get("/v1/people")).json()["items"]
    bob = await person(owner, role="owner")
    other = await server.person(owner, bob["id"])
    answers = await asyncio.gather(
        owner.patch(f"/v1/people/{ada['id']}", json={"role": "member"}),
        other.patch(f"/v1/people/{bob['id']}", json={"role": "member"}),
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409]


async def test_a_member_reads_and_an_admin_writes_but_not_owners(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    [ada] = (await owner.get("/v1/people")).json()["items"]
    bob = await person(owner)
    carol = await person(owner, email="carol@example.org", role="admin")
    member = await server.person(owner, bob["id"])
    admin = await server.person(owner, carol["id"])
    assert (await member.get("/v1/people")).status_code == 200
    assert (await member.post("/v1/people", json=BOB)).status_code == 403
    assert (await member.patch(f"/v1/people/{bob['id']}", json={})).status_code == 403
    assert (await member.delete(f"/v1/people/{bob['id']}")).status_code == 403
    assert (await admin.patch(f"/v1/people/{bob['id']}", json={"name": "R"})).status_code == 200
    assert (await admin.patch(f"/v1/people/{ada['id']}", json={"name": "R"})).status_code == 403
    assert (await admin.patch(f"/v1/people/{bob['id']}", json={"role": "owner"})).status_code == 403


async def test_without_a_credential_every_path_is_401(server: RestServer) -> None:
    anonymous = server.as_(None)
    for path in ("people", "people/per_0", "keys", "secrets", "agents", "templates", "nowhere"):
        answer = await anonymous.get(f"/v1/{path}")
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_pages_are_consecutive(owner: httpx.AsyncClient) -> None:
    for number in range(4):
        await person(owner, email=f"bob{number}@example.org")
    first = (await owner.get("/v1/people?limit=3")).json()
    second = (await owner.get(f"/v1/people?limit=3&cursor={first['next']}")).json()
    complete = (await owner.get("/v1/people")).json()
    assert (first["items"] + second["items"], second["next"]) == (complete["items"], None)
    assert len(complete["items"]) == 5


async def test_an_invalid_page_is_400(owner: httpx.AsyncClient) -> None:
    for query in ("limit=0", "limit=501", "limit=1.5", "limit=", "cursor=%00", "cursor=a+b", "x=1"):
        assert (await owner.get(f"/v1/people?{query}")).status_code == 400, query


LISTS = ("people", "keys", "agents", "templates", "secrets")


async def test_an_unknown_cursor_is_400_and_named(owner: httpx.AsyncClient) -> None:
    for name in LISTS:
        wrong = ["-zzz", "_", "."] if name == "secrets" else ["zzz", "0", "per", "foo_" + "0" * 24]
        for cursor in wrong:
            answer = await owner.get(f"/v1/{name}?cursor={cursor}")
            assert answer.status_code == 400, (name, cursor)
            assert "cursor" in answer.json()["message"], answer.text


async def test_paging_continues_after_the_cursors_record_is_deleted(
    owner: httpx.AsyncClient,
) -> None:
    for number in range(3):
        await person(owner, email=f"bob{number}@example.org")
    first = (await owner.get("/v1/people?limit=3")).json()
    assert (await owner.delete(f"/v1/people/{first['next']}")).status_code == 204
    rest = await owner.get(f"/v1/people?limit=3&cursor={first['next']}")
    assert (rest.status_code, len(rest.json()["items"])) == (200, 1)


async def test_a_repeated_idempotency_key_runs_once(owner: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "abc"}
    first = await owner.post("/v1/people", json=BOB, headers=key)
    again = await owner.post("/v1/people", json=BOB, headers=key)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    other = await owner.post("/v1/people", json={**BOB, "name": "R"}, headers=key)
    assert (other.status_code, other.json()["error"]) == (409, "idempotency_key_mismatch")
    url = f"/v1/people/{first.json()['id']}"
    for _ in range(2):
        assert (await owner.delete(url, headers=key)).status_code == 204


async def test_a_request_whose_response_was_lost_is_not_executed_again(tmp_path: File) -> None:
    async with open_rest_server(tmp_path, forgetful=True) as server:
        owner = await server.create_tenant()
        key = {"Idempotency-Key": "abc"}
        created = [await owner.post("/v1/people", json=BOB, headers=key) for _ in range(2)]
        assert [answer.status_code for answer in created] == [201, 201]
        assert created[0].json() == created[1].json()
        url = f"/v1/people/{created[0].json()['id']}"
        done = [await owner.patch(url, json={"title": "Cook"}, headers=key) for _ in range(2)]
        assert [answer.json()["title"] for answer in done] == ["Cook", "Cook"]
        gone = [await owner.delete(url, headers=key) for _ in range(2)]
        assert [answer.status_code for answer in gone] == [204, 204]
