"""``carrel mcp`` as clients start it: a process that speaks over its stdin and stdout."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceListChangedNotification, ResourceUpdatedNotification
from tests.support.mcp_clients import MODERN, MODES, meta, text_of
from tests.support.server_process import (
    PLAIN,
    TOKEN,
    ServerProcess,
    carrel,
    command,
    environment,
    serving,
)

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("mode", MODES)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> File:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def live(store: File) -> Iterator[ServerProcess]:
    """A server on the very store that the commands open."""
    with serving(store) as found:
        head = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=found.url, headers=head, timeout=60, verify=PLAIN) as http:
            me = http.get("/v1/people").json()["items"][0]["id"]
            for slug in ("kate", "marco"):
                new = {"slug": slug, "name": slug.title(), "ownerId": me}
                made = http.post("/v1/agents", json=new)
                assert made.status_code == 201, made.text
        yield found


def spoken(lines: bytes, last: int, store: File, *arguments: str) -> list[dict[str, Any]]:
    """What it says to these lines, which end once the last of them is answered."""
    with subprocess.Popen(
        [*command(), "mcp", *arguments],
        env=environment(store, token=TOKEN),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # what a buffer had read ahead, communicate would leave there
    ) as program:
        assert program.stdin and program.stdout
        program.stdin.write(lines)
        told: list[dict[str, Any]] = []
        while not told or told[-1].get("id") != last:
            line = program.stdout.readline()
            assert line, program.communicate(timeout=120)[1]
            told.append(json.loads(line))
        rest, complaints = program.communicate(timeout=120)
    assert program.returncode == 0, complaints
    assert b"Traceback" not in complaints
    return [*told, *map(json.loads, rest.splitlines())]


@asynccontextmanager
async def started(
    store: File, *arguments: str, mode: str = MODERN, token: str = "", **more: Any
) -> AsyncIterator[Client]:
    env = environment(store, token=token) if token else environment(store)
    run = [*command(), "mcp", *arguments]
    program = StdioServerParameters(command=run[0], args=run[1:], env=env)
    async with Client(program, mode=mode, **more) as client:
        yield client


async def put(live: ServerProcess, path: str, content: str) -> None:
    async with live.http() as http:
        answer = await http.put(f"/v1/agents/kate/files/{path}", json={"content": content})
        assert answer.status_code == 200, answer.text


async def seen(client: Client) -> None:
    """The same by all ways: tools, a call, files, the prompt, an error."""
    assert "workspace_read" in [tool.name for tool in (await client.list_tools()).tools]
    told = await client.call_tool("who_am_i", {})
    assert told.structured_content is not None
    assert told.structured_content["agent_id"] == "kate"
    rows = (await client.list_resources()).resources
    [soul] = [row for row in rows if row.name == "SOUL.md"]
    assert (await client.read_resource(soul.uri)).contents
    assert (await client.get_prompt("system")).messages
    with pytest.raises(MCPError, match="no tool"):
        await client.call_tool("nothing", {})


@both
async def test_a_store_is_served_as_the_agent_itself(
    live: ServerProcess, store: File, mode: str
) -> None:
    async with started(store, "kate", mode=mode) as client:
        await seen(client)
        done = await client.call_tool("workspace_write", {"key": f"of kate {mode}", "value": "v"})
        assert not done.is_error, text_of(done)
    async with live.http() as http:
        kate = (await http.get("/v1/agents/kate")).json()["id"]
        item = (await http.get(f"/v1/agents/kate/items/of%20kate%20{mode}")).json()
        assert item["createdBy"] == kate


@both
async def test_a_store_is_served_as_whoever_has_the_token(
    live: ServerProcess, store: File, mode: str
) -> None:
    async with started(store, "kate", mode=mode, token=TOKEN) as client:
        await seen(client)


@both
async def test_a_server_is_spoken_to_with_a_token(
    live: ServerProcess, store: File, mode: str
) -> None:
    async with started(store, "kate", "--url", live.url, mode=mode, token=TOKEN) as client:
        await seen(client)
        written = await client.call_tool("workspace_write", {"key": "ü", "value": "ü" * 70_000})
        assert not written.is_error
        assert (await client.call_tool("workspace_read", {"key": "ü"})).structured_content


@both
async def test_what_several_may_hear_cannot_be_left(
    live: ServerProcess, store: File, mode: str
) -> None:
    for way in ((), ("--url", live.url)):
        arguments = ("kate", "--scope", "shared", *way)
        async with started(store, *arguments, mode=mode, token=TOKEN) as client:
            told = await client.call_tool("recall", {"query": "x"}, meta=meta(scope="main"))
            assert (told.is_error, "shared session" in text_of(told)) == (True, True)


@pytest.mark.filterwarnings("ignore:resources/:UserWarning")
async def test_a_client_that_subscribes_is_told_what_changes(
    live: ServerProcess, store: File
) -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()

    async def hear(message: Any) -> None:
        await heard.put(message)

    await put(live, "notes/a.md", "1")
    uri = "carrel://agents/kate/files/notes/a.md"
    async with started(store, "kate", mode="legacy", message_handler=hear) as client:
        able = client.server_capabilities.resources
        assert able is not None
        assert (able.subscribe, able.list_changed) == (True, True)
        await client.session.subscribe_resource(uri)
        await put(live, "notes/b.md", "of which nobody asked")
        assert isinstance(await asyncio.wait_for(heard.get(), 30), ResourceListChangedNotification)
        await put(live, "notes/a.md", "2")
        told = await asyncio.wait_for(heard.get(), 30)
        assert isinstance(told, ResourceUpdatedNotification)
        assert told.params.uri == uri
        await client.session.unsubscribe_resource(uri)
        with pytest.raises(MCPError):
            await client.session.subscribe_resource("carrel://agents/marco/files/SOUL.md")


@pytest.mark.parametrize("way", ["store", "server"])
async def test_a_client_that_listens_is_told_what_changes(
    live: ServerProcess, store: File, way: str
) -> None:
    await put(live, "notes/c.md", "1")
    uri = "carrel://agents/kate/files/notes/c.md"
    arguments = ("kate",) if way == "store" else ("kate", "--url", live.url)
    async with (
        started(store, *arguments, token=TOKEN) as client,
        client.listen(resource_subscriptions=[uri]) as changes,
    ):
        await put(live, "notes/c.md", "2")
        assert getattr(await anext(changes), "uri", None) == uri


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("nobody",), "no such agent"),
        (("kate", "--tenant", "nowhere"), "nowhere"),
        (("kate", "--token", "nonsense"), "credential"),
        (("kate", "--url", "http://127.0.0.1:9"), "no api token"),
        (("kate", "--data", "no such directory"), "no store"),
        (("kate", "--run", "run_none"), "no such run"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_line(
    live: ServerProcess, store: File, arguments: tuple[str, ...], why: str
) -> None:
    done = carrel(store, "mcp", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert why in done.stderr.lower()
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("way", ["store", "server"])
def test_hostile_lines_are_answered_and_nothing_else_is_said(
    live: ServerProcess, store: File, way: str
) -> None:
    lines = [b"{", b"null", b"[]", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', b"\xff", b""]
    last = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'
    arguments = ["kate"] if way == "store" else ["kate", "--url", live.url]
    told = spoken(b"\n".join([*lines, last, b""]), 2, store, *arguments)
    assert all(one["jsonrpc"] == "2.0" for one in told)


def test_a_server_that_is_not_there_is_an_error_and_no_silence(store: File) -> None:
    asked = b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n'
    [told] = spoken(asked, 7, store, "kate", "--url", "http://127.0.0.1:9")
    assert told["id"] == 7
    assert "no response from the server" in told["error"]["message"]


async def test_a_server_that_is_told_to_stop_ends_what_listens_to_it(tmp_path: File) -> None:
    with serving(tmp_path) as live:
        async with live.http() as http:
            made = await http.post("/v1/agents", json={"slug": "kate", "name": "Kate"})
            assert made.status_code == 201
        arguments = ("kate", "--url", live.url)
        async with (
            started(tmp_path, *arguments, token=TOKEN) as client,
            client.listen(resources_list_changed=True) as changes,
        ):
            live.process.send_signal(signal.SIGTERM)
            assert [change async for change in changes] == []
            assert await asyncio.to_thread(live.process.wait, 30) is not None
