"""Git over HTTP: who is let in, what is refused, and that what comes is what git understands."""

from __future__ import annotations

import asyncio
import gzip
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path as File

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.full_app import FullApp, open_full_app

from carrel.core.access import Permission

pytestmark = pytest.mark.anyio

REFS = "/git/marco.git/info/refs?service=git-upload-pack"
PACK = "/git/marco.git/git-upload-pack"
KIND = {"Content-Type": "application/x-git-upload-pack-request"}


@pytest.fixture
async def house(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


async def hired(owner: httpx.AsyncClient, slug: str = "marco", enabled: bool = True) -> str:
    config = {"workspaceGit": {"enabled": enabled}}
    made = await owner.post("/v1/agents", json={"slug": slug, "name": "M", "config": config})
    assert made.status_code == 201, made.text
    put = await owner.put(f"/v1/agents/{slug}/files/SOUL.md", json={"content": "calm"})
    assert put.status_code == 200, put.text
    return str(made.json()["id"])


def token(client: httpx.AsyncClient) -> str:
    return client.headers["Authorization"].partition(" ")[2]


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


def line(text: str) -> bytes:
    return f"{len(text) + 4:04x}{text}".encode()


def asking(told: bytes) -> bytes:
    """What git sends after it was told what there is."""
    tip = told.split(b"\n0000", 1)[1][4:44].decode()
    return line(f"want {tip} side-band-64k thin-pack ofs-delta\n") + b"0000" + line("done\n")


async def test_refs_are_told_and_a_pack_is_given(house: FullApp) -> None:
    owner = await house.owner()
    id = await hired(owner)
    told = await owner.get(REFS)
    assert told.status_code == 200
    assert told.headers["content-type"] == "application/x-git-upload-pack-advertisement"
    assert "no-cache" in told.headers["cache-control"]
    assert told.content.startswith(b"001e# service=git-upload-pack\n0000")
    assert b"symref=HEAD:refs/heads/main" in told.content
    assert b" filter" not in told.content
    assert (await owner.get(REFS.replace("marco", id))).content == told.content

    for body, more in (
        (asking(told.content), {}),
        (gzip.compress(asking(told.content)), {"Content-Encoding": "gzip"}),
    ):
        pack = await owner.post(PACK, content=body, headers={**KIND, **more})
        assert pack.status_code == 200
        assert pack.headers["content-type"] == "application/x-git-upload-pack-result"
        assert b"PACK" in pack.content


async def test_what_was_just_written_is_told(house: FullApp) -> None:
    owner = await house.owner()
    await hired(owner)
    before = (await owner.get(REFS)).content
    await owner.put("/v1/agents/marco/files/MEMORY.md", json={"content": "new"})
    assert (await owner.get(REFS)).content != before


async def test_a_token_comes_as_bearer_or_as_a_password(house: FullApp) -> None:
    owner = await house.owner()
    await hired(owner)
    nobody = house.as_(None)
    for headers in (basic("x", token(owner)), basic("", token(owner)), basic("git", token(owner))):
        assert (await nobody.get(REFS, headers=headers)).status_code == 200
    for wrong in (basic("x", "wrong"), basic(token(owner), ""), {"Authorization": "Basic %%%"}):
        assert (await nobody.get(REFS, headers=wrong)).status_code == 401
    elsewhere = await nobody.get("/v1/agents", headers=basic("x", token(owner)))
    assert elsewhere.status_code == 401
    assert elsewhere.headers["www-authenticate"] == "Bearer"


async def test_a_stranger_is_asked_for_a_password(house: FullApp) -> None:
    for ask in (
        house.as_(None).get(REFS),
        house.as_(None).get("/git/nobody.git/info/refs?service=git-upload-pack"),
        house.as_(None).post(PACK, content=b"0000", headers=KIND),
        house.as_(None).post("/git/marco.git/git-receive-pack"),
    ):
        refused = await ask
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == 'Basic realm="carrel"'
        assert refused.headers["content-type"] == "text/plain"


async def test_nothing_is_pushed_and_that_is_said_in_words(house: FullApp) -> None:
    owner = await house.owner()
    await hired(owner)
    for refused in (
        await owner.get("/git/marco.git/info/refs?service=git-receive-pack"),
        await owner.post("/git/marco.git/git-receive-pack", content=b"0000"),
    ):
        assert refused.status_code == 403
        assert refused.headers["content-type"] == "text/plain"
        assert "read-only" in refused.text
    assert (await owner.get("/git/marco.git/info/refs")).status_code == 403


async def test_others_repositories_and_those_that_are_off_are_not_there(house: FullApp) -> None:
    owner, stranger = await house.owner(), await house.owner("globex")
    id = await hired(owner)
    other = await hired(owner, "plain", enabled=False)
    for client, name in (
        (stranger, "marco"),
        (stranger, id),
        (owner, "plain"),
        (owner, other),
        (owner, "nobody"),
        (owner, "..%2F..%2Fmarco"),
        (owner, "%00"),
    ):
        for answer in (
            await client.get(REFS.replace("marco", name)),
            await client.post(PACK.replace("marco", name), content=b"0000", headers=KIND),
        ):
            assert answer.status_code == 404, (name, answer.text)
    await owner.patch("/v1/agents/marco", json={"config": {}})
    assert (await owner.get(REFS)).status_code == 404


async def test_a_key_needs_to_read_and_sees_no_other_agent_than_its_own(house: FullApp) -> None:
    owner = await house.owner()
    id = await hired(owner)
    other = await hired(owner, "other")
    reader = await house.key(owner, Permission.WORKSPACE_READ)
    assert (await reader.get(REFS)).status_code == 200
    writer = await house.key(owner, Permission.WORKSPACE_WRITE)
    assert (await writer.get(REFS)).status_code == 403
    assert (await writer.post(PACK, content=b"0000", headers=KIND)).status_code == 403
    bound = await house.key(owner, agent=id)
    assert (await bound.get(REFS)).status_code == 200
    assert (await bound.get(REFS.replace("marco", other))).status_code == 404


async def test_a_body_is_bounded_packed_or_not(house: FullApp) -> None:
    owner = await house.owner()
    await hired(owner)
    packed = {**KIND, "Content-Encoding": "gzip"}
    for body, headers, status in (
        (b"x" * (2**20 + 1), KIND, 413),
        (gzip.compress(bytes(9 * 2**20)), packed, 413),
        (b"not packed", packed, 400),
        (gzip.compress(b"0000")[:-3], packed, 400),
        (b"0000", {**KIND, "Content-Encoding": "br"}, 400),
        (b"0000", {"Content-Type": "text/plain"}, 400),
        (b"0000", {}, 400),
    ):
        answer = await owner.post(PACK, content=body, headers=headers)
        assert answer.status_code == status, (headers, answer.text)


PIECES = st.sampled_from(
    [
        b"0000",
        b"0001",
        b"0009done\n",
        b"0032want " + b"0" * 40 + b"\n",
        b"0032have " + b"1" * 40 + b"\n",
        b"000cdeepen 1",
        b"0014deepen 99999999999",
        b"0035shallow " + b"2" * 40,
        b"TIP",
    ]
)


def test_whatever_is_sent_is_never_our_failure(tmp_path: File) -> None:
    with asyncio.Runner() as runner:
        opening = open_full_app(tmp_path)
        house = runner.run(opening.__aenter__())
        owner = runner.run(house.owner())
        runner.run(hired(owner))
        told = asking(runner.run(owner.get(REFS)).content)

        @given(st.lists(PIECES | st.binary(max_size=8), max_size=8).map(b"".join))
        @settings(max_examples=100, deadline=None)
        def sent(body: bytes) -> None:
            whole_body = body.replace(b"TIP", told[: told.index(b"\n") + 1])
            answer = runner.run(owner.post(PACK, content=whole_body, headers=KIND))
            assert answer.status_code in {200, 400}, answer.text

        sent()
        runner.run(opening.__aexit__(None, None, None))
