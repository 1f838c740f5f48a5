"""Spelling of paths as case-insensitive and normalizing file systems compare it."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

_VARIATION_SELECTORS: Final = frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)


@lru_cache(maxsize=8192)
def fold_path(text: str) -> str:
    """Path as compared by case-insensitive and normalizing file systems."""
    visible = "".join(c for c in unicodedata.normalize("NFKC", text) if not _is_ignored(c))
    return "/".join(segment.rstrip(" .") for segment in visible.casefold().split("/"))


def _is_ignored(character: str) -> bool:
    return unicodedata.category(character) == "Cf" or character in _VARIATION_SELECTORS


@lru_cache(maxsize=8192)
def path_prefixes(text: str) -> tuple[str, ...]:
    """A path or pattern and its parents, outermost first."""
    segments = text.split("/")
    return tuple("/".join(segments[: i + 1]) for i in range(len(segments)))


def is_variant(text: str, other: str) -> bool:
    """Whether two paths, or parents of them, differ only in their spelling.

    That is, in letter case or in characters that some file systems ignore.
    """
    names = {fold_path(prefix): prefix for prefix in path_prefixes(text)}
    return any(names.get(fold_path(prefix), prefix) != prefix for prefix in path_prefixes(other))
