"""Renaming an agent changes one line of IDENTITY.md and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carrel.core.agents.identity_name import parse_agent_name, rename_identity, uses_agent_name
from carrel.core.agents.persona import field_values, parse_persona
from carrel.core.errors import ValidationError
from carrel.core.overlay.placeholders import sanitize_value

NEW = "Marco"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# I\n\n- **Name:** Old\n- **Vibe:** x\n", "# I\n\n- **Name:** Marco\n- **Vibe:** x\n"),
        ("- **Name:** Old\r\n- x\r\n", "- **Name:** Marco\r\n- x\r\n"),
        ("- **Name:** Old\r- x\r", "- **Name:** Marco\r- x\r"),
        ("- **Name:**\n", "- **Name:** Marco\n"),
        ("- **Name:**Old", "- **Name:** Marco"),
        ("- **Name:** A\n- **Name:** B\n", "- **Name:** Marco\n- **Name:** B\n"),
        ("  - **Name:** A", "  - **Name:** Marco"),
        ("* **Name:** A", "* **Name:** Marco"),
        ("+ **Name**: A", "+ **Name**: Marco"),
        ("**Name:** A", "**Name:** Marco"),
        ("**Name: A**", "**Name: Marco**"),
        ("- **Name: A**", "- **Name: Marco**"),
        ("* *Name: A* <!-- x -->", "* *Name: Marco* <!-- x -->"),
        ("-**Name:** A", "-**Name:** Marco"),
        ("- ***Name:*** A", "- ***Name:*** Marco"),
        ("      - Name: A", "      - Name: Marco"),
        ("- **name:** A", "- **name:** Marco"),
        ("- **Name:** _(pick one)_\n", "- **Name:** Marco\n"),
        ("Name: A", "- **Name:** Marco\n\nName: A"),
        ("1. Name: A", "- **Name:** Marco\n1. Name: A"),
        ("> - **Name:** A", "- **Name:** Marco\n> - **Name:** A"),
        ("> Name: A\n\n- Name: B", "> Name: A\n\n- Name: Marco"),
        ("Name: is prose\n\n- Name: B", "Name: is prose\n\n- Name: Marco"),
        ("---\nname: A\n- name: A\n---\n- Name: B", "---\nname: A\n- name: A\n---\n- Name: Marco"),
        ("---\n# A\nname: A\n---\nx", "---\n# A\nname: A\n---\n- **Name:** Marco\n\nx"),
        ("\ufeff\n---\nname: A\n...\n", "\ufeff\n---\nname: A\n...\n- **Name:** Marco\n"),
        ("---\n- Name: B", "---\n- Name: Marco"),
        ("<!--\n- Name: A\n-->\n- Name: B", "<!--\n- Name: A\n-->\n- Name: Marco"),
        ("<!-- - Name: A -->\n- Name: B", "<!-- - Name: A -->\n- Name: Marco"),
        ("```\n<!--\n```\n- Name: B", "```\n<!--\n```\n- Name: Marco"),
        ("<!--\n```\n-->\n- Name: B", "<!--\n```\n-->\n- Name: Marco"),
        ("\ufeff- **Name:** A", "\ufeff- **Name:** Marco"),
        ("- **Name:** Old <!-- note -->", "- **Name:** Marco <!-- note -->"),
        ("- **Name:** {{AGENT_NAME}}", "- **Name:** Marco"),
        ("```\n- **Name:** A\n```\n- **Name:** B", "```\n- **Name:** A\n```\n- **Name:** Marco"),
        ("~~~\n```\n- **Name:** A\n~~~\n* Name: B", "~~~\n```\n- **Name:** A\n~~~\n* Name: Marco"),
        ("# Me\nprose", "# Me\n- **Name:** Marco\n\nprose"),
        ("# Me", "# Me\n- **Name:** Marco"),
        ("# Me\r\nprose\r\n", "# Me\r\n- **Name:** Marco\r\n\r\nprose\r\n"),
        ("prose", "- **Name:** Marco\n\nprose"),
        ("", "- **Name:** Marco\n"),
        ("My name: is nobody's", "- **Name:** Marco\n\nMy name: is nobody's"),
        ("Me\n==\nx", "Me\n==\n- **Name:** Marco\n\nx"),
        ("- ```\n  - Name: A\n  ```\n- Name: B", "- ```\n  - Name: A\n  ```\n- Name: Marco"),
        ("> ```\n> x\n\n- Name: B", "> ```\n> x\n\n- Name: Marco"),
        ("- Name: A <!-- x --> B <!-- y -->", "- Name: Marco <!-- y -->"),
        ("- Name: A\u2028more", "- Name: Marco\u2028more"),
        ("- Name: A  \nmore", "- Name: Marco  \nmore"),
    ],
)
def test_the_first_name_line_outside_code_is_rewritten_or_inserted(before: str, after: str) -> None:
    assert rename_identity(before.encode(), NEW) == after.encode()


@pytest.mark.parametrize(
    "name",
    ["{{HUMAN_NAME}}", "A\n- **Creature:** evil", "A\u2028B", r"\1 $& \g<0>", "**b** [l](u) <i>"],
)
def test_a_name_is_never_a_token_or_markdown_or_a_second_line(name: str) -> None:
    text = rename_identity(b"- **Name:** Old\n- **Vibe:** x\n", name).decode()
    first, second, rest = text.split("\n")
    assert first == f"- **Name:** {sanitize_value(name)}"
    assert (second, rest) == ("- **Vibe:** x", "")
    assert "{{" not in text


names = st.text(min_size=1, max_size=40)
lines = st.sampled_from(
    [
        *("# Me", "- **Name:** Old", "* **Name**: x <!-- y -->", "```", "~~~", "prose", ""),
        *("> Name: z", "Name: z", "- **Name: Old**", "- Name: (pick)", "-Name:", "---", "- ---"),
        *("<!--", "-->", "<!-- - Name: x -->", "name: old", "   - ***Name:*** Old", "==="),
    ]
)
texts = st.lists(lines, max_size=8).flatmap(
    lambda parts: st.sampled_from(["\n", "\r\n", "\r"]).map(lambda line_end: line_end.join(parts))
)


@given(text=texts, name=names)
@example(text="```\n- **Name:** Old", name="x")
@example(text="- **Name: Old**", name="x*")
def test_renaming_changes_or_adds_one_line_and_the_new_name_is_read(text: str, name: str) -> None:
    before = text.encode()
    after = rename_identity(before, name)
    assert (
        parse_persona(after.decode()).name == parse_persona(f"- Name: {sanitize_value(name)}").name
    )
    assert rename_identity(after, name) == after
    old_lines, new_lines = before.splitlines(), after.splitlines()
    if len(new_lines) > len(old_lines):
        inserted = b"- **Name:** " + sanitize_value(name).encode()
        assert not field_values(text, "name")
        assert [line for line in new_lines if line not in old_lines and line.strip()] in (
            [inserted],
            [],
        )
    else:
        changed = [pair for pair in zip(old_lines, new_lines, strict=True) if pair[0] != pair[1]]
        assert len(changed) <= 1


UNREADABLE = [
    "'",
    '"',
    "\u201c",
    "\u2018\u2019",
    '"\' "',
    "\uff08Bob\uff09",
    "''\uff08x",
    "a\nb",
    "",
]


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_name_that_would_read_back_as_empty_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="name must"):
        parse_agent_name(name)


@given(name=names)
def test_an_accepted_name_is_read_back(name: str) -> None:
    try:
        accepted = parse_agent_name(name)
    except ValidationError:
        return
    for text in (b"", b"# Me\n\n- **Name:** Old\n", b"- **Name: Old**"):
        assert parse_persona(rename_identity(text, accepted).decode()).name


@pytest.mark.parametrize("piece", ["> ", ">", "<!--", "<!-- x -->", "-->", "`", " ", "- ", "*"])
def test_renaming_a_long_hostile_line_is_idempotent(piece: str) -> None:
    for text in (piece * 20_000, "- Name: " + piece * 20_000, "-Name:" + piece * 20_000 + "x"):
        once = rename_identity(text.encode(), NEW)
        assert rename_identity(once, NEW) == once


def test_renaming_a_binary_file_changes_nothing() -> None:
    assert rename_identity(b"\xff- **Name:** A", NEW) == b"\xff- **Name:** A"


def test_uses_agent_name_is_true_only_for_a_token_in_the_name_line() -> None:
    assert uses_agent_name(b"# I\n- **Name:** {{AGENT_NAME}}\n")
    assert uses_agent_name(b"- Name:\n- Name: {{AGENT_NAME}}\n")
    for text in (
        b"- **Name:** Old",
        b"{{AGENT_NAME}}",
        b"```\n- Name: {{AGENT_NAME}}",
        b"> - Name: {{AGENT_NAME}}\n- Name: Old",
        b"---\nname: {{AGENT_NAME}}\n---\n- Name: Old",
    ):
        assert not uses_agent_name(text)
