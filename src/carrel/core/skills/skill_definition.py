"""Validation of a SKILL.md by the rules of the Agent Skills format.

A skill is valid if, and only if, the reference validator accepts its folder.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from carrel.core.errors import ValidationError
from carrel.core.skills.front_matter import YamlValue, parse_front_matter

SKILLS_PREFIX: Final = "skills/"
SKILL_FILE_NAME: Final = "SKILL.md"
MAX_NAME_CHARS: Final = 64
MAX_DESCRIPTION_CHARS: Final = 1024
MAX_COMPATIBILITY_CHARS: Final = 500
_MAX_PROBLEM_CHARS: Final = 300
_FIELDS: Final = (
    *("name", "description", "license", "compatibility", "metadata", "allowed-tools"),
)
PROBLEM_MISSING: Final = f"{SKILL_FILE_NAME} is missing"
PROBLEM_NOT_TEXT: Final = f"{SKILL_FILE_NAME} is not UTF-8 text"


class SkillDefinition(Struct, frozen=True):
    """A skill as its SKILL.md defines it."""

    name: str
    """Name of the folder; that of a valid skill is its own."""
    description: str = ""
    body: str = ""
    """Instructions after the front matter."""
    fields: Mapping[str, YamlValue] = {}
    """All fields of the front matter."""
    problems: tuple[str, ...] = ()
    """Why it is invalid."""

    @property
    def path(self) -> str:
        """Path of its SKILL.md in a workspace."""
        return f"{SKILLS_PREFIX}{self.name}/{SKILL_FILE_NAME}"

    @property
    def is_valid(self) -> bool:
        return not self.problems


def parse_skill(name: str, content: bytes | None) -> SkillDefinition:
    """Read the SKILL.md of the folder `name`; None if the folder has none."""
    if content is None:
        return SkillDefinition(name, problems=(PROBLEM_MISSING,))
    try:
        front_matter = parse_front_matter(content.decode())
    except UnicodeDecodeError:
        return SkillDefinition(name, problems=(PROBLEM_NOT_TEXT,))
    except ValidationError as problem:
        return SkillDefinition(name, problems=(_single_line(f"{SKILL_FILE_NAME}: {problem}"),))
    fields = front_matter.fields
    description = fields.get("description", "")
    return SkillDefinition(
        name,
        description.strip() if isinstance(description, str) else "",
        front_matter.body,
        fields,
        tuple(map(_single_line, _find_problems(name, fields))),
    )


def _single_line(problem: str) -> str:
    """Problem as one line of bounded length: it may quote names from the file."""
    line = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in problem)
    return line if len(line) <= _MAX_PROBLEM_CHARS else f"{line[: _MAX_PROBLEM_CHARS - 1]}…"


def _find_problems(folder: str, fields: Mapping[str, YamlValue]) -> Iterator[str]:
    if unknown := sorted(fields.keys() - set(_FIELDS)):
        yield f"unknown fields: {', '.join(unknown)}; allowed are {', '.join(_FIELDS)}"
    for field, max_chars in (("name", None), ("description", MAX_DESCRIPTION_CHARS)):
        value = fields.get(field)
        if not isinstance(value, str) or not value.strip():
            yield f"{field} must be a text that is not empty"
        elif field == "name":
            yield from _find_name_problems(folder, value)
        elif max_chars is not None and len(value) > max_chars:
            yield f"description has {len(value)} characters; the limit is {max_chars}"
    compatibility = fields.get("compatibility", "")
    if not isinstance(compatibility, str):
        yield "compatibility must be a text"
    elif len(compatibility) > MAX_COMPATIBILITY_CHARS:
        yield (
            f"compatibility has {len(compatibility)} characters;"
            f" the limit is {MAX_COMPATIBILITY_CHARS}"
        )


def _find_name_problems(folder: str, value: str) -> Iterator[str]:
    name = unicodedata.normalize("NFKC", value.strip())
    if len(name) > MAX_NAME_CHARS:
        yield f"name has {len(name)} characters; the limit is {MAX_NAME_CHARS}"
    if name != name.lower():
        yield "name must be in lower case"
    if name.startswith("-") or name.endswith("-") or "--" in name:
        yield "name must not begin or end with a hyphen, nor have two in a row"
    if not all(character.isalnum() or character == "-" for character in name):
        yield "name may have letters, digits and hyphens only"
    if name != unicodedata.normalize("NFKC", folder):
        yield f"name is {name!r}, but the folder is {folder!r}"
