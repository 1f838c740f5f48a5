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
from carrel.core.path_spelling import fold_path, is_variant, path_prefixes

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

_WILDCARD: Final = re.compile(r"\*\*/|\*\*|\*|\?")
_TOKEN: Final = re.compile(rf"{_WILDCARD.pattern}|.", re.DOTALL)
_WILDCARD_REGEX: Final = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def parse_pattern(text: str) -> str:
    """Normalize a path pattern to NFC, as paths are.

    Raises ValidationError for a pattern that no path can match.
    """
    pattern = unicodedata.normalize("NFC", text)
    if len(pattern) > MAX_PATTERN_LENGTH or pattern.count("*") > 8:
        raise ValidationError(
            f"a pattern must have at most {MAX_PATTERN_LENGTH} characters and 8 stars"
        )
    longest = _WILDCARD.sub(lambda wildcard: "x/" if wildcard[0] == "**/" else "x", pattern)
    shortest = _WILDCARD.sub(lambda wildcard: "x" if wildcard[0] == "?" else "", pattern)
    if not any(_is_matching_path(pattern, path) for path in (longest, shortest)):
        raise ValidationError(f"no path can match the pattern {text!r}")
    return pattern


def _is_matching_path(pattern: str, text: str) -> bool:
    try:
        path = Path(text)
    except ValidationError:
        return False
    return matches_any(path, (pattern,))


@lru_cache(maxsize=1024)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    parts: list[str] = []
    position = 0
    for wildcard in _WILDCARD.finditer(pattern):
        parts += (re.escape(pattern[position : wildcard.start()]), _WILDCARD_REGEX[wildcard[0]])
        position = wildcard.end()
    return re.compile("".join((*parts, re.escape(pattern[position:]))), re.DOTALL)


def split_pattern(pattern: str) -> Sequence[str]:
    """Wildcards and single characters of a pattern, in order."""
    return [token[0] for token in _TOKEN.finditer(pattern)]


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

        Raises ValidationError if the path or a parent differs from a pinned or managed path, or
        from a parent of one, only in letter case or in characters that some file systems ignore.
        Existing paths that a wildcard protects are found by `collide`.
        """
        collision = self.find_lookalike(path)
        if collision is not None:
            problem = "collides on some file systems with a path that is"
            raise ValidationError(f"{path} {problem} {collision}")
        return match_class(self, path.text)

    def may_collide(self, path: Path) -> bool:
        """Whether a wildcard may protect another path that differs in letter case alone."""
        return _matches_protecting_wildcard(self, path.text)

    def find_lookalike(self, path: Path) -> FileClass | None:
        """Class of a rule that only another spelling of the path or a parent matches."""
        return find_collision(self, path.text)

    def is_protective_of(self, path: Path) -> bool:
        """Whether a rule may make another spelling of a path collide with it."""
        is_live = self.class_of(path) is FileClass.LIVE
        return not is_live or self.may_collide(path) or self.find_lookalike(path) is not None

    def collide(self, path: Path, other: Path) -> bool:
        """Whether two paths are variants of each other and one is pinned or managed."""
        return is_variant(path.text, other.text) and not (
            self.class_of(path) is FileClass.LIVE and self.class_of(other) is FileClass.LIVE
        )

    def find_collisions(self, paths: Iterable[Path]) -> Sequence[tuple[Path, Path]]:
        """Pairs of a protected path and another one that collide, as in `collide`."""
        ordered = sorted(paths)
        spellings: dict[str, tuple[str, Path]] = {}
        for path in ordered:
            if self.class_of(path) is not FileClass.LIVE:
                for prefix in path_prefixes(path.text):
                    spellings.setdefault(fold_path(prefix), (prefix, path))
        return [
            (spellings[folded][1], path)
            for path in ordered
            for prefix in path_prefixes(path.text)
            if (folded := fold_path(prefix)) in spellings and spellings[folded][0] != prefix
        ]

    def deciding_rule(self, path: Path) -> int | None:
        """Index of the tenant's rule that decides a path; None if none does."""
        if any(rule.pattern == path.text for rule in BUILT_IN_RULES):
            return None
        return next(
            (i for i, rule in enumerate(self.rules) if matches_any(path, (rule.pattern,))), None
        )

    def is_kept_by(self, new_rules: FileClassRules) -> bool:
        """Return whether every path that these rules pin or manage stays pinned or managed.

        New rules may only pin, and only `live` rules may be missing.
        """
        remaining = list(self.rules)
        for rule in new_rules.rules:
            position = remaining.index(rule) if rule in remaining else None
            skipped = remaining[:position]
            if position is not None and all(old.file_class is FileClass.LIVE for old in skipped):
                del remaining[: position + 1]
            elif rule.file_class is not FileClass.PINNED:
                return False
        return all(old.file_class is FileClass.LIVE for old in remaining)

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
    """Class of a rule that a path or a parent matches only as other file systems compare it."""
    file_class = match_class(classes, text)
    prefixes = [(prefix, fold_path(prefix)) for prefix in path_prefixes(text)]
    for rule in (*BUILT_IN_RULES, *classes.rules):
        if rule.file_class is FileClass.LIVE:
            continue
        for pattern in path_prefixes(rule.pattern):
            # Which of two paths of one wildcard exists decides: see FileClassRules.collide.
            if rule.file_class is file_class and _WILDCARD.search(pattern):
                continue
            if any(
                _compile_pattern(pattern.casefold()).fullmatch(folded)
                and _compile_pattern(pattern).fullmatch(prefix) is None
                for prefix, folded in prefixes
            ):
                return rule.file_class
    return None


@lru_cache(maxsize=8192)
def _matches_protecting_wildcard(classes: FileClassRules, text: str) -> bool:
    return any(
        _compile_pattern(pattern).fullmatch(prefix)
        for rule in classes.rules
        if rule.file_class is not FileClass.LIVE
        for pattern in path_prefixes(rule.pattern)
        if _WILDCARD.search(pattern)
        for prefix in path_prefixes(text)
    )
