"""What Agent Framework documents of a file store."""

from __future__ import annotations

import asyncio

import pytest
from agent_framework import AgentFileStore

INVALID = ["", " ", "/a.md", "\\a.md", "C:/a.md", "../a.md", "a/../b.md", "./a.md", "a/"]


async def names(files: AgentFileStore, directory: str = "") -> list[tuple[str, str]]:
    return [(child.name, child.type) for child in await files.list_children(directory)]


async def test_missing_file(files: AgentFileStore) -> None:
    assert await files.read("a.md") is None
    assert not await files.file_exists("a.md")
    assert not await files.delete("a.md")
    assert await names(files) == await names(files, "none") == []
    assert await files.search("", "a", recursive=True) == []


@pytest.mark.parametrize("content", ["", "Grüße\r\nzwei\n", "---\na: {{NAME}}\n", "x" * 300_000])
async def test_text_comes_back(files: AgentFileStore, content: str) -> None:
    await files.write("a.md", content)
    assert await files.read("a.md") == content
    assert await files.file_exists("a.md")


async def test_file_is_replaced_and_deleted(files: AgentFileStore) -> None:
    await files.write("notes/a.md", "one")
    await files.write("notes/a.md", "two")
    assert await files.read("notes/a.md") == "two"
    assert await files.delete("notes/a.md")
    assert await files.read("notes/a.md") is None
    assert not await files.delete("notes/a.md")


async def test_file_is_created_once(files: AgentFileStore) -> None:
    async def create(number: int) -> bool:
        try:
            await files.write("a.md", str(number), overwrite=False)
        except FileExistsError:
            return False
        return True

    assert sorted(await asyncio.gather(*map(create, range(4)))) == [False, False, False, True]
    first = await files.read("a.md")
    with pytest.raises(FileExistsError):
        await files.write("a.md", "again", overwrite=False)
    assert await files.read("a.md") == first


@pytest.mark.parametrize("path", INVALID)
async def test_path_that_leaves_the_store_is_refused(files: AgentFileStore, path: str) -> None:
    with pytest.raises(ValueError):
        await files.write(path, "a")
    with pytest.raises(ValueError):
        await files.read(path)
    with pytest.raises(ValueError):
        await files.delete(path)
    with pytest.raises(ValueError):
        await files.file_exists(path)


async def test_path_is_normalized(files: AgentFileStore) -> None:
    await files.write(" notes\\\\a.md ", "a")
    assert await files.read("notes//a.md") == "a"
    assert await names(files, "notes/") == [("a.md", "file")]


@pytest.mark.parametrize("name", ["a b.md", "50%.md", "ä.md", ".hidden", "a%2Fb.md", "[x].md"])
async def test_names(files: AgentFileStore, name: str) -> None:
    await files.write(f"sub/{name}", "here")
    assert await files.read(f"sub/{name}") == "here"
    assert await names(files, "sub") == [(name, "file")]
    results = await files.search("", "here", recursive=True)
    assert [result.file_name for result in results] == [f"sub/{name}"]


async def test_directories_are_listed_first(files: AgentFileStore) -> None:
    for path in ("b.md", "a.md", "z/deep/c.md", "y/c.md"):
        await files.write(path, "x")
    listed = await names(files)
    assert sorted(listed[:2]) == [("y", "directory"), ("z", "directory")]
    assert sorted(listed[2:]) == [("a.md", "file"), ("b.md", "file")]
    assert await names(files, "z") == [("deep", "directory")]


async def test_directory_is_created(files: AgentFileStore) -> None:
    await files.create_directory("empty/deep")
    await files.create_directory("empty/deep")
    assert await names(files, "empty") == [("deep", "directory")]
    assert await names(files, "empty/deep") == []


async def test_directory_is_no_file(files: AgentFileStore) -> None:
    await files.write("notes/a.md", "a")
    assert not await files.file_exists("notes")
    with pytest.raises(OSError):
        await files.write("notes", "a")
    with pytest.raises(OSError):
        await files.write("notes/a.md/b.md", "a")


async def test_search_by_pattern_name_and_directory(files: AgentFileStore) -> None:
    contents = {
        "a.md": "first\nAn ERROR here\r\nlast error",
        "b.txt": "error",
        "sub/c.md": "no match",
        "sub/d.md": "warning: error 7",
    }
    for path, content in contents.items():
        await files.write(path, content)
    results = await files.search("", "error")
    assert sorted(result.file_name for result in results) == ["a.md", "b.txt"]
    first = next(result for result in results if result.file_name == "a.md")
    assert [(line.line_number, line.line) for line in first.matching_lines] == [
        (2, "An ERROR here\r\n"),
        (3, "last error"),
    ]
    assert "ERROR" in first.snippet
    everywhere = await files.search("", "error", recursive=True)
    assert sorted(result.file_name for result in everywhere) == ["a.md", "b.txt", "sub/d.md"]
    named = await files.search("", "error", "*.MD", recursive=False)
    assert [result.file_name for result in named] == ["a.md"]
    below = await files.search("sub", r"error \d$")
    assert [result.file_name for result in below] == ["d.md"]
    assert await files.search("su", "error", recursive=True) == []
    assert await files.search("", "no such text", recursive=True) == []


async def test_found_lines_can_be_replaced(files: AgentFileStore) -> None:
    await files.write("a.md", "one\ntwo\nthree\n")
    [result] = await files.search("", "two")
    lines = files.split_lines(await files.read("a.md") or "")
    assert lines[result.matching_lines[0].line_number - 1] == "two\n"
