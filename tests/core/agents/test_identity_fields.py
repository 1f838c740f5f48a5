"""Replacing one field of IDENTITY.md leaves every other line unchanged."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import asdict

from carrel.core.agents.identity_fields import EDITABLE_FIELDS, format_value, replace_field
from carrel.core.agents.persona import parse_persona
from carrel.core.overlay.placeholders import TOKENS, PlaceholderValues, render, sanitize_value


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- **Vibe:** old\n- **Name:** A\n", "- **Vibe:** new\n- **Name:** A\n"),
        ("- **Vibe:** old\r\n- x\r\n", "- **Vibe:** new\r\n- x\r\n"),
        ("- **Vibe:**\n", "- **Vibe:** new\n"),
        ("- **Vibe:**old", "- **Vibe:** new"),
        ("- **Vibe:** a\n- **Vibe:** b\n", "- **Vibe:** new\n- **Vibe:** b\n"),
        ("  - **Vibe:** a", "  - **Vibe:** new"),
        ("* **vibe:** a", "* **vibe:** new"),
        ("+ **Vibe**: a", "+ **Vibe**: new"),
        ("-**VIBE: a**", "-**VIBE: new**"),
        ("Vibe: prose\n- Vibe: a", "Vibe: prose\n- Vibe: new"),
        ("> - Vibe: a\n\n- **Vibe:** a", "> - Vibe: a\n\n- **Vibe:** new"),
        ("---\nvibe: a\n---\n- Vibe: a", "---\nvibe: a\n---\n- Vibe: new"),
        ("<!--\n- Vibe: a\n-->\n- Vibe: a", "<!--\n- Vibe: a\n-->\n- Vibe: new"),
        ("\ufeff- **Vibe:** a", "\ufeff- **Vibe:** new"),
        ("- **Vibe:** old <!-- note -->", "- **Vibe:** new <!-- note -->"),
        ("- **Vibe:** {{AGENT_NAME}}ish", "- **Vibe:** new"),
        ("```\n- **Vibe:** a\n```\n- **Vibe:** b", "```\n- **Vibe:** a\n```\n- **Vibe:** new"),
    ],
)
def test_the_first_line_of_the_field_outside_code_is_rewritten(before: str, after: str) -> None:
    assert replace_field(before.encode(), "vibe", "new") == after.encode()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"# Me\n",
        b"```\n- **Vibe:** a\n```",
        b"- **Vibes:** a",
        b"Vibe",
        b"Vibe: a",
        b"\xff- Vibe: a",
    ],
)
def test_replace_field_without_such_a_line_returns_none(text: bytes) -> None:
    assert replace_field(text, "vibe", "new") is None


@pytest.mark.parametrize("emoji", ["🦊", "❤️", "🧙‍♂️", "👩‍👩‍👧‍👦", "👍🏽", "🇮🇸"])
def test_an_emoji_keeps_all_its_code_points(emoji: str) -> None:
    assert format_value(emoji) == format_value(f" {emoji}\n") == emoji


@pytest.mark.parametrize(
    "value",
    ["a\u200db", "\u200d🦊", "🦊\u200d", "\ufe0f", "🦊" * 17, "🦊 x\u200d", "\U0001d114🦊", "⠀"],
)
def test_a_value_that_only_resembles_an_emoji_is_sanitized(value: str) -> None:
    assert format_value(value) == sanitize_value(value)


lines = st.sampled_from(
    [
        *("# Me", "- **Name:** {{AGENT_NAME}}", "- **Vibe:** old", "* **Vibe**: x <!-- y -->"),
        *("- **Emoji:**", "```", "~~~", "prose", "", "> Creature: z", "- Avatar: a.png", "<!--"),
        *("---", "-->", "- **Vibe: x**"),
    ]
)
texts = st.lists(lines, max_size=9).flatmap(
    lambda parts: st.sampled_from(["\n", "\r\n", "\r"]).map(lambda line_end: line_end.join(parts))
)
hostile_values = st.lists(
    st.sampled_from(
        [
            *(
                "{{",
                "}}",
                "AGENT_NAME",
                "\n",
                "\r",
                "\u2028",
                "\u2029",
                "\x85",
                "\v",
                "-->",
                "<!--",
            ),
            *("- **Name:** Eve", "`", "*", "|", "#", "\\", "🦊", "\u200d", "\ufe0f", " ", "a"),
        ]
    ),
    max_size=9,
).map("".join)
values = st.text(max_size=30) | hostile_values


@given(text=texts, field=st.sampled_from(EDITABLE_FIELDS), value=values)
@example(text="- **Vibe:** x", field="vibe", value="{{HUMAN_NAME}}")
def test_replacing_a_field_changes_one_line_and_never_the_name(
    text: str, field: str, value: str
) -> None:
    before = text.encode()
    after = replace_field(before, field, value)
    if after is None:
        return
    read = asdict(parse_persona(after.decode()))
    assert read[field] == asdict(parse_persona(f"- {field}: {format_value(value)}"))[field]
    assert read | {field: None} == asdict(parse_persona(text)) | {field: None}
    old_lines, new_lines = _lines(text), _lines(after.decode())
    assert len(old_lines) == len(new_lines)
    assert sum(old != new for old, new in zip(old_lines, new_lines, strict=True)) <= 1
    assert after.endswith(before[-1:]) or text[-1:] not in "\r\n"
    assert replace_field(after, field, value) == after


def _lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


@given(value=values)
def test_a_formatted_value_is_one_line_without_placeholders(value: str) -> None:
    formatted = format_value(value)
    assert formatted
    assert len(formatted.splitlines()) == 1
    all_values = PlaceholderValues(**{token.lower(): "LEAKED" for token in TOKENS})
    assert render(f"- **Vibe:** {formatted}", all_values) == f"- **Vibe:** {formatted}"
