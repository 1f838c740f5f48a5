"""Hidden characters are shown by their code point."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.hidden_characters import show_hidden_characters


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("Grüße, 日本語, ไทย, ❤\ufe0f", "Grüße, 日本語, ไทย, ❤\ufe0f"),
        ("a\x1b[2J\r\x00", "a⟨U+001B⟩[2J⟨U+000D⟩⟨U+0000⟩"),
        ("\u202eevil\u2066", "⟨U+202E⟩evil⟨U+2066⟩"),
        ("a\u200bb\ufeff\u00ad", "a⟨U+200B⟩b⟨U+FEFF⟩⟨U+00AD⟩"),
        ("\U000e0041\U000e0100\ufe0f", "⟨U+E0041⟩⟨U+E0100⟩⟨U+FE0F⟩"),
        ("x\ufe0f ❤\ufe0f\ufe0f", "x⟨U+FE0F⟩ ❤\ufe0f⟨U+FE0F⟩"),
        ("\u3164\u115f\u2800\u034f", "⟨U+3164⟩⟨U+115F⟩⟨U+2800⟩⟨U+034F⟩"),
        ("a\u00a0b\u2028c", "a⟨U+00A0⟩b⟨U+2028⟩c"),
        ("\ud800\ue000\uffff", "⟨U+D800⟩⟨U+E000⟩⟨U+FFFF⟩"),
    ],
)
def test_hidden_characters_are_shown_and_visible_ones_stay(text: str, expected: str) -> None:
    assert show_hidden_characters(text) == expected


@given(st.text())
def test_nothing_hidden_remains(text: str) -> None:
    escaped = show_hidden_characters(text)
    for char in escaped.replace("\n", "").replace("\t", ""):
        assert unicodedata.category(char)[0] not in "CZ" or char == " "
    assert show_hidden_characters(escaped) == escaped
