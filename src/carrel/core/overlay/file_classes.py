"""Which files are live, which are pinned until somebody has reviewed them, which are managed."""

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

LONGEST_PATTERN: Final = 256
MOST_RULES: Final = 100


class FileClass(StrEnum):
    LIVE = "live"
    """Follows its template and the defaults with every read."""
    PINNED = "pinned"
    """Stays as it was reviewed, whatever its template says, until the next review."""
    MANAGED = "managed"
    """Written by Carrel alone."""


class ClassRule(Struct, frozen=True):
    """Paths that fit a pattern are of a class. ``*`` stops at a slash, ``**`` does not."""

    pattern: str
    file_class: FileClass


FLOOR: Final = (
    ClassRule("GUARDRAILS.md", FileClass.PINNED),
    ClassRule("PLATFORM.md", FileClass.PINNED),
    ClassRule("CAPABILITIES.md", FileClass.PINNED),
    ClassRule("USER.md", FileClass.MANAGED),
)
"""What no tenant can take away."""

_SELECTORS: Final = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
_PIECE: Final = re.compile(r"\*\*/|\*\*|\*|\?")
_MEANS: Final = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def checked_pattern(text: str) -> str:
    """A pattern that some path could fit. Raises Malformed."""
    plain = _PIECE.sub("x", text)
    if len(text) > LONGEST_PATTERN or text.count("*") > 8:
        raise ValidationError(f"a pattern has at most {LONGEST_PATTERN} characters and 8 stars")
    Path(plain if not plain.endswith("/") else plain + "x")
    return text


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts: list[str] = []
    at = 0
    for piece in _PIECE.finditer(pattern):
        parts += (re.escape(pattern[at : piece.start()]), _MEANS[piece[0]])
        at = piece.end()
    return re.compile("".join((*parts, re.escape(pattern[at:]))), re.DOTALL)


def _folded(text: str) -> str:
    """A path as the least exact of disks knows it."""
    seen = "".join(c for c in unicodedata.normalize("NFKC", text) if not _is_ignored(c))
    return "/".join(segment.rstrip(" .") for segment in seen.casefold().split("/"))


def _is_ignored(character: str) -> bool:
    return unicodedata.category(character) == "Cf" or character in _SELECTORS


def matches_any(path: Path, patterns: Iterable[str]) -> bool:
    return any(_compiled(pattern).fullmatch(path.text) for pattern in patterns)


@lru_cache(maxsize=8192)
def _class_of(rules: tuple[ClassRule, ...], text: str) -> FileClass:
    fitting = (rule for rule in (*FLOOR, *rules) if _compiled(rule.pattern).fullmatch(text))
    return next((rule.file_class for rule in fitting), FileClass.LIVE)


class FileClassRules(Struct, frozen=True):
    """A tenant's rules over the floor: the first that fits decides, and none makes it live."""

    rules: tuple[ClassRule, ...] = ()

    @property
    def key(self) -> str:
        """Changes when any of the rules does."""
        return "\n".join(f"{rule.file_class}:{rule.pattern}" for rule in self.rules)

    def class_of(self, path: Path) -> FileClass:
        return _class_of(self.rules, path.text)

    def check_path(self, path: Path) -> FileClass:
        """The class of a path to be written.

        Raises Malformed for one that differs from a pinned or managed path only in letter case, or
        in what some disks leave out of a name: there it would be the same file.
        """
        own = self.class_of(path)
        folded = _folded(path.text)
        for rule in (*FLOOR, *self.rules):
            if rule.file_class is own or rule.file_class is FileClass.LIVE:
                continue
            if _compiled(rule.pattern.casefold()).fullmatch(folded) and not self._apart(path, rule):
                problem = "would be the same file on some disks as one that is"
                raise ValidationError(f"{path} {problem} {rule.file_class}")
        return own

    def _apart(self, path: Path, rule: ClassRule) -> bool:
        """Whether it fits as it is written, so that an earlier rule has made it what it is."""
        return _compiled(rule.pattern).fullmatch(path.text) is not None

    def tightened(self, then: FileClassRules, paths: Iterable[Path]) -> Sequence[Path]:
        """The paths that these rules leave free and those would pin."""
        pinned = FileClass.PINNED
        return [p for p in paths if then.class_of(p) is pinned and self.class_of(p) is not pinned]
