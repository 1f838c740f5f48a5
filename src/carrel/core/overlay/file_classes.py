"""File classes: live, pinned until reviewed, or managed by the server."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path

MAX_PATTERN_LENGTH: Final = 256
MAX_RULES: Final = 100


class FileClass(StrEnum):
    LIVE = "live"
    """Follows the template and the defaults."""
    PINNED = "pinned"
    """Stays as reviewed until the next review."""
    MANAGED = "managed"
    """Written only by the server."""


class ClassRule(Struct, frozen=True):
    """Assigns a class to paths that match a pattern.

    `*` stops at a slash, `**` does not.
    """

    pattern: str
    file_class: FileClass


BUILT_IN_RULES: Final = (
    ClassRule("GUARDRAILS.md", FileClass.PINNED),
    ClassRule("PLATFORM.md", FileClass.PINNED),
    ClassRule("CAPABILITIES.md", FileClass.PINNED),
    ClassRule("USER.md", FileClass.MANAGED),
)
"""Rules that a tenant cannot override."""

_VARIATION_SELECTORS: Final = frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
_WILDCARD: Final = re.compile(r"\*\*/|\*\*|\*|\?")
_WILDCARD_REGEX: Final = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def parse_pattern(text: str) -> str:
    """Validate a path pattern. Raises ValidationError."""
    plain = _WILDCARD.sub("x", text)
    if len(text) > MAX_PATTERN_LENGTH or text.count("*") > 8:
        raise ValidationError(
            f"a pattern must have at most {MAX_PATTERN_LENGTH} characters and 8 stars"
        )
    Path(plain if not plain.endswith("/") else plain + "x")
    return text


@lru_cache(maxsize=1024)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    parts: list[str] = []
    position = 0
    for wildcard in _WILDCARD.finditer(pattern):
        parts += (re.escape(pattern[position : wildcard.start()]), _WILDCARD_REGEX[wildcard[0]])
        position = wildcard.end()
    return re.compile("".join((*parts, re.escape(pattern[position:]))), re.DOTALL)


def _fold_path(text: str) -> str:
    """Path as compared by case-insensitive and normalizing file systems."""
    visible = "".join(c for c in unicodedata.normalize("NFKC", text) if not _is_ignored(c))
    return "/".join(segment.rstrip(" .") for segment in visible.casefold().split("/"))


def _is_ignored(character: str) -> bool:
    return unicodedata.category(character) == "Cf" or character in _VARIATION_SELECTORS


def matches_any(path: Path, patterns: Iterable[str]) -> bool:
    return any(_compile_pattern(pattern).fullmatch(path.text) for pattern in patterns)


class FileClassRules(Struct, frozen=True, cache_hash=True):
    """A tenant's rules after the built-in ones.

    The first match decides, the default is live. Each path is evaluated once.
    """

    rules: tuple[ClassRule, ...] = ()

    @property
    def key(self) -> str:
        """Cache key of the rules."""
        return "\n".join(f"{rule.file_class}:{rule.pattern}" for rule in self.rules)

    def class_of(self, path: Path) -> FileClass:
        return match_class(self, path.text)

    def check_path(self, path: Path) -> FileClass:
        """Return the class of a path to be written.

        Raises ValidationError if the path differs from a pinned or managed one only in letter case
        or in characters that some file systems ignore.
        """
        collision = find_collision(self, path.text)
        if collision is not None:
            problem = "collides on some file systems with a path that is"
            raise ValidationError(f"{path} {problem} {collision}")
        return match_class(self, path.text)

    def newly_pinned(self, new_rules: FileClassRules, paths: Iterable[Path]) -> Sequence[Path]:
        """Paths that `new_rules` would pin and these rules do not."""
        pinned = FileClass.PINNED
        return [
            p for p in paths if new_rules.class_of(p) is pinned and self.class_of(p) is not pinned
        ]


@lru_cache(maxsize=8192)
def match_class(classes: FileClassRules, text: str) -> FileClass:
    """Evaluate the rules for a path."""
    matching = (
        rule
        for rule in (*BUILT_IN_RULES, *classes.rules)
        if _compile_pattern(rule.pattern).fullmatch(text)
    )
    return next((rule.file_class for rule in matching), FileClass.LIVE)


@lru_cache(maxsize=8192)
def find_collision(classes: FileClassRules, text: str) -> FileClass | None:
    """Class of a rule that a path matches only as other file systems compare it."""
    file_class, folded = match_class(classes, text), _fold_path(text)
    for rule in (*BUILT_IN_RULES, *classes.rules):
        if rule.file_class is file_class or rule.file_class is FileClass.LIVE:
            continue
        # If the path itself matches, an earlier rule decided its class.
        if (
            _compile_pattern(rule.pattern.casefold()).fullmatch(folded)
            and _compile_pattern(rule.pattern).fullmatch(text) is None
        ):
            return rule.file_class
    return None
