"""Lint of an agent's prompt: findings by file and line, never with content.

A prefix is cacheable by a provider if it is the same on two days and contains no time of day.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.core.errors import Conflict
from carrel.core.identifiers import Path
from carrel.core.overlay.placeholders import EMPTY_VALUE, TOKENS, PlaceholderValues, split_template
from carrel.core.prompt.assembly import (
    NO_MEMORIES,
    NOTES_PREFIX,
    REASON_ABSENT,
    REASON_EMPTY,
    REASON_NO_PERSONA,
    REASON_NOT_TEXT,
    DamagedPolicyFile,
    Prompt,
    PromptDocument,
    build_prompt,
)
from carrel.core.prompt.blocks import BlockStatus, PromptBlock
from carrel.core.prompt.inputs import PromptInputs
from carrel.core.prompt.skill_blocks import SKILLS_BLOCK
from carrel.core.redaction.secret_patterns import find_secrets
from carrel.core.skills.prompt_index import PromptSkill

_TOKEN: Final = re.compile(rb"\{\{([A-Z][A-Z0-9_]{0,63})\}\}")
_TIMESTAMP: Final = re.compile(r"\b[12][0-9]{3}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9]")
_ACCEPTED_REASONS: Final = frozenset({REASON_EMPTY, REASON_NO_PERSONA})
_EXTRA_PREFIX: Final = "RULES — "


class LintRule(StrEnum):
    REFUSED = "refused"
    """No prompt can be assembled."""
    TRUNCATED = "truncated"
    UNREADABLE = "unreadable"
    PLACEHOLDER = "placeholder"
    SECRET = "secret"
    UNSTABLE = "unstable-prefix"
    EXTRA_DOC = "extra-doc"
    SKILL = "invalid-skill"


class LintFinding(Struct, frozen=True, order=True):
    rule: LintRule
    path: str
    text: str


class LintInput(Struct, frozen=True):
    """Stored content and its placeholder values; None if served verbatim."""

    content: bytes
    variables: PlaceholderValues | None


def lint_prompt(
    served: Mapping[Path, PromptDocument],
    stored: Mapping[Path, LintInput],
    inputs: PromptInputs,
    memories: Mapping[str, PromptDocument] = NO_MEMORIES,
    skills: Sequence[PromptSkill] = (),
) -> tuple[LintFinding, ...]:
    """Findings for an agent's main prompt; `stored` contains all of its files.

    `memories` are MEMORY.md of attached workspaces by id, `skills` those of the agent.
    """
    findings = [*_lint_secrets(stored), *_lint_skills(skills)]
    invalid = {finding.path for finding in findings if finding.rule is LintRule.SKILL}
    try:
        prompt = build_prompt(served, inputs, memories, skills)
        tomorrow = build_prompt(
            served, replace(inputs, day=inputs.day + timedelta(days=1)), memories, skills
        )
    except Conflict as conflict:
        path = str(conflict.details.get("path", ""))
        return tuple(sorted({*findings, LintFinding(LintRule.REFUSED, path, str(conflict))}))
    except DamagedPolicyFile as damage:
        refused = LintFinding(LintRule.REFUSED, damage.path.text, str(damage))
        return tuple(sorted({*findings, refused}))
    for block in prompt.blocks:
        if block.path not in invalid:
            findings += _lint_block(block)
        block_path = Path(block.path) if block.text and block.name != SKILLS_BLOCK else None
        if block_path is not None and block_path in served and block_path in stored:
            findings += _lint_placeholders(block_path, served[block_path], stored[block_path])
    return tuple(sorted({*findings, *_lint_stability(prompt, tomorrow)}))


def _lint_skills(skills: Sequence[PromptSkill]) -> Iterator[LintFinding]:
    for skill in skills:
        for problem in skill.definition.problems:
            yield LintFinding(LintRule.SKILL, skill.definition.path, problem)


def _lint_block(block: PromptBlock) -> Iterator[LintFinding]:
    omitted = block.status is BlockStatus.OMITTED
    if block.name.startswith(_EXTRA_PREFIX) and omitted and block.reason not in _ACCEPTED_REASONS:
        yield LintFinding(LintRule.EXTRA_DOC, block.path, f"listed in extraDocs: {block.reason}")
    elif not block.is_cacheable or block.reason == REASON_NOT_TEXT:
        yield LintFinding(LintRule.UNREADABLE, block.path, block.reason)
    elif block.status is not BlockStatus.INCLUDED and block.reason not in {
        *_ACCEPTED_REASONS,
        REASON_ABSENT,
    }:
        yield LintFinding(LintRule.TRUNCATED, block.path, f"{block.status}: {block.reason}")


def _lacks_human(path: Path, variables: PlaceholderValues) -> bool:
    """Whether this is USER.md of an agent without a human: empty values are fine."""
    return path == Path("USER.md") and variables.human_name is None


def _lint_placeholders(
    path: Path, served: PromptDocument, stored: LintInput
) -> Iterator[LintFinding]:
    for match in _TOKEN.finditer(served.content or b""):
        token, line = match[1].decode(), _line_number(served.content or b"", match.start())
        reason = "is not filled in this file" if token in TOKENS else "is not a known placeholder"
        yield LintFinding(LintRule.PLACEHOLDER, path.text, f"line {line}: {{{{{token}}}}} {reason}")
    if stored.variables is None or _lacks_human(path, stored.variables):
        return
    for part in split_template(stored.content):
        if part.token and stored.variables.escaped_values[part.token] == EMPTY_VALUE:
            text = f"{{{{{part.token}}}}} has no value"
            yield LintFinding(LintRule.PLACEHOLDER, path.text, text)


def _lint_secrets(stored: Mapping[Path, LintInput]) -> Iterator[LintFinding]:
    for path, file in stored.items():
        for span in find_secrets(file.content):
            text = (
                f"line {_line_number(file.content, span.start)}: looks like a secret ({span.name})"
            )
            yield LintFinding(LintRule.SECRET, path.text, text)


def _lint_stability(prompt: Prompt, tomorrow: Prompt) -> Iterator[LintFinding]:
    """Blocks before the notes must be the same tomorrow."""
    count = _stable_block_count(prompt)
    for block, after in zip(prompt.blocks[:count], tomorrow.blocks[:count], strict=True):
        if after.text != block.text:
            yield LintFinding(LintRule.UNSTABLE, block.path, "changes from day to day")
        elif match := _TIMESTAMP.search(block.text):
            line = block.text.count("\n", 0, match.start())
            text = f"line {line} of the block contains a time of day"
            yield LintFinding(LintRule.UNSTABLE, block.path, text)


def _stable_block_count(prompt: Prompt) -> int:
    """Number of blocks before the notes."""
    paths = [block.path for block in prompt.blocks]
    return next(index for index, path in enumerate(paths) if path.startswith(NOTES_PREFIX))


def _line_number(content: bytes, position: int) -> int:
    return content.count(b"\n", 0, position) + 1
