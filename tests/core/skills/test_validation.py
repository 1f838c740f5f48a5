"""SKILL.md: our validation accepts exactly what the reference validator accepts."""

from __future__ import annotations

import tempfile
from pathlib import Path as File
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from skills_ref import parser, validator

from carrel.core.skills.skill_definition import SkillDefinition, parse_skill

FIELDS = ["name", "description", "license", "compatibility", "metadata", "allowed-tools", "version"]
SCALARS = [
    *("pdf", "PDF", "a-b", "-a", "a--b", "é", "ﬁ", "über-1", "x" * 64, "x" * 65, "a b", "a_b", ""),
    *("y" * 500, "y" * 501, "z" * 1024, "z" * 1025, "yes", "null", "~", "1", "1.0", "2026-01-01"),
    *("a: b", "a:b", "a #b", "a#b", "- a", "[a]", "{a: b}", "&a b", "*a", "!t a", "@a", "`a", "%a"),
    *("'a'", '"a"', "'a", '"a\\n b"', '"a\\x"', "|\n  a\n  b", ">\n  a\n  b", "|", "a\n  b", "\ta"),
    *(
        "\n  a: b",
        "\n  a: b\n   c: d",
        "\n    a: b",
        "\n  - a\n  - b",
        "\n- a",
        "? a",
        "a\tb",
        "a ",
    ),
    *("\n  a:\n    b: c\n  d:\n      e: f", "\n  a: b\n  a: c", "\n  <<: a", ", a", "a, b", ":a"),
    *('"\\u0041"', '"\\U00110000"', '"\\UFFFFFFFF"', '"\\x1b"', '"\\0"', '"\\u202e"'),
    *("🙂", "\u202e", "\u00a0", "\ufeff", "a\u200bb", "\x07", "\x7f", "A\u0301", "a---b", "a -- b"),
]


def reference(folder: str, content: str) -> tuple[list[str], dict[str, Any]]:
    """Errors and fields of the reference validator; a crash is an error."""
    try:
        fields, _ = parser.parse_frontmatter(content)
    except Exception as problem:
        return [str(problem)], {}
    return validator.validate_metadata(fields, File(folder)), dict(fields)


def assert_agrees(folder: str, content: str) -> SkillDefinition:
    errors, fields = reference(folder, content)
    skill = parse_skill(folder, content.encode())
    assert skill.is_valid == (not errors), (skill.problems, errors)
    if skill.is_valid:
        assert dict(skill.fields) == fields
    return skill


lines = st.builds(
    lambda key, separator, value: f"{key}{separator}{value}",
    st.sampled_from([*FIELDS, "name", "description", "'name'", "na me", "#", "..."]),
    st.sampled_from([": ", ":", " : ", ":  "]),
    st.one_of(
        st.sampled_from(SCALARS),
        st.text(st.sampled_from("ab-: #'\"|>{}[],&*!%@`?~\t é\\"), max_size=12),
    ),
)
front_matters = st.builds(
    lambda rows, end: "\n".join(rows) + end,
    st.lists(lines, max_size=5),
    st.sampled_from(["\n", "", "\n\n", "\n...\n", "\n# x\n", " "]),
)


@given(
    front_matter=front_matters, valid=st.booleans(), folder=st.sampled_from(["pdf", "é", "x" * 64])
)
@example(front_matter="license: a\n", valid=True, folder="pdf")
@example(front_matter="metadata:\n  a: 1\n  b: 2\n", valid=True, folder="pdf")
@example(front_matter="allowed-tools: Bash(git:*) Read\n", valid=True, folder="pdf")
def test_the_reference_validator_agrees(front_matter: str, valid: bool, folder: str) -> None:
    start = f"name: {folder}\ndescription: reads a file\n" if valid else ""
    assert_agrees(folder, f"---\n{start}{front_matter}---\n# Body\n")


@given(st.sampled_from(SCALARS), st.sampled_from(FIELDS))
def test_the_reference_validator_agrees_on_each_field(value: str, field: str) -> None:
    rows = {"name": "pdf", "description": "reads a file", field: value}
    text = "\n".join(f"{name}: {row}" for name, row in rows.items())
    assert_agrees("pdf", f"---\n{text}\n---\n")


@given(st.text(st.sampled_from("-a: \n\r\ufeffé"), max_size=20))
@example("---\n---\n")
@example("---name: pdf\ndescription: a---")
@example("---\r\nname: pdf\r\ndescription: a\r\n---\r\nbody")
@example("\ufeff---\nname: pdf\ndescription: a\n---\n")
@example("---\nname: pdf\ndescription: a---b\n---\n")
@example("---\nname: pdf\rdescription: a\n---\n")
def test_the_reference_validator_agrees_on_where_front_matter_ends(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        skill = File(folder) / "pdf"
        skill.mkdir()
        (skill / "SKILL.md").write_bytes(text.encode())
        assert parse_skill("pdf", text.encode()).is_valid == (not validator.validate(skill))


@pytest.mark.parametrize(
    "front_matter",
    [
        'description: "\\ud800"',
        'description: x\nlicense: "\\udfff"',
        'description: x\nmetadata:\n  "\\ud83d": y',
        'description: x\n"\\ud83d": y',
    ],
)
def test_half_of_a_surrogate_pair_is_refused(front_matter: str) -> None:
    [problem] = parse_skill("pdf", f"---\nname: pdf\n{front_matter}\n---\n".encode()).problems
    assert problem.endswith(": an escape is half of a surrogate pair")


def test_problems_are_single_short_lines() -> None:
    text = '---\nname: pdf\ndescription: x\n"a\\nb": x\n' + "c" * 400 + ": x\n---\n"
    [problem] = parse_skill("pdf", text.encode()).problems
    assert problem.startswith("unknown fields: a\N{REPLACEMENT CHARACTER}b, ccc")
    assert len(problem) == 300


def test_a_valid_skill_has_its_fields_and_body() -> None:
    text = "---\nname: pdf\ndescription: >\n  Reads\n  PDF.\nmetadata:\n  v: 1\n---\n"
    text += "\n# Read\n---\nx\n"
    skill = assert_agrees("pdf", text)
    assert (skill.description, skill.body) == ("Reads PDF.", "# Read\n---\nx")
    assert skill.fields["metadata"] == {"v": "1"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "SKILL.md is missing"),
        (b"\xff", "SKILL.md is not UTF-8 text"),
        (b"# Pdf", "SKILL.md: it must start with front matter (---)"),
        (b"---\nname: pdf\n", "SKILL.md: the front matter is not closed with ---"),
        (b"---\n- a\n---\n", "SKILL.md: the front matter must be a YAML mapping"),
        (
            b"---\nname: pdf\nmetadata: {a: b}\n---\n",
            "SKILL.md: invalid YAML: line 3: flow style with { or [ is not supported;"
            " quote the text",
        ),
        (
            b"---\nname: x\ndescription: y\n---\n",
            "name is 'x', but the folder is 'pdf'",
        ),
        (
            b"---\nname: pdf\ndescription: y\nhomepage: z\n---\n",
            "unknown fields: homepage; allowed are name, description, license, compatibility,"
            " metadata, allowed-tools",
        ),
        (b"---\nname: pdf\n---\n", "description must be a text that is not empty"),
        (
            b"---\nname: pdf\ndescription: y\nlicense: " + b"z" * 17_000 + b"\n---\n",
            "SKILL.md: the front matter has more than 16384 characters",
        ),
        (b"---\n" + b"- " * 8_000 + b"\n---\n", "SKILL.md: invalid YAML"),
    ],
)
def test_a_problem_says_what_is_wrong(content: bytes | None, problem: str) -> None:
    assert parse_skill("pdf", content).problems == (problem,)
