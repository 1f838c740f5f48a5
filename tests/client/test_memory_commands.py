"""The commands of the memory tool over a server's files: texts, conditions and paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from carrel_client import Client
from carrel_client.anthropic.memory_commands import (
    Command,
    MemoryCommandError,
    MemoryCommands,
    run_command,
    run_command_async,
)

pytestmark = pytest.mark.anyio

TOOL = MemoryCommands("memory")
Run = Callable[[Command], str]


@pytest.fixture
def files(client: Client) -> Any:
    return client.workspace(client.workspaces.create("memory").id)


@pytest.fixture
def run(files: Any) -> Run:
    return lambda command: run_command(command, files)


def test_commands_create_show_change_move_and_delete_files(run: Run, files: Any) -> None:
    created = run(TOOL.create("/memories/a/notes.md", "one\ntwo\n"))
    assert created == "File created successfully at: /memories/a/notes.md"
    assert run(TOOL.insert("/memories/a/notes.md", 1, "half\n")).endswith("has been edited.")
    assert files.get("memory/a/notes.md").content == "one\nhalf\ntwo\n"
    replaced = run(TOOL.str_replace("/memories/a/notes.md", "half", "1.5"))
    assert replaced.splitlines()[1:] == ["     1\tone", "     2\t1.5", "     3\ttwo", "     4\t"]
    view = run(TOOL.view("/memories/a/notes.md", [2, 2]))
    assert view.splitlines()[1:] == ["     2\t1.5"]
    id = files.get("memory/a/notes.md").file_id
    run(TOOL.rename("/memories/a", "/memories/b"))
    assert files.get("memory/b/notes.md").file_id == id
    assert run(TOOL.delete("/memories/b")) == "Successfully deleted /memories/b"
    assert files.list() == ()


def test_a_directory_is_listed_two_levels_deep_with_sizes(run: Run) -> None:
    for path in ("a.md", "d/b.md", "d/e/c.md", "d/e/f/too-deep.md", ".hidden/x", "d/.y"):
        run(TOOL.create(f"/memories/{path}", "x" * 1536))
    lines = run(TOOL.view("/memories", None)).splitlines()
    assert lines[1:] == [
        "6K\t/memories",
        "1.5K\t/memories/a.md",
        "4.5K\t/memories/d/",
        "1.5K\t/memories/d/b.md",
        "3K\t/memories/d/e/",
    ]
    assert run(TOOL.view("/memories/d/e", None)).splitlines()[2] == "1.5K\t/memories/d/e/c.md"


def test_an_empty_memory_can_be_viewed_and_cleared(run: Run) -> None:
    assert run(TOOL.view("/memories", None)).splitlines()[1:] == ["0B\t/memories"]
    assert run(TOOL.clear()) == "All memory cleared"
    run(TOOL.create("/memories/a", "x"))
    run(TOOL.clear())
    assert run(TOOL.view("/memories", None)).splitlines()[1:] == ["0B\t/memories"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (TOOL.view, "The path /memories/none does not exist. Please provide a valid path."),
        (TOOL.delete, "The path /memories/none does not exist"),
    ],
)
def test_a_path_that_does_not_exist_is_named(
    run: Run, command: Callable[..., Command], message: str
) -> None:
    arguments = ("/memories/none", None) if command == TOOL.view else ("/memories/none",)
    with pytest.raises(MemoryCommandError) as problem:
        run(command(*arguments))
    assert str(problem.value) == message


@pytest.mark.parametrize(
    "path", ["/other/a", "/memoriesx/a", "memories/a", "/memories/../a", "/memories/../../etc/x"]
)
def test_no_path_leaves_the_directory(run: Run, files: Any, path: str) -> None:
    for command in (TOOL.create(path, "x"), TOOL.view(path, None), TOOL.delete(path)):
        with pytest.raises(MemoryCommandError, match=r"must start with|would escape"):
            run(command)
    assert files.list() == ()


def test_the_directory_itself_is_neither_deleted_nor_renamed(run: Run) -> None:
    for path in ("/memories", "/memories/", "/memories/a/.."):
        for command in (TOOL.delete(path), TOOL.rename(path, "/memories/b")):
            with pytest.raises(MemoryCommandError, match="the /memories directory itself"):
                run(command)


def test_nothing_that_exists_is_overwritten(run: Run, files: Any) -> None:
    for name in ("a", "b", "d/c"):
        run(TOOL.create(f"/memories/{name}", name))
    for command in (
        TOOL.create("/memories/a", "x"),
        TOOL.rename("/memories/a", "/memories/b"),
        TOOL.rename("/memories/a", "/memories/d"),
        TOOL.rename("/memories/a", "/memories"),
    ):
        with pytest.raises(MemoryCommandError, match="already exists"):
            run(command)
    assert {row.path: row.size for row in files.list()} == {
        "memory/a": 1,
        "memory/b": 1,
        "memory/d/c": 3,
    }


def test_an_edit_keeps_what_another_writer_changed_meanwhile(files: Any) -> None:
    run_command(TOOL.create("/memories/a", "one\ntwo\n"), files)
    command = TOOL.str_replace("/memories/a", "two", "2")
    read = command.send(None)
    write = command.send(read(files))
    files.put("memory/a", "zero\none\ntwo\n")
    with pytest.raises(Exception, match="changed") as conflict:
        write(files)
    again = command.throw(conflict.value)
    retried = command.send(again(files))
    with pytest.raises(StopIteration):
        command.send(retried(files))
    assert files.get("memory/a").content == "zero\none\n2\n"


def test_a_refusal_of_the_server_is_told_to_the_model(run: Run) -> None:
    with pytest.raises(MemoryCommandError, match="backslash"):
        run(TOOL.create("/memories/a\\b", "x"))


async def test_commands_run_over_every_driver(api: Any) -> None:
    workspace = api.workspace("notes")
    await run_command_async(TOOL.create("/memories/a", "one"), workspace)
    with pytest.raises(MemoryCommandError, match="did not appear verbatim"):
        await run_command_async(TOOL.str_replace("/memories/a", "two", "2"), workspace)
    view = await run_command_async(TOOL.view("/memories/a", None), workspace)
    assert view.endswith("     1\tone")
