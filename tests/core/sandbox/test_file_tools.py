"""Path, line and byte handling of the file tools."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.errors import NotFound, ValidationError
from carrel.core.files.file_kinds import entry_type, file_kind, is_binary
from carrel.core.identifiers import Path
from carrel.core.sandbox.command_report import format_report, was_interrupted
from carrel.core.sandbox.file_tools import (
    TRUNCATION_MARKER,
    compile_glob,
    normalize_path,
    number_lines,
    parse_file_path,
    relative_to,
    replace_text,
    truncate_output,
)
from carrel.core.sandbox.interpreter_policy import disallowed_runtime

lines = st.lists(st.binary(max_size=6).map(lambda line: line.replace(b"\n", b"")), max_size=8)


@given(lines, st.booleans(), st.integers(-2, 10), st.integers(-2, 10))
def test_line_numbers_are_those_of_the_file(
    texts: list[bytes], ended: bool, offset: int, limit: int
) -> None:
    content = b"\n".join(texts) + (b"\n" if texts and ended else b"")
    all_lines = content.split(b"\n")
    if not all_lines[-1]:
        all_lines.pop()
    first, max_lines = max(offset, 1), limit if limit > 0 else 2000
    numbered = number_lines(content, offset, limit)
    expected = [b"%6d\t%b" % (n, line) for n, line in enumerate(all_lines, 1)][first - 1 :][
        :max_lines
    ]
    assert numbered == b"".join(line + b"\n" for line in expected)


def test_page_markers_and_carriage_returns_are_numbered_like_any_line() -> None:
    assert number_lines(b"\\:\\:\\:\na\rb\r\n", 1, 9) == b"     1\t\\:\\:\\:\n     2\ta\rb\r\n"
    assert number_lines(b"x\n" * 1_000_000, 1_000_000, 1) == b"1000000\tx\n"


@given(lines, st.integers(1, 10), st.integers(1, 60))
def test_truncating_a_partial_listing_equals_truncating_the_full_listing(
    texts: list[bytes], offset: int, enough: int
) -> None:
    content = b"\n".join(texts)
    full = number_lines(content, offset, 10**9)
    assert truncate_output(number_lines(content, offset, 10**9, enough), enough) == truncate_output(
        full, enough
    )


@given(st.binary(max_size=80) | st.text(max_size=40).map(str.encode), st.integers(0, 90))
def test_truncated_output_is_text_within_the_limit_with_a_marker(
    content: bytes, limit: int
) -> None:
    output = truncate_output(content, limit)
    full = content.decode(errors="replace")
    assert len(output.encode()) <= limit
    if output != full:
        assert len(full.encode()) > limit
        if limit >= len(TRUNCATION_MARKER):
            assert output.endswith(TRUNCATION_MARKER.decode())
            assert full.startswith(output.removesuffix(TRUNCATION_MARKER.decode()))


@given(st.binary(max_size=30), st.binary(min_size=1, max_size=2), st.binary(max_size=3))
def test_only_the_old_text_is_replaced(content: bytes, old: bytes, new: bytes) -> None:
    if old not in content:
        with pytest.raises(NotFound):
            replace_text(content, old, new, replace_all=True, name="a")
        return
    parts, count = replace_text(content, old, new, replace_all=True, name="a")
    after = b"".join(parts)
    assert count == len(re.findall(re.escape(old), content))
    assert after == re.sub(re.escape(old), lambda _: new, content)
    if count > 1:
        with pytest.raises(ValidationError, match=rf"not unique \({count} matches\)"):
            replace_text(content, old, new, replace_all=False, name="a")


def matches_glob(pattern: list[str], path: list[str]) -> bool:
    """Reference implementation of glob, segment by segment."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        min_segments = 1 if len(pattern) == 1 else 0
        return any(matches_glob(pattern[1:], path[n:]) for n in range(min_segments, len(path) + 1))
    return (
        bool(path) and matches_segment(pattern[0], path[0]) and matches_glob(pattern[1:], path[1:])
    )


def matches_segment(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(matches_segment(pattern[1:], name[n:]) for n in range(len(name) + 1))
    return bool(name) and pattern[0] in {"?", name[0]} and matches_segment(pattern[1:], name[1:])


names = st.text(st.sampled_from("ab.[{é"), min_size=1, max_size=3)
parts = st.just("**") | st.text(st.sampled_from("ab.[{é*?"), min_size=1, max_size=4)


@given(st.lists(parts, min_size=1, max_size=4), st.lists(names, min_size=1, max_size=4))
def test_a_compiled_glob_matches_like_the_reference(pattern: list[str], path: list[str]) -> None:
    pattern = ["a" if part in {".", ".."} else part for part in pattern]
    assert bool(compile_glob("/".join(pattern)).fullmatch("/".join(path).encode())) == matches_glob(
        pattern, path
    )


def test_a_glob_of_many_stars_matches_quickly_and_a_long_glob_is_refused() -> None:
    assert not compile_glob("**/" * 200 + "*a" * 100 + "b").fullmatch(b"a/" * 400 + b"a" * 200)
    with pytest.raises(ValidationError):
        compile_glob("*" * 1025)


@pytest.mark.parametrize(
    ("path", "expected"),
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
def test_paths_start_at_the_workspace_root(path: str, expected: str) -> None:
    assert normalize_path(path) == expected


@pytest.mark.parametrize("path", ["..", "a/..", "../a", "/../a", "a/../b", " .. "])
def test_a_path_with_parent_segments_is_refused(path: str) -> None:
    with pytest.raises(ValidationError, match=r"\AInvalid path: directory traversal not allowed\Z"):
        normalize_path(path)


def test_a_file_path_of_the_root_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"\Afile_path must reference a file\Z"):
        parse_file_path(" ./ ")


def test_relative_to_returns_paths_below_a_directory_only() -> None:
    assert relative_to("", Path("a/b")) == "a/b"
    assert relative_to("a", Path("a/b/c")) == "b/c"
    assert relative_to("a", Path("ab")) is None
    assert relative_to("a", Path("a")) is None


@pytest.mark.parametrize("form", ["file", "executable", "link"])
@pytest.mark.parametrize("content", [b"x", b"\xff", b"\0", b""])
@pytest.mark.parametrize("old_type", [None, "image/png", "inode/symlink", "text/x; executable"])
def test_an_entry_type_encodes_the_file_kind(
    form: str, content: bytes, old_type: str | None
) -> None:
    assert file_kind(entry_type(form, Path("a"), content, old_type)) == form


def test_types_follow_the_content_unless_set_explicitly() -> None:
    assert entry_type("file", Path("a.md"), b"# x") == "text/markdown"
    assert entry_type("file", Path("a.md"), b"\0") == "application/octet-stream"
    assert entry_type("executable", Path("a"), b"x") == "text/plain; executable"
    assert entry_type("file", Path("a"), b"x", "text/x; executable") == "text/x"
    assert entry_type("file", Path("a"), b"x", "application/octet-stream") == "text/plain"
    assert is_binary(b"x" * 8191 + b"\0")
    assert not is_binary(b"x" * 8192 + b"\0")


def test_a_report_states_a_failed_exit() -> None:
    assert format_report(b"o", b"e", 0, None, ()) == "oe"
    assert format_report(b"o\n", b"", 7, None, ("[w]",)) == "o\n[exit code 7]\n[w]"
    assert format_report(b"", b"", None, 30, ()) == "[timed out after 30s]"
    assert format_report(b"\xff", b"", None, None, ()) == "\ufffd\n[killed]"
    for code, cut in {0: False, 1: False, 137: True, -9: True, None: True}.items():
        assert was_interrupted(code, timed_out=False) is cut
        assert was_interrupted(code, timed_out=True)


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
def test_a_disallowed_runtime_in_a_command_is_named(
    command: str, runtimes: list[str] | None, expected: str | None
) -> None:
    assert disallowed_runtime(command, runtimes) == expected


@given(st.text("ab", min_size=1, max_size=9), st.text("ab", min_size=1, max_size=4), st.text("ab"))
def test_a_large_content_is_replaced_as_in_one_call(unit: str, old: str, new: str) -> None:
    content, expected = (unit * 20_000).encode(), (unit * 20_000).replace(old, new).encode()
    count = content.count(old.encode())
    if count:
        arguments = (content, old.encode(), new.encode())
        parts, replaced = replace_text(*arguments, replace_all=True, name="x")
        assert (b"".join(parts), replaced) == (expected, count)


@given(st.integers(0, 200_000), st.integers(1, 150_000))
def test_a_replaced_text_may_have_any_length_and_place(start: int, length: int) -> None:
    content = b"-" * start + b"x" * length + b"-" * 1000
    parts, count = replace_text(content, b"x" * length, b"y", replace_all=False, name="x")
    assert (b"".join(parts), count) == (b"-" * start + b"y" + b"-" * 1000, 1)
