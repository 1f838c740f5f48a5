"""``carrel mcp`` as clients start it: a process on stdin and stdout."""

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
from mcp_types import ElicitResult, ResourceListChangedNotification, ResourceUpdatedNotification
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
    """A server on the store that the commands open."""
    with serving(store) as live_server:
        head = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=live_server.url, headers=head, timeout=60, verify=PLAIN) as http:
            me = http.get("/v1/people").json()["items"][0]["id"]
            for slug in ("kate", "marco"):
                new = {"slug": slug, "name": slug.title(), "ownerId": me}
                created = http.post("/v1/agents", json=new)
                assert created.status_code == 201, created.text
        yield live_server


def exchange(lines: bytes, last: int, store: File, *arguments: str) -> list[dict[str, Any]]:
    """Send these lines and return every reply; the last id ends the input."""
    with subprocess.Popen(
        [*command(), "mcp", *arguments],
        env=environment(store, token=TOKEN),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # communicate() would miss what a buffer had read ahead
    ) as program:
        assert program.stdin and program.stdout
        program.stdin.write(lines)
        replies: list[dict[str, Any]] = []
        while not replies or replies[-1].get("id") != last:
            line = program.stdout.readline()
            assert line, program.communicate(timeout=120)[1]
            replies.append(json.loads(line))
        rest, complaints = program.communicate(timeout=120)
    assert program.returncode == 0, complaints
    assert b"Traceback" not in complaints
    return [*replies, *map(json.loads, rest.splitlines())]


@asynccontextmanager
async def connect(
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


async def check_client(client: Client) -> None:
    """Check tools, a call, files, the prompt and an error."""
    assert "workspace_read" in [tool.name for tool in (await client.list_tools()).tools]
    result = await client.call_tool("who_am_i", {})
    assert result.structured_content is not None
    assert result.structured_content["agent_id"] == "kate"
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
    async with connect(store, "kate", mode=mode) as client:
        await check_client(client)
        done = await client.call_tool("workspace_write", {"key": f"of kate {mode}", "value": "v"})
        assert not done.is_error, text_of(done)
    async with live.http() as http:
        kate = (await http.get("/v1/agents/kate")).json()["id"]
        item = (await http.get(f"/v1/agents/kate/items/of%20kate%20{mode}")).json()
        assert item["createdBy"] == kate


@both
async def test_a_store_is_served_as_the_tokens_holder(
    live: ServerProcess, store: File, mode: str
) -> None:
    async with connect(store, "kate", mode=mode, token=TOKEN) as client:
        await check_client(client)


@both
async def test_a_server_is_reached_with_a_token(
    live: ServerProcess, store: File, mode: str
) -> None:
    async with connect(store, "kate", "--url", live.url, mode=mode, token=TOKEN) as client:
        await check_client(client)
        written = await client.call_tool("workspace_write", {"key": "ü", "value": "ü" * 70_000})
        assert not written.is_error
        assert (await client.call_tool("workspace_read", {"key": "ü"})).structured_content


@both
async def test_a_shared_scope_cannot_be_overridden(
    live: ServerProcess, store: File, mode: str
) -> None:
    for way in ((), ("--url", live.url)):
        arguments = ("kate", "--scope", "shared", *way)
        async with connect(store, *arguments, mode=mode, token=TOKEN) as client:
            result = await client.call_tool("recall", {"query": "x"}, meta=meta(scope="main"))
            assert (result.is_error, "shared session" in text_of(result)) == (True, True)


@pytest.mark.filterwarnings("ignore:resources/:UserWarning")
@pytest.mark.parametrize("way", ["store", "server"])
async def test_a_subscribed_client_receives_changes(
    live: ServerProcess, store: File, way: str
) -> None:
    messages: asyncio.Queue[Any] = asyncio.Queue()

    async def handle(message: Any) -> None:
        await messages.put(message)

    path, other = f"notes/a-{way}.md", f"notes/b-{way}.md"
    await put(live, path, "1")
    uri = f"carrel://agents/kate/files/{path}"
    arguments = ("kate",) if way == "store" else ("kate", "--url", live.url)
    async with connect(
        store, *arguments, mode="legacy", token=TOKEN, message_handler=handle
    ) as client:
        capabilities = client.server_capabilities.resources
        assert capabilities is not None
        assert (capabilities.subscribe, capabilities.list_changed) == (True, True)
        await client.session.subscribe_resource(uri)
        await put(live, other, "not subscribed")
        assert isinstance(
            await asyncio.wait_for(messages.get(), 30), ResourceListChangedNotification
        )
        await put(live, path, "2")
        message = await asyncio.wait_for(messages.get(), 30)
        assert isinstance(message, ResourceUpdatedNotification)
        assert message.params.uri == uri
        await client.session.unsubscribe_resource(uri)
        with pytest.raises(MCPError):
            await client.session.subscribe_resource("carrel://agents/marco/files/SOUL.md")


async def create_agent_that_asks(live: ServerProcess, slug: str) -> None:
    """An agent whose writes need approval."""
    async with live.http() as http:
        sandbox = (await http.post("/accounts/me/sandboxes", json={"name": slug})).json()
        workspace = (await http.post("/accounts/me/workspaces", json={"name": slug})).json()
        attached = [{"name": "notes", "workspaceId": workspace["workspaceId"]}]
        config = {"sandbox": sandbox["sandboxId"], "workspaces": attached}
        created = await http.post("/v1/agents", json={"slug": slug, "name": slug, "config": config})
        assert created.status_code == 201, created.text


@both
@pytest.mark.parametrize("way", ["store", "server"])
async def test_a_client_is_asked_for_approval_by_a_form(
    live: ServerProcess, store: File, mode: str, way: str
) -> None:
    slug = f"asks-{way}-{MODES.index(mode)}"
    await create_agent_that_asks(live, slug)
    messages = []

    async def approve(context: Any, params: Any) -> ElicitResult:
        messages.append(params.message)
        return ElicitResult(action="accept", content={"approved": True})

    arguments = (slug,) if way == "store" else (slug, "--url", live.url)
    async with connect(
        store, *arguments, mode=mode, token=TOKEN, elicitation_callback=approve
    ) as client:
        done = await client.call_tool("write", {"file_path": "a.md", "content": "x\u202ey"})
    assert (done.is_error, text_of(done)) == (False, "Wrote a.md (5 bytes)")
    assert messages == [f"{slug} wants to call write:\nfile_path: a.md\ncontent: x⟨U+202E⟩y"]


@pytest.mark.parametrize("way", ["store", "server"])
async def test_a_client_with_forms_receives_the_progress_of_a_call(
    live: ServerProcess, store: File, way: str
) -> None:
    stages: list[str | None] = []

    async def refuse(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    async def receive(progress: float, total: float | None, message: str | None) -> None:
        stages.append(message)

    arguments = ("kate",) if way == "store" else ("kate", "--url", live.url)
    async with connect(
        store, *arguments, mode="legacy", token=TOKEN, elicitation_callback=refuse
    ) as client:
        done = await client.call_tool("who_am_i", {}, progress_callback=receive)
    assert (done.is_error, stages) == (False, ["started", "finished"])


@pytest.mark.filterwarnings("ignore:The logging capability")
async def test_a_client_over_stdio_receives_log_messages_from_the_level_that_it_sets(
    live: ServerProcess, store: File
) -> None:
    messages: list[Any] = []

    async def receive(params: Any) -> None:
        messages.append(params.data)

    async with connect(
        store, "kate", mode="legacy", token=TOKEN, logging_callback=receive
    ) as client:
        await client.call_tool("who_am_i", {})
        assert messages == []
        await client.set_logging_level("info")
        await client.call_tool("who_am_i", {})
        assert messages == [{"tool": "who_am_i", "stage": s} for s in ("started", "finished")]


async def test_a_client_without_forms_learns_the_result_of_an_approved_call(
    live: ServerProcess, store: File
) -> None:
    await create_agent_that_asks(live, "waits")
    async with (
        connect(store, "waits", "--url", live.url, mode="legacy", token=TOKEN) as client,
        live.http() as http,
    ):
        call = {"file_path": "a.md", "content": "x"}
        waiting = [await client.call_tool("write", call) for _ in range(2)]
        [id] = {
            result.structured_content["approval"]["id"]
            for result in waiting
            if result.structured_content
        }
        assert (await http.post(f"/v1/approvals/{id}", json={"approved": True})).status_code == 200
        done = await client.call_tool("approval_result", {"approval_id": id, "wait": 25})
    assert text_of(done) == "Wrote a.md (1 bytes)"


@pytest.mark.parametrize("way", ["store", "server"])
async def test_a_listening_client_receives_changes(
    live: ServerProcess, store: File, way: str
) -> None:
    await put(live, "notes/c.md", "1")
    uri = "carrel://agents/kate/files/notes/c.md"
    arguments = ("kate",) if way == "store" else ("kate", "--url", live.url)
    async with (
        connect(store, *arguments, token=TOKEN) as client,
        client.listen(resource_subscriptions=[uri]) as changes,
    ):
        await put(live, "notes/c.md", "2")
        assert getattr(await anext(changes), "uri", None) == uri


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("missing",), "no such agent"),
        (("kate", "--tenant", "nowhere"), "nowhere"),
        (("kate", "--token", "nonsense"), "credential"),
        (("kate", "--url", "http://127.0.0.1:9"), "no api token"),
        (("kate", "--data", "no such directory"), "no store"),
        (("kate", "--run", "run_none"), "no such run"),
    ],
)
def test_an_error_at_start_is_printed_without_a_traceback(
    live: ServerProcess, store: File, arguments: tuple[str, ...], expected: str
) -> None:
    done = carrel(store, "mcp", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert expected in done.stderr.lower()
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("way", ["store", "server"])
def test_hostile_lines_get_only_json_rpc_replies(
    live: ServerProcess, store: File, way: str
) -> None:
    lines = [b"{", b"null", b"[]", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', b"\xff", b""]
    wrong_types = (
        {"id": [1], "result": {}},
        {"id": {"a": 1}},
        {"id": 3, "method": "initialize", "params": [1]},
        {"method": "initialize", "params": {}},
        {"method": "tools/call", "params": {"name": "who_am_i"}},
        {"method": "notifications/cancelled", "params": [1]},
        {"method": "notifications/cancelled", "params": {"requestId": [1]}},
    )
    lines += [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in wrong_types]
    last = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'
    arguments = ["kate"] if way == "store" else ["kate", "--url", live.url]
    replies = exchange(b"\n".join([*lines, last, b""]), 2, store, *arguments)
    assert all(reply["jsonrpc"] == "2.0" for reply in replies)


def test_an_unreachable_server_is_a_json_rpc_error(store: File) -> None:
    request = b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n'
    [reply] = exchange(request, 7, store, "kate", "--url", "http://127.0.0.1:9")
    assert reply["id"] == 7
    assert "no response from the server" in reply["error"]["message"]


async def test_a_stopping_server_ends_its_listeners(tmp_path: File) -> None:
    with serving(tmp_path) as live:
        async with live.http() as http:
            created = await http.post("/v1/agents", json={"slug": "kate", "name": "Kate"})
            assert created.status_code == 201
        arguments = ("kate", "--url", live.url)
        async with (
            connect(tmp_path, *arguments, token=TOKEN) as client,
            client.listen(resources_list_changed=True) as changes,
        ):
            live.process.send_signal(signal.SIGTERM)
            assert [change async for change in changes] == []
            assert await asyncio.to_thread(live.process.wait, 30) is not None
