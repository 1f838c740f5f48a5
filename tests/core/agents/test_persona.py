"""Parsing IDENTITY.md into a persona."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.strategies_text import takes_linear_time

from carrel.core.agents.identity_name import parse_names
from carrel.core.agents.persona import PERSONA_FIELDS, Persona, field_values, parse_persona


def parse_persona_name(text: str) -> str | None:
    return parse_persona(text).name


def test_five_fields_are_parsed_from_a_list() -> None:
    text = (
        "# IDENTITY.md\n\n- **Name:** Kate\n- **Creature:** octopus\n- **Vibe:** warm but sharp\n"
        "- **Emoji:** 🐙\n- **Avatar:** https://example.org/kate.png\n"
    )
    kate = Persona("Kate", "octopus", "warm but sharp", "🐙", "https://example.org/kate.png")
    assert parse_persona(text) == kate
    assert kate.line == "name=Kate, emoji=🐙, vibe=warm but sharp, creature=octopus"


def test_missing_fields_and_the_avatar_are_omitted_from_the_line() -> None:
    assert parse_persona("- Avatar: https://example.org/k.png\n- Emoji: 🐙").line == "emoji=🐙"
    assert parse_persona("").line == ""
    assert parse_persona("- **Avatar:**\n- **Creature:** _(AI? robot? familiar?)_") == Persona()


@pytest.mark.parametrize(
    "line",
    [
        *("- *Name:* Kate", "- *Name*: Kate", "- **Name**: Kate", "- ***Name:*** Kate"),
        *(
            "-**Name:** Kate",
            "   - Name: Kate",
            "- Name:Kate",
            "- name : Kate",
            "- **Name :** Kate",
        ),
        *("- NAME: Kate", "* Name: Kate", "+ Name: Kate", "* **Name:** Kate", "\t- Name: Kate"),
        *("\ufeff- Name: Kate", "- **Name: Kate**", "- Name: Kate <!-- for now -->"),
        *("- Name: Kate\n- Name: B", "- Name:\n- Name: Kate", "- Name: (b)\n- Name: Kate"),
        *("- Name: Kate\r\n- Vibe: x\r\n", "- Name: _(pick)_ Kate", "- Name: Kate *(or not)*"),
    ],
)
def test_a_name_is_parsed_in_every_list_style(line: str) -> None:
    assert parse_persona_name(line) == "Kate"


@pytest.mark.parametrize(
    "line",
    [
        *("Name: Kate", "1. Name: Kate", "-- Name: Kate", "- [ ] Name: Kate", "- __Name:__ Kate"),
        *("- _Name:_ Kate", "- Name\uff1a Kate", "- Nickname: K", "- : Kate", "- **:** Kate"),
        *("> - Name: Kate", "```\n- Name: Kate\n```", "~~~\n- Name: Kate\n", "- My name: Kate"),
        *("<!--\n- Name: Kate\n-->", "---\n- Name: Kate\n---", "<!--\n\n- Name: Kate"),
    ],
)
def test_a_line_that_is_no_field_is_ignored(line: str) -> None:
    assert parse_persona(line) == Persona()


@pytest.mark.parametrize(
    "value",
    [
        *("(pick)", "()", "_(pick something)_", "_(x)", "*(pick)*", "**(pick)**", "`(pick)`"),
        *(
            "(pick) (or not)",
            "((pick))",
            '"(pick)"',
            "\uff08選ぶ\uff09",
            "_(begun here",
            "(begun",
            "_ _",
        ),
        *("(pick) _(or not)_", "*(pick)* <!-- soon -->", "(a (b) c)", "** **"),
    ],
)
def test_a_placeholder_in_parentheses_is_not_a_value(value: str) -> None:
    assert parse_persona(f"- **Name:** {value}\n- Vibe: {value}") == Persona()


@pytest.mark.parametrize(
    "value",
    [
        *(
            "(Kate) and (Bob)",
            "Kate (she/her)",
            "**Kate**",
            "_Kate_",
            '"Kate"',
            "a: b",
            "snake_(x)y",
        ),
        *("=^.^=", "👩‍🚀", "1️⃣", "❤️", "Zoë"),
    ],
)
def test_a_value_is_returned_verbatim(value: str) -> None:
    assert parse_persona_name(f"- **Name:** {value}") == value


def test_a_value_cannot_start_another_field() -> None:
    line = parse_persona("- Vibe: calm, name=Mallory, NAME =x, na\u200bme=y\n- Name: Kate").line
    assert line == "name=Kate, vibe=calm, name: Mallory, NAME: x, name: y"


def test_invisible_characters_cannot_hide_a_field_name() -> None:
    assert parse_persona("- Vibe: a, na\u200d\ufe0fme=b").line == "vibe=a, name: b"


@pytest.mark.parametrize("separator", "\t\v\f\x1c\x1d\x1e\x85\u2028\u2029")
def test_a_value_stays_on_its_line(separator: str) -> None:
    line = parse_persona(f"- Vibe: calm{separator}# MEMORY").line
    assert line in {"vibe=calm # MEMORY", "vibe=calm"}


_SPLIT = re.compile(r"(?:\A|, )(?=(?:name|emoji|vibe|creature|avatar)=)")


@given(
    st.dictionaries(
        st.sampled_from(PERSONA_FIELDS),
        st.text() | st.text("nameib=, \u200d\ufe0f\u2028()*_`", max_size=40),
    )
)
@example({"vibe": "x, name=y", "name": "z"})
@example({"vibe": "x, na\u200d\u200bme=y"})
@example({"vibe": "name\u200d=y"})
def test_the_persona_line_lists_each_set_field_once(fields: dict[str, str]) -> None:
    persona = Persona(**fields)
    file = "".join(f"- {field}: {value}\n" for field, value in fields.items())
    for parsed in (parse_persona(file), parse_persona(f"- name: K\n{file}")):
        parts = [part for part in _SPLIT.split(parsed.line) if part]
        listed = [part.partition("=")[0] for part in parts]
        expected = [f for f in ("name", "emoji", "vibe", "creature") if getattr(parsed, f)]
        assert listed == expected
        assert len(parsed.line.splitlines()) <= 1
    assert "avatar=" not in persona.line


@given(st.text("- *_`()Kate:nmName\n<!>", max_size=60))
def test_a_value_is_never_only_a_parenthesis(text: str) -> None:
    for field in PERSONA_FIELDS:
        for value in field_values(text, field):
            assert value.strip("*_`~ ") and not re.fullmatch(r"\([^()]*\)", value.strip("*_`~ "))


@pytest.mark.parametrize("unit", ["_(", "(", "*(x", "_()", "name=", "- Name: _(\n", "*", "<!--"])
def test_parsing_takes_linear_time(unit: str) -> None:
    assert takes_linear_time(
        lambda content: parse_persona(content.decode()[:1_048_576]).line, "- Name: ", unit
    )


@pytest.mark.parametrize("line", ["- ***Name:*** M", "-**Name:** M", "      - Name: M"])
def test_every_name_line_that_the_prompt_reads_counts_as_a_name_change(
    line: str,
) -> None:
    assert parse_names(b"- **Name:** Kate\n") != parse_names(f"- **Name:** Kate\n{line}\n".encode())
