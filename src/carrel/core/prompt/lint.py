"""What is wrong with a prompt before any model reads it: told by file and line, never by content.

A prefix is stable if a provider may keep it: the same on two days, and without a moment in its text
that somebody will write anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.core.errors import Conflict
from carrel.core.identifiers import Path
from carrel.core.overlay.placeholders import NOTHING, TOKENS, PlaceholderValues, split
from carrel.core.prompt.assembly import (
    ABSENT,
    EMPTY,
    NO_MEMORIES,
    NOT_TEXT,
    NOTES,
    UNSAID,
    BlockFate,
    Prompt,
    PromptBlock,
    PromptDocument,
    assembled,
)
from carrel.core.prompt.inputs import PromptInputs
from carrel.core.redaction.secret_patterns import find_shapes

_TOKEN: Final = re.compile(rb"\{\{([A-Z][A-Z0-9_]{0,63})\}\}")
_MOMENT: Final = re.compile(r"\b[12][0-9]{3}-[01][0-9]-[0-3][0-9][T ][0-2][0-9]:[0-5][0-9]")
_FINE: Final = frozenset({EMPTY, UNSAID})
_RULES: Final = "RULES — "


class LintRule(StrEnum):
    REFUSED = "refused"
    """There is no prompt at all."""
    TRUNCATED = "truncated"
    UNREADABLE = "unreadable"
    PLACEHOLDER = "placeholder"
    SECRET = "secret"
    UNSTABLE = "unstable-prefix"
    EXTRA = "extra-doc"


class LintFinding(Struct, frozen=True, order=True):
    fault: LintRule
    path: str
    text: str


class LintInput(Struct, frozen=True):
    """A file as it is stored, and with what it is filled in; None where it is served as it is."""

    content: bytes
    variables: PlaceholderValues | None


def flaws(
    served: Mapping[Path, PromptDocument],
    stored: Mapping[Path, LintInput],
    inputs: PromptInputs,
    memories: Mapping[str, PromptDocument] = NO_MEMORIES,
) -> tuple[LintFinding, ...]:
    """All that is wrong with the main prompt of an agent; ``stored`` holds all of its files.

    ``memories`` are those of the workspaces that are attached to it.
    """
    found = [*_secrets(stored)]
    try:
        prompt = assembled(served, inputs, memories)
        tomorrow = assembled(served, replace(inputs, day=inputs.day + timedelta(days=1)), memories)
    except Conflict as refused:
        path = str(refused.details.get("path", ""))
        return tuple(sorted({*found, LintFinding(LintRule.REFUSED, path, str(refused))}))
    for block in prompt.blocks:
        found += _of_block(block)
        at = Path(block.path) if block.text else None
        if at is not None and at in served and at in stored:
            found += _placeholders(at, served[at], stored[at])
    return tuple(sorted({*found, *_unstable(prompt, tomorrow)}))


def _of_block(block: PromptBlock) -> Iterator[LintFinding]:
    left_out = block.kept is BlockFate.LEFT_OUT
    if block.name.startswith(_RULES) and left_out and block.reason not in _FINE:
        yield LintFinding(LintRule.EXTRA, block.path, f"config names it, but {block.reason}")
    elif not block.lasts or block.reason == NOT_TEXT:
        yield LintFinding(LintRule.UNREADABLE, block.path, block.reason)
    elif block.kept is not BlockFate.KEPT and block.reason not in {*_FINE, ABSENT}:
        yield LintFinding(LintRule.TRUNCATED, block.path, f"{block.kept}: {block.reason}")


def _is_of_nobody(path: Path, variables: PlaceholderValues) -> bool:
    """USER.md of an agent without a human has a dash for each of their facts, and is right so."""
    return path == Path("USER.md") and variables.human_name is None


def _placeholders(path: Path, served: PromptDocument, stored: LintInput) -> Iterator[LintFinding]:
    for found in _TOKEN.finditer(served.content or b""):
        token, line = found[1].decode(), _line(served.content or b"", found.start())
        reason = "is not filled in here" if token in TOKENS else "is none that is filled in"
        yield LintFinding(LintRule.PLACEHOLDER, path.text, f"line {line}: {{{{{token}}}}} {reason}")
    if stored.variables is None or _is_of_nobody(path, stored.variables):
        return
    for piece in split(stored.content):
        if piece.token and stored.variables.shown[piece.token] == NOTHING:
            text = f"{{{{{piece.token}}}}} stands for nothing: there is no such fact"
            yield LintFinding(LintRule.PLACEHOLDER, path.text, text)


def _secrets(stored: Mapping[Path, LintInput]) -> Iterator[LintFinding]:
    for path, file in stored.items():
        for shape in find_shapes(file.content):
            text = f"line {_line(file.content, shape.start)}: looks like a secret ({shape.name})"
            yield LintFinding(LintRule.SECRET, path.text, text)


def _unstable(prompt: Prompt, tomorrow: Prompt) -> Iterator[LintFinding]:
    """Whatever is before the notes must be there tomorrow too."""
    before = [block for block in prompt.blocks if not block.path.startswith(NOTES)]
    after = {block.path: block for block in tomorrow.blocks}
    for block in before[: _stable(prompt)]:
        if after[block.path].text != block.text:
            yield LintFinding(LintRule.UNSTABLE, block.path, "it is another one tomorrow")
        elif found := _MOMENT.search(block.text):
            line = block.text.count("\n", 0, found.start())
            text = f"line {line} of its text holds a time of day, which will be written anew"
            yield LintFinding(LintRule.UNSTABLE, block.path, text)


def _stable(prompt: Prompt) -> int:
    """How many blocks come before the notes."""
    paths = [block.path for block in prompt.blocks]
    return next(at for at, path in enumerate(paths) if path.startswith(NOTES))


def _line(content: bytes, at: int) -> int:
    return content.count(b"\n", 0, at) + 1
