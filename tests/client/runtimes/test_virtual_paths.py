"""Names of files as deep agents use them, without deepagents."""

from __future__ import annotations

import pytest

from carrel_client.deepagents.virtual_paths import InvalidPath, parse_path


@pytest.mark.parametrize(
    ("name", "root", "path", "base"),
    [
        ("/a/b.md", "/", "a/b.md", ""),
        ("//a///b.md/", "/", "a/b.md", ""),
        ("/", "/", "", ""),
        ("/workspace/a", "/workspace", "a", "/workspace"),
        ("/workspace", "/workspace", "", "/workspace"),
        ("/workspaces/a", "/workspace", "workspaces/a", ""),
        ("/a", "/workspace", "a", ""),
    ],
)
def test_name_is_a_file_below_the_root(name: str, root: str, path: str, base: str) -> None:
    parsed = parse_path(name, root)
    assert (parsed.path, parsed.base) == (path, base)


@pytest.mark.parametrize("name", ["a", "", "/a/../b", "/..", "/a\0b", "'; rm -r /"])
def test_name_that_is_relative_or_leads_out_is_refused(name: str) -> None:
    with pytest.raises(InvalidPath):
        parse_path(name, "/")


def test_names_of_other_files_have_the_same_base() -> None:
    directory = parse_path("/workspace/src", "/workspace")
    assert directory.name_of("src/a.py") == "/workspace/src/a.py"
    assert directory.relative("src/lib/a.py") == "lib/a.py"
    assert parse_path("/src/a.py", "/").relative("src/a.py") == "a.py"
    assert parse_path("/", "/").relative("src/a.py") == "src/a.py"
