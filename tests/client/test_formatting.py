"""Formatting of results for terminals and pipes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.cli import formatting
from carrel.cli.commands.pins import print_offer
from carrel_client import Pin

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "just now"),
        (59, "just now"),
        (60, "1 minute ago"),
        (3599, "59 minutes ago"),
        (7200, "2 hours ago"),
        (86_400, "1 day ago"),
        (13 * 86_400, "13 days ago"),
        (14 * 86_400, "2026-02-15"),
    ],
)
def test_age_is_printed_in_words(seconds: int, expected: str) -> None:
    assert formatting.format_age(NOW - timedelta(seconds=seconds), NOW) == expected


@given(st.text())
def test_printed_line_has_no_control_characters(text: str) -> None:
    printed = formatting.printable(text)
    assert len(printed) >= len(text)
    assert not any(
        character < " " or "\x7f" <= character < "\xa0"
        for character in printed
        if character != "\t"
    )


def test_columns_are_aligned_and_complete_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    formatting.print_table(
        ("path", "n"), [("a" * 300, "1"), ("b", ("22", "red"))], right_aligned=("n",)
    )
    head, first, second = capsys.readouterr().out.splitlines()
    assert head == "path" + " " * 298 + " n"
    assert first == "a" * 300 + "   1"
    assert second == "b" + " " * 299 + "  22"


def test_unreadable_file_is_not_listed(capsys: pytest.CaptureFixture[str]) -> None:
    pin = Pin(
        path="G.md",
        pinned_sha256="a" * 64,
        latest_sha256="b" * 64,
        update_available=True,
        overridden=False,
        version=1,
        pinned="x",
        error="its bytes are gone",
    )
    print_offer(pin)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "G.md: its bytes are gone\n")
