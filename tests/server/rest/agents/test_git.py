"""Git over HTTP: access, refusals and protocol responses."""

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
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


async def create_agent(owner: httpx.AsyncClient, slug: str = "marco", enabled: bool = True) -> str:
    config = {"workspaceGit": {"enabled": enabled}}
    created = await owner.post("/v1/agents", json={"slug": slug, "name": "M", "config": config})
    assert created.status_code == 201, created.text
    put = await owner.put(f"/v1/agents/{slug}/files/SOUL.md", json={"content": "calm"})
    assert put.status_code == 200, put.text
    return str(created.json()["id"])


def token(client: httpx.AsyncClient) -> str:
    return client.headers["Authorization"].partition(" ")[2]


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


def pkt_line(text: str) -> bytes:
    return f"{len(text) + 4:04x}{text}".encode()


def upload_request(advertisement: bytes) -> bytes:
    """The request that git sends after a ref advertisement."""
    tip = advertisement.split(b"\n0000", 1)[1][4:44].decode()
    return (
        pkt_line(f"want {tip} side-band-64k thin-pack ofs-delta\n") + b"0000" + pkt_line("done\n")
    )


async def test_refs_are_advertised_and_a_pack_is_sent(server: FullApp) -> None:
    owner = await server.owner()
    id = await create_agent(owner)
    refs = await owner.get(REFS)
    assert refs.status_code == 200
    assert refs.headers["content-type"] == "application/x-git-upload-pack-advertisement"
    assert "no-cache" in refs.headers["cache-control"]
    assert refs.content.startswith(b"001e# service=git-upload-pack\n0000")
    assert b"symref=HEAD:refs/heads/main" in refs.content
    assert b" filter" not in refs.content
    assert (await owner.get(REFS.replace("marco", id))).content == refs.content

    for body, more in (
        (upload_request(refs.content), {}),
        (gzip.compress(upload_request(refs.content)), {"Content-Encoding": "gzip"}),
    ):
        pack = await owner.post(PACK, content=body, headers={**KIND, **more})
        assert pack.status_code == 200
        assert pack.headers["content-type"] == "application/x-git-upload-pack-result"
        assert b"PACK" in pack.content


async def test_a_new_write_changes_the_advertised_refs(server: FullApp) -> None:
    owner = await server.owner()
    await create_agent(owner)
    before = (await owner.get(REFS)).content
    await owner.put("/v1/agents/marco/files/MEMORY.md", json={"content": "new"})
    assert (await owner.get(REFS)).content != before


async def test_a_token_is_accepted_as_bearer_or_as_basic_password(server: FullApp) -> None:
    owner = await server.owner()
    await create_agent(owner)
    anonymous = server.as_(None)
    for headers in (basic("x", token(owner)), basic("", token(owner)), basic("git", token(owner))):
        assert (await anonymous.get(REFS, headers=headers)).status_code == 200
    for wrong in (basic("x", "wrong"), basic(token(owner), ""), {"Authorization": "Basic %%%"}):
        assert (await anonymous.get(REFS, headers=wrong)).status_code == 401
    elsewhere = await anonymous.get("/v1/agents", headers=basic("x", token(owner)))
    assert elsewhere.status_code == 401
    assert elsewhere.headers["www-authenticate"] == "Bearer"


async def test_without_a_token_git_gets_a_basic_challenge(server: FullApp) -> None:
    for request in (
        server.as_(None).get(REFS),
        server.as_(None).get("/git/missing.git/info/refs?service=git-upload-pack"),
        server.as_(None).post(PACK, content=b"0000", headers=KIND),
        server.as_(None).post("/git/marco.git/git-receive-pack"),
    ):
        refused = await request
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == 'Basic realm="carrel"'
        assert refused.headers["content-type"] == "text/plain"


async def test_a_push_is_refused_with_a_text_message(server: FullApp) -> None:
    owner = await server.owner()
    await create_agent(owner)
    for refused in (
        await owner.get("/git/marco.git/info/refs?service=git-receive-pack"),
        await owner.post("/git/marco.git/git-receive-pack", content=b"0000"),
    ):
        assert refused.status_code == 403
        assert refused.headers["content-type"] == "text/plain"
        assert "read-only" in refused.text
    assert (await owner.get("/git/marco.git/info/refs")).status_code == 403


async def test_repositories_of_other_tenants_and_disabled_ones_are_404(server: FullApp) -> None:
    owner, other_owner = await server.owner(), await server.owner("globex")
    id = await create_agent(owner)
    other = await create_agent(owner, "plain", enabled=False)
    for client, name in (
        (other_owner, "marco"),
        (other_owner, id),
        (owner, "plain"),
        (owner, other),
        (owner, "missing"),
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


async def test_a_key_needs_workspace_read_and_a_bound_key_sees_only_its_agent(
    server: FullApp,
) -> None:
    owner = await server.owner()
    id = await create_agent(owner)
    other = await create_agent(owner, "other")
    reader = await server.key(owner, Permission.WORKSPACE_READ)
    assert (await reader.get(REFS)).status_code == 200
    writer = await server.key(owner, Permission.WORKSPACE_WRITE)
    assert (await writer.get(REFS)).status_code == 403
    assert (await writer.post(PACK, content=b"0000", headers=KIND)).status_code == 403
    bound = await server.key(owner, agent=id)
    assert (await bound.get(REFS)).status_code == 200
    assert (await bound.get(REFS.replace("marco", other))).status_code == 404


async def test_a_body_is_limited_compressed_or_not(server: FullApp) -> None:
    owner = await server.owner()
    await create_agent(owner)
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


def test_no_request_body_is_a_server_error(tmp_path: File) -> None:
    with asyncio.Runner() as runner:
        opening = open_full_app(tmp_path)
        server = runner.run(opening.__aenter__())
        owner = runner.run(server.owner())
        runner.run(create_agent(owner))
        request = upload_request(runner.run(owner.get(REFS)).content)

        @given(st.lists(PIECES | st.binary(max_size=8), max_size=8).map(b"".join))
        @settings(max_examples=50, deadline=None)
        def send(body: bytes) -> None:
            full_body = body.replace(b"TIP", request[: request.index(b"\n") + 1])
            answer = runner.run(owner.post(PACK, content=full_body, headers=KIND))
            assert answer.status_code in {200, 400}, answer.text

        send()
        runner.run(opening.__aexit__(None, None, None))
