"""The tool `memory`: an agent's own files below /memories."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, open_full_app

pytestmark = pytest.mark.anyio
AGENT = "/v1/agents/kate"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    owner = await server.owner()
    created = await owner.post("/v1/agents", json={"slug": "kate", "name": "Kate"})
    assert created.status_code == 201, created.text
    return owner


async def reply_to(client: httpx.AsyncClient, **arguments: Any) -> dict[str, Any]:
    answer = await client.post(f"{AGENT}/tools/memory", json={"arguments": arguments})
    assert answer.status_code == 200, answer.text
    reply: dict[str, Any] = answer.json()
    return reply


async def call(client: httpx.AsyncClient, command: str, path: str = "", **arguments: Any) -> str:
    """Content of a reply without an error."""
    paths = {"path": path} if path else {}
    reply = await reply_to(client, command=command, **paths, **arguments)
    assert not reply["isError"], reply
    return str(reply["content"])


async def error_of(
    client: httpx.AsyncClient, command: str, path: str = "", **arguments: Any
) -> str:
    paths = {"path": path} if path else {}
    reply = await reply_to(client, command=command, **paths, **arguments)
    assert reply["isError"], reply
    return str(reply["content"])


async def stored(client: httpx.AsyncClient, path: str) -> Any:
    answer = await client.get(f"{AGENT}/files/{path}", params={"raw": "true"})
    return answer.json()["content"] if answer.status_code == 200 else None


async def file_id(client: httpx.AsyncClient, path: str) -> Any:
    answer = await client.get(f"{AGENT}/files", params={"prefix": path})
    [file] = answer.json()["files"]
    return file["fileId"]


async def put(client: httpx.AsyncClient, path: str, content: str, root: str = AGENT) -> None:
    answer = await client.put(f"{root}/files/{path}", json={"content": content})
    assert answer.status_code == 200, answer.text


async def test_a_file_is_created_and_viewed_with_line_numbers(ada: httpx.AsyncClient) -> None:
    path = "/memories/notes/today.md"
    text = await call(ada, "create", path, file_text="one\ntwo\nthree")
    assert text == f"File created successfully at: {path}"
    assert await stored(ada, "notes/today.md") == "one\ntwo\nthree"
    head = f"Here's the content of {path} with line numbers:\n"
    assert await call(ada, "view", path) == head + "     1\tone\n     2\ttwo\n     3\tthree"
    assert await call(ada, "view", path, view_range=[2, 2]) == head + "     2\ttwo"
    assert await call(ada, "view", path, view_range=[2, -1]) == head + "     2\ttwo\n     3\tthree"
    assert "Invalid `view_range`" in await error_of(ada, "view", path, view_range=[4, 5])


async def test_a_file_is_created_only_once(ada: httpx.AsyncClient) -> None:
    path = "/memories/a.txt"
    await call(ada, "create", path, file_text="first")
    assert await error_of(ada, "create", path, file_text="x") == f"File {path} already exists"
    assert await stored(ada, "memory/a.txt") == "first"


async def test_the_root_lists_the_agents_own_files(ada: httpx.AsyncClient) -> None:
    await put(ada, "MEMORY.md", "x" * 1536)
    await put(ada, "SOUL.md", "not the agent's to write")
    for path in ("notes/2026/01/a.md", "memory/.hidden", "ideas.md"):
        await call(ada, "create", f"/memories/{path}", file_text="12345")
    lines = (await call(ada, "view", "/memories/")).split("\n")
    header = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden"
    assert lines[0] == f"{header} items:"
    assert lines[1].endswith("\t/memories")
    assert "1.5K\t/memories/MEMORY.md" in lines
    assert "5B\t/memories/notes/" in lines
    assert "5B\t/memories/notes/2026/" in lines
    assert "5B\t/memories/memory/ideas.md" in lines
    assert not [line for line in lines[1:] if "SOUL" in line or ".hidden" in line or "/01" in line]


async def test_an_unknown_place_is_in_the_directory_memory(ada: httpx.AsyncClient) -> None:
    await call(ada, "create", "/memories/deep/nested/file.txt", file_text="x")
    assert await stored(ada, "memory/deep/nested/file.txt") == "x"
    listing = await call(ada, "view", "/memories/deep")
    assert "/memories/deep/nested/file.txt" in listing.split("\t")[-1]
    assert (await call(ada, "view", "/memories/memory/deep/nested/file.txt")).endswith("1\tx")


async def test_text_is_replaced_where_it_is_unique(ada: httpx.AsyncClient) -> None:
    path = "/memories/a.txt"
    await call(ada, "create", path, file_text="1\n2\n3\nold\r\n5\n6\n7\n1")
    edited = await call(ada, "str_replace", path, old_str="old", new_str="new")
    assert edited == (
        "The memory file has been edited. Here is the snippet showing the change (with line "
        "numbers):\n     2\t2\n     3\t3\n     4\tnew\r\n     5\t5\n     6\t6"
    )
    assert await stored(ada, "memory/a.txt") == "1\n2\n3\nnew\r\n5\n6\n7\n1"
    assert await error_of(ada, "str_replace", path, old_str="old", new_str="x") == (
        f"No replacement was performed, old_str `old` did not appear verbatim in {path}."
    )
    assert await error_of(ada, "str_replace", path, old_str="1", new_str="x") == (
        "No replacement was performed. Multiple occurrences of old_str `1` in lines: 1, 8. "
        "Please ensure it is unique"
    )
    assert "must not be empty" in await error_of(ada, "str_replace", path, old_str="", new_str="x")


@pytest.mark.parametrize(
    ("line", "result"),
    [(0, "new\na\nb\n"), (1, "a\nnew\nb\n"), (2, "a\nb\nnew\n")],
)
async def test_a_line_is_inserted(ada: httpx.AsyncClient, line: int, result: str) -> None:
    path = "/memories/a.txt"
    await call(ada, "create", path, file_text="a\nb")
    text = await call(ada, "insert", path, insert_line=line, insert_text="new\n")
    assert text == f"The file {path} has been edited."
    assert await stored(ada, "memory/a.txt") == result


async def test_a_line_number_outside_of_the_file_is_refused(ada: httpx.AsyncClient) -> None:
    await call(ada, "create", "/memories/a.txt", file_text="a\nb\n")
    for line in (-1, 3):
        text = await error_of(ada, "insert", "/memories/a.txt", insert_line=line, insert_text="x")
        problem = f"Invalid `insert_line` parameter: {line}. It should be within the range [0, 2]."
        assert text == problem


async def test_files_and_directories_are_deleted(ada: httpx.AsyncClient) -> None:
    for name in ("a.txt", "dir/b.txt", "dir/sub/c.txt"):
        await call(ada, "create", f"/memories/{name}", file_text="x")
    for path in ("/memories/a.txt", "/memories/dir/"):
        clean = path.rstrip("/")
        assert await call(ada, "delete", path) == f"Successfully deleted {clean}"
        assert await error_of(ada, "delete", path) == f"The path {clean} does not exist"
    assert await stored(ada, "memory/dir/sub/c.txt") is None


async def test_a_file_keeps_its_history_when_it_is_renamed(ada: httpx.AsyncClient) -> None:
    await call(ada, "create", "/memories/a.txt", file_text="x")
    before = await file_id(ada, "memory/a.txt")
    text = await call(ada, "rename", old_path="/memories/a.txt", new_path="/memories/new/b.txt")
    assert text == "Successfully renamed /memories/a.txt to /memories/new/b.txt"
    assert await file_id(ada, "memory/new/b.txt") == before
    assert await stored(ada, "memory/new/b.txt") == "x"
    assert await stored(ada, "memory/a.txt") is None


async def test_a_directory_is_renamed(ada: httpx.AsyncClient) -> None:
    for name in ("dir/b.txt", "dir/sub/c.txt", "other.txt"):
        await call(ada, "create", f"/memories/{name}", file_text=name)
    await call(ada, "rename", old_path="/memories/dir", new_path="/memories/notes/dir")
    assert await stored(ada, "notes/dir/sub/c.txt") == "dir/sub/c.txt"
    for new in ("/memories/other.txt", "/memories/notes/dir"):
        for old in ("/memories/other.txt", "/memories/none.txt"):
            text = await error_of(ada, "rename", old_path=old, new_path=new)
            assert text == f"The destination {new} already exists"
    text = await error_of(ada, "rename", old_path="/memories/dir", new_path="/memories/x")
    assert text == "The path /memories/dir does not exist"


@pytest.mark.parametrize("command", ["view", "str_replace", "insert"])
async def test_a_missing_file_is_named(ada: httpx.AsyncClient, command: str) -> None:
    more: dict[str, Any] = {"old_str": "a", "insert_line": 0, "insert_text": "x"}
    assert await error_of(ada, command, "/memories/none.md", **more) == (
        "The path /memories/none.md does not exist. Please provide a valid path."
    )


@pytest.mark.parametrize("root", ["/memories", "/memories/", "/memories/.", "/memories/sub/.."])
async def test_the_root_itself_stays(ada: httpx.AsyncClient, root: str) -> None:
    assert await error_of(ada, "delete", root) == "Cannot delete the /memories directory itself"
    text = await error_of(ada, "rename", old_path=root, new_path="/memories/moved")
    assert text == "Cannot rename the /memories directory itself"


async def test_only_paths_below_the_root_are_accepted(ada: httpx.AsyncClient) -> None:
    for path in ("/etc/passwd", "MEMORY.md", "/memories2/a"):
        text = await error_of(ada, "create", path, file_text="x")
        assert text == f"Path must start with /memories, got: {path}"
    path = "/memories/../../../etc/passwd"
    text = await error_of(ada, "create", path, file_text="x")
    assert text == f"Path {path} would escape /memories directory"
    assert "workspace path" in await error_of(ada, "create", "/memories/a\\b", file_text="x")
    await call(ada, "create", "/memories/a.txt", file_text="x")
    text = await error_of(ada, "create", "/memories/a.txt/b", file_text="x")
    assert "memory/a.txt is a file" in text
    await call(ada, "create", "/memories/dir/b.txt", file_text="x")
    for taken in ("/memories/dir", "/memories"):
        text = await error_of(ada, "create", taken, file_text="x")
        assert text == f"File {taken} already exists"
    text = await error_of(ada, "insert", "/memories/dir", insert_line=0, insert_text="x")
    assert text == "The path /memories/dir is not a file."


async def test_arguments_that_a_command_needs_are_named(ada: httpx.AsyncClient) -> None:
    assert await error_of(ada, "create", "/memories/a") == "the command create needs file_text"
    assert await error_of(ada, "rename", "/memories/a") == "the command rename needs old_path"
    assert "are invalid" in await error_of(ada, "fly")
    assert "are invalid" in await error_of(ada, "view", "/memories", view_range=[1])


async def test_text_that_could_not_be_viewed_is_refused(ada: httpx.AsyncClient) -> None:
    path = "/memories/a.txt"
    assert await error_of(ada, "create", path, file_text="a\0b") == (
        "file_text must not contain NUL"
    )
    await call(ada, "create", path, file_text="a")
    for command, arguments in (
        ("str_replace", {"old_str": "a", "new_str": "\0"}),
        ("insert", {"insert_line": 0, "insert_text": "\0"}),
    ):
        assert "must not contain NUL" in await error_of(ada, command, path, **arguments)
    assert await stored(ada, "memory/a.txt") == "a"


async def test_policy_decides_which_files_are_the_agents_own(ada: httpx.AsyncClient) -> None:
    await put(ada, "projects/plan.md", "plan")
    await put(ada, "MEMORY.md", "remembered")
    policy = {"agentWritable": ["projects/**"]}
    changed = await ada.put("/v1/policy", json=policy)
    assert changed.status_code == 200, changed.text
    assert "/memories/projects/plan.md" in await call(ada, "view", "/memories")
    assert "MEMORY.md" not in await call(ada, "view", "/memories")
    assert "does not exist" in await error_of(ada, "view", "/memories/MEMORY.md")
    await call(ada, "str_replace", "/memories/projects/plan.md", old_str="plan", new_str="done")
    for path in ("/memories/MEMORY.md", "/memories/ideas.md"):
        assert "agents may not write" in await error_of(ada, "create", path, file_text="x")
    assert await stored(ada, "MEMORY.md") == "remembered"


async def test_pinned_files_and_the_name_are_not_the_agents_to_change(
    ada: httpx.AsyncClient,
) -> None:
    await put(ada, "IDENTITY.md", "- **Name:** Kate\n- **Vibe:** calm\n")
    identity = {"path": "/memories/IDENTITY.md"}
    await call(ada, "str_replace", **identity, old_str="calm", new_str="brisk")
    assert "not its name" in await error_of(
        ada, "str_replace", **identity, old_str="Kate", new_str="Eve"
    )
    rules = {"classes": [{"pattern": "memory/rules.md", "class": "pinned"}]}
    changed = await ada.put("/v1/policy", json=rules)
    assert changed.status_code == 200, changed.text
    text = await error_of(ada, "create", "/memories/memory/rules.md", file_text="none")
    assert "pinned" in text


async def test_a_shared_session_has_no_memory_tool(ada: httpx.AsyncClient) -> None:
    body = {"arguments": {"command": "view", "path": "/memories"}, "scope": "shared"}
    reply = (await ada.post(f"{AGENT}/tools/memory", json=body)).json()
    assert reply == {
        "content": "memory is not available in a shared session",
        "isError": True,
    }


async def test_inherited_files_can_be_edited_but_not_deleted(ada: httpx.AsyncClient) -> None:
    await put(ada, "memory/team.md", "Team of {{TENANT_NAME}}", root="/v1/defaults")
    path = "/memories/memory/team.md"
    assert "{{TENANT_NAME}}" in await call(ada, "view", path)
    for command, paths in (
        ("delete", {"path": path}),
        ("rename", {"old_path": path, "new_path": "/memories/x"}),
    ):
        assert "comes from your template" in await error_of(ada, command, **paths)
    await call(ada, "str_replace", path, old_str="Team", new_str="Crew")
    assert await stored(ada, "memory/team.md") == "Crew of {{TENANT_NAME}}"
    assert "is served again" in await call(ada, "delete", path)
    assert await stored(ada, "memory/team.md") == "Team of {{TENANT_NAME}}"


async def test_secrets_are_redacted_in_files_and_replies(ada: httpx.AsyncClient) -> None:
    key = "ghp_" + "a1B2" * 9
    text = await call(ada, "create", "/memories/a.txt", file_text=f"one\n{key}\n")
    assert "[redacted: " in text
    await call(ada, "create", "/memories/b.txt", file_text="one\n")
    edited = await call(ada, "str_replace", "/memories/b.txt", old_str="one", new_str=key)
    assert key not in edited
    assert key not in await stored(ada, "memory/b.txt")


async def test_limits_hold(ada: httpx.AsyncClient) -> None:
    text = await error_of(ada, "create", "/memories/a.txt", file_text="x" * (2**20 + 1))
    assert "the limit is 1048576" in text
    await call(ada, "create", "/memories/lines.txt", file_text="\n" * 999_999)
    assert await error_of(ada, "view", "/memories/lines.txt") == (
        "File /memories/lines.txt exceeds maximum line limit of 999,999 lines."
    )
    await call(ada, "create", "/memories/long.txt", file_text="0123456789\n" * 9000)
    reply = await reply_to(ada, command="view", path="/memories/long.txt")
    last = reply["structured"]["lastLine"]
    assert reply["structured"]["lines"] == 9001
    assert reply["content"].endswith(f"go on with view_range [{last + 1}, -1]]")
    rest = await call(ada, "view", "/memories/long.txt", view_range=[last + 1, -1])
    assert f"{last + 1:>6}\t0123456789\n" in rest


async def test_edits_of_different_places_at_once_are_all_kept(ada: httpx.AsyncClient) -> None:
    words = [f"word{n}." for n in range(6)]
    await call(ada, "create", "/memories/a.txt", file_text="\n".join(words))
    edits = [
        call(ada, "str_replace", "/memories/a.txt", old_str=word, new_str=word.upper())
        for word in words
    ]
    await asyncio.gather(*edits)
    assert await stored(ada, "memory/a.txt") == "\n".join(words).upper()


async def test_a_write_of_a_run_is_seen_at_once_and_stands_in_its_events(
    ada: httpx.AsyncClient,
) -> None:
    run = (await ada.post("/v1/runs", json={"agentId": "kate"})).json()
    arguments = {"command": "create", "path": "/memories/a.txt", "file_text": "x"}
    body = {"arguments": arguments, "runId": run["runId"]}
    assert not (await ada.post(f"{AGENT}/tools/memory", json=body)).json()["isError"]
    body["arguments"] = {"command": "view", "path": "/memories/a.txt"}
    assert "1\tx" in (await ada.post(f"{AGENT}/tools/memory", json=body)).json()["content"]
    events = await ada.get(f"/v1/runs/{run['runId']}/events/poll")
    assert "memory/a.txt" in events.text
