"""Files of a workspace by absolute paths, with links and the errors of an operating system."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.client.drivers import Awaited

from carrel_client.drivers import Steps, await_steps
from carrel_client.errors import NotFound
from carrel_client.runtimes.posix_files import PosixEntry, PosixFiles
from carrel_client.runtimes.posix_paths import LINK_TYPE

pytestmark = pytest.mark.anyio
ROOT = "/workspace"


class AwaitedFiles:
    """PosixFiles whose methods are awaited over any driver."""

    def __init__(self, workspace: Any) -> None:
        files = workspace._resource if isinstance(workspace, Awaited) else workspace
        self._driver, self._posix = files._driver, PosixFiles(files, ROOT)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation: Callable[..., Steps[Any]] = getattr(self._posix, name)
        return lambda *arguments: await_steps(self._driver, operation(*arguments))


@pytest.fixture
async def workspace(api: Any) -> Any:
    record = await api.workspaces.create("site")
    return api.workspace(record.id)


@pytest.fixture
def posix(workspace: Any) -> Any:
    return AwaitedFiles(workspace)


async def link(workspace: Any, path: str, target: str) -> None:
    await workspace.upload(path, target.encode(), content_type=LINK_TYPE)


async def test_bytes_are_written_with_their_directories(workspace: Any, posix: Any) -> None:
    for content in (b"\0a\xff", b"text", b"text again"):
        await posix.write_bytes("/workspace/a/b.bin", content)
        assert await posix.read_bytes("/workspace/a/./b.bin") == content
    assert await posix.stat("/workspace/a") == PosixEntry("/workspace/a", True, None)
    assert await posix.stat("/workspace/a/b.bin") == PosixEntry("/workspace/a/b.bin", False, 10)
    await posix.write_bytes("/workspace/note", b"text")
    assert (await workspace.stat("note")).content_type == "text/plain"


async def test_file_that_another_writer_changed_is_replaced(workspace: Any, posix: Any) -> None:
    await posix.write_bytes("/workspace/a", b"1")
    await workspace.put("a", "2")
    await posix.write_bytes("/workspace/a", b"3")
    await workspace.delete("a")
    await posix.write_bytes("/workspace/a", b"4")
    assert await workspace.read_bytes("a") == b"4"


async def test_executable_file_stays_one(workspace: Any, posix: Any) -> None:
    await workspace.upload("run.sh", b"1", content_type="text/plain; executable")
    await posix.write_bytes("/workspace/run.sh", b"2")
    assert (await workspace.stat("run.sh")).content_type == "text/plain; executable"


async def test_errors_are_those_of_an_operating_system(workspace: Any, posix: Any) -> None:
    await posix.write_bytes("/workspace/d/f", b"x")
    calls: list[tuple[type[Exception], str, tuple[Any, ...]]] = [
        (FileNotFoundError, "read_bytes", ("/workspace/none",)),
        (FileNotFoundError, "stat", ("/workspace/none",)),
        (FileNotFoundError, "list_directory", ("/workspace/none",)),
        (FileNotFoundError, "remove", ("/workspace/none",)),
        (FileNotFoundError, "stat", ("/etc/passwd",)),
        (IsADirectoryError, "read_bytes", ("/workspace/d",)),
        (IsADirectoryError, "read_bytes", ("/workspace",)),
        (IsADirectoryError, "write_bytes", ("/workspace/d", b"x")),
        (IsADirectoryError, "write_bytes", ("/workspace", b"x")),
        (NotADirectoryError, "write_bytes", ("/workspace/d/f/g", b"x")),
        (NotADirectoryError, "make_directory", ("/workspace/d/f/g",)),
        (NotADirectoryError, "list_directory", ("/workspace/d/f",)),
        (FileExistsError, "make_directory", ("/workspace/d/f",)),
        (PermissionError, "write_bytes", ("/etc/passwd", b"x")),
        (PermissionError, "write_bytes", ("/workspace/../etc/passwd", b"x")),
        (ValueError, "read_bytes", ("relative",)),
        (ValueError, "write_bytes", ("/workspace/a\\b", b"x")),
        *((ValueError, "remove", (path,)) for path in ("/", "/workspace", "/workspace/d/..")),
    ]
    for error, name, arguments in calls:
        with pytest.raises(error):
            await getattr(posix, name)(*arguments)
    assert [row.path for row in await workspace.list()] == ["d/f"]


async def test_directories_are_made_listed_and_removed(posix: Any) -> None:
    await posix.make_directory("/workspace/a/b")
    await posix.make_directory("/workspace/a/b")
    await posix.write_bytes("/workspace/a/f", b"x")
    listed = await posix.list_directory("/workspace/a")
    assert [(entry.name, entry.path, entry.is_directory) for entry in listed] == [
        ("b", "/workspace/a/b", True),
        ("f", "/workspace/a/f", False),
    ]
    assert await posix.list_directory("/workspace/a/b") == []
    assert await posix.list_directory("/") == [PosixEntry("/workspace", True, None)]
    await posix.remove("/workspace/a")
    assert not await posix.exists("/workspace/a/f")
    assert await posix.exists("/workspace")


async def test_links_are_followed(workspace: Any, posix: Any) -> None:
    await posix.write_bytes("/workspace/d/f", b"old")
    await link(workspace, "to-d", "d")
    await link(workspace, "to-f", "/workspace/d/../to-d/f")
    assert await posix.read_bytes("/workspace/to-d/f") == b"old"
    assert await posix.stat("/workspace/to-f") == PosixEntry("/workspace/to-f", False, 3)
    for path in ("/workspace/to-f", "/workspace/to-d/f"):
        await posix.write_bytes(path, path.encode())
        assert await workspace.read_bytes("d/f") == path.encode()
    assert (await workspace.stat("to-f")).content_type == LINK_TYPE
    await posix.make_directory("/workspace/to-d/new")
    await posix.make_directory("/workspace/to-d")
    assert [entry.name for entry in await posix.list_directory("/workspace/to-d")] == ["f", "new"]
    kinds = {entry.name: entry.is_directory for entry in await posix.list_directory("/workspace")}
    assert kinds == {"d": True, "to-d": True, "to-f": False}


async def test_removing_a_link_leaves_its_target(workspace: Any, posix: Any) -> None:
    await posix.write_bytes("/workspace/d/f", b"x")
    await link(workspace, "to-d", "d")
    await link(workspace, "up", "..")
    await posix.remove("/workspace/to-d")
    assert await posix.read_bytes("/workspace/d/f") == b"x"
    with pytest.raises(ValueError, match="cannot be removed"):
        await posix.remove("/workspace/up/workspace")


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("/workspace/none/x", "/workspace/none/x"),
        ("/workspace/a/to-b/none", "/workspace/a/b/none"),
        ("/workspace/a/to-b/..", "/workspace/a"),
        ("/workspace/a/out/none", "/workspace/out/none"),
        ("/workspace/a/out/..", "/workspace"),
        ("/workspace/a/abs/x", "/tmp/x"),
        ("/tmp/../workspace//a/./to-b", "/workspace/a/b"),
    ],
)
async def test_real_path_is_that_of_the_operating_system(
    workspace: Any, posix: Any, path: str, real: str
) -> None:
    await posix.make_directory("/workspace/a/b")
    await link(workspace, "a/to-b", "b")
    await link(workspace, "a/out", "../out")
    await link(workspace, "a/abs", "/tmp")
    assert await posix.realpath(path) == real


async def test_loop_of_links_is_an_error_and_does_not_break_listings(
    workspace: Any, posix: Any
) -> None:
    await link(workspace, "one", "two")
    await link(workspace, "two", "one")
    for name in ("realpath", "read_bytes", "stat"):
        with pytest.raises(OSError, match="link"):
            await getattr(posix, name)("/workspace/one")
    assert not await posix.exists("/workspace/one")
    listed = await posix.list_directory("/workspace")
    assert [(entry.name, entry.is_directory, entry.size) for entry in listed] == [
        ("one", False, None),
        ("two", False, None),
    ]


async def test_workspace_that_does_not_exist_is_told_from_a_file(api: Any) -> None:
    record = await api.workspaces.create("gone")
    await api.workspaces.delete(record.id)
    files = api.workspace(record.id)
    posix = AwaitedFiles(files)
    for call in (posix.read_bytes, posix.stat, posix.list_directory, posix.remove):
        with pytest.raises(NotFound):
            await call("/workspace/a")
    with pytest.raises(NotFound):
        await posix.write_bytes("/workspace/a", b"x")


async def test_stat_returns_files_and_directories(workspace: Any) -> None:
    await workspace.put("docs/a.md", "text")
    await workspace.put("docs2.md", "text")
    directory, file = await workspace.stat("docs"), await workspace.stat("docs/a.md")
    assert (directory.path, directory.is_directory) == ("docs", True)
    assert (file.size, file.version, file.is_directory) == (4, 1, False)
    assert await workspace.stat("doc") is None
    assert await workspace.stat("docs/b.md") is None
