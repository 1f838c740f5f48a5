"""What the file tools do with paths, lines and bytes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.errors import NotFound, ValidationError
from carrel.core.files.file_kinds import form_of, is_binary, type_for
from carrel.core.identifiers import Path
from carrel.core.sandbox.command_report import reported, was_cut_short
from carrel.core.sandbox.file_tools import (
    CUT,
    beneath,
    file_path,
    matcher,
    numbered,
    relative,
    replaced,
    truncated,
)
from carrel.core.sandbox.interpreter_policy import not_allowed

lines = st.lists(st.binary(max_size=6).map(lambda line: line.replace(b"\n", b"")), max_size=8)


@given(lines, st.booleans(), st.integers(-2, 10), st.integers(-2, 10))
def test_lines_keep_the_numbers_of_the_file(
    texts: list[bytes], ended: bool, offset: int, limit: int
) -> None:
    content = b"\n".join(texts) + (b"\n" if texts and ended else b"")
    whole = content.split(b"\n")
    if not whole[-1]:
        whole.pop()
    first, most = max(offset, 1), limit if limit > 0 else 2000
    told = numbered(content, offset, limit)
    expected = [b"%6d\t%b" % (n, line) for n, line in enumerate(whole, 1)][first - 1 :][:most]
    assert told == b"".join(line + b"\n" for line in expected)


def test_page_marks_and_carriage_returns_are_lines_like_others() -> None:
    assert numbered(b"\\:\\:\\:\na\rb\r\n", 1, 9) == b"     1\t\\:\\:\\:\n     2\ta\rb\r\n"
    assert numbered(b"x\n" * 1_000_000, 1_000_000, 1) == b"1000000\tx\n"


@given(lines, st.integers(1, 10), st.integers(1, 60))
def test_what_is_enough_is_cut_as_all_would_be(
    texts: list[bytes], offset: int, enough: int
) -> None:
    content = b"\n".join(texts)
    whole = numbered(content, offset, 10**9)
    assert truncated(numbered(content, offset, 10**9, enough), enough) == truncated(whole, enough)


@given(st.binary(max_size=80) | st.text(max_size=40).map(str.encode), st.integers(0, 90))
def test_what_is_cut_is_text_within_the_bound_and_says_so(content: bytes, limit: int) -> None:
    said = truncated(content, limit)
    whole = content.decode(errors="replace")
    assert len(said.encode()) <= limit
    if said != whole:
        assert len(whole.encode()) > limit
        if limit >= len(CUT):
            assert said.endswith(CUT.decode())
            assert whole.startswith(said.removesuffix(CUT.decode()))


@given(st.binary(max_size=30), st.binary(min_size=1, max_size=2), st.binary(max_size=3))
def test_only_what_is_to_be_replaced_is(content: bytes, old: bytes, new: bytes) -> None:
    if old not in content:
        with pytest.raises(NotFound):
            replaced(content, old, new, every=True, name="a")
        return
    after, count = replaced(content, old, new, every=True, name="a")
    assert count == len(re.findall(re.escape(old), content))
    assert after == re.sub(re.escape(old), lambda _: new, content)
    if count > 1:
        with pytest.raises(ValidationError, match=rf"not unique \({count} matches\)"):
            replaced(content, old, new, every=False, name="a")


def fits(pattern: list[str], path: list[str]) -> bool:
    """A glob by its definition, segment by segment."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        least = 1 if len(pattern) == 1 else 0
        return any(fits(pattern[1:], path[n:]) for n in range(least, len(path) + 1))
    return bool(path) and segment(pattern[0], path[0]) and fits(pattern[1:], path[1:])


def segment(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(segment(pattern[1:], name[n:]) for n in range(len(name) + 1))
    return bool(name) and pattern[0] in {"?", name[0]} and segment(pattern[1:], name[1:])


names = st.text(st.sampled_from("ab.[{é"), min_size=1, max_size=3)
parts = st.just("**") | st.text(st.sampled_from("ab.[{é*?"), min_size=1, max_size=4)


@given(st.lists(parts, min_size=1, max_size=4), st.lists(names, min_size=1, max_size=4))
def test_a_glob_means_what_it_says(pattern: list[str], path: list[str]) -> None:
    pattern = ["a" if part in {".", ".."} else part for part in pattern]
    assert bool(matcher("/".join(pattern)).fullmatch("/".join(path).encode())) == fits(
        pattern, path
    )


def test_a_glob_of_many_stars_takes_no_long_time() -> None:
    assert not matcher("**/" * 200 + "*a" * 100 + "b").fullmatch(b"a/" * 400 + b"a" * 200)
    with pytest.raises(ValidationError):
        matcher("*" * 1025)


@pytest.mark.parametrize(
    ("given_path", "expected"),
    [
        ("a", "a"),
        (" /a//./b/ ", "a/b"),
        ("", ""),
        (".", ""),
        ("/", ""),
        ("~/x", "~/x"),
        ("...", "..."),
    ],
)
def test_paths_begin_at_the_root_of_the_workspace(given_path: str, expected: str) -> None:
    assert relative(given_path) == expected


@pytest.mark.parametrize("path", ["..", "a/..", "../a", "/../a", "a/../b", " .. "])
def test_no_path_leads_out(path: str) -> None:
    with pytest.raises(ValidationError, match=r"\AInvalid path: directory traversal not allowed\Z"):
        relative(path)


def test_a_file_is_not_the_root() -> None:
    with pytest.raises(ValidationError, match=r"\Afile_path must reference a file\Z"):
        file_path(" ./ ")


def test_what_is_beneath_a_directory_is_called_from_there() -> None:
    assert beneath("", Path("a/b")) == "a/b"
    assert beneath("a", Path("a/b/c")) == "b/c"
    assert beneath("a", Path("ab")) is None
    assert beneath("a", Path("a")) is None


@pytest.mark.parametrize("form", ["file", "executable", "link"])
@pytest.mark.parametrize("content", [b"x", b"\xff", b"\0", b""])
@pytest.mark.parametrize("was", [None, "image/png", "inode/symlink", "text/x; executable"])
def test_a_type_tells_the_form_it_was_made_for(form: str, content: bytes, was: str | None) -> None:
    assert form_of(type_for(form, Path("a"), content, was)) == form


def test_types_are_told_by_content_unless_somebody_said_so() -> None:
    assert type_for("file", Path("a.md"), b"# x") == "text/markdown"
    assert type_for("file", Path("a.md"), b"\0") == "application/octet-stream"
    assert type_for("executable", Path("a"), b"x") == "text/plain; executable"
    assert type_for("file", Path("a"), b"x", "text/x; executable") == "text/x"
    assert type_for("file", Path("a"), b"x", "application/octet-stream") == "text/plain"
    assert is_binary(b"x" * 8191 + b"\0")
    assert not is_binary(b"x" * 8192 + b"\0")


def test_the_end_of_a_command_is_told_where_it_was_not_good() -> None:
    assert reported(b"o", b"e", 0, None, ()) == "oe"
    assert reported(b"o\n", b"", 7, None, ("[w]",)) == "o\n[exit code 7]\n[w]"
    assert reported(b"", b"", None, 30, ()) == "[timed out after 30s]"
    assert reported(b"\xff", b"", None, None, ()) == "\ufffd\n[killed]"
    for code, cut in {0: False, 1: False, 137: True, -9: True, None: True}.items():
        assert was_cut_short(code, timed_out=False) is cut
        assert was_cut_short(code, timed_out=True)


@pytest.mark.parametrize(
    ("command", "runtimes", "expected"),
    [
        ("python3 x", None, None),
        ("ls", ["python"], "bash"),
        ("python x", ["bash"], "python"),
        ("/usr/bin/python3.11 x", ["bash", "node"], "python"),
        ("a=$(node x)", ["bash", "python"], "node"),
        ("npx x", ["bash"], "node"),
        ("cat pythonic nodes", ["bash"], None),
        ("python3 x", ["bash", "python"], None),
    ],
)
def test_a_command_names_no_runtime_that_is_not_allowed(
    command: str, runtimes: list[str] | None, expected: str | None
) -> None:
    assert not_allowed(command, runtimes) == expected
