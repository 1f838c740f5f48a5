"""Replaces a tenant's secrets and well-known secret patterns by markers.

Writers reach it through `TenantRules` (`actions/policy/tenant_rules.py`): file contents in
`actions/files/content_redaction.py` and `uploads.py`, files of commands in
`actions/sandbox/write_back.py`, sessions, memories, items and records.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import accumulate

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind
from msgspec import Struct

from carrel.core.redaction.secret_patterns import (
    PATTERN_NAMES,
    SecretSpan,
    find_anchors,
    find_secrets,
    scan,
)

MIN_SECRET_LENGTH = 8
MAX_SECRET_BYTES = 64 * 1024

_NEEDLE_BYTES = 32
"""Prefix of a value that is searched for first; keeps the automaton small."""

_MAX_CACHED_TEXTS = 4096
"""Short texts, such as paths, whose result is cached."""

_MARKER_ROUNDS = 8
"""Rounds that insert markers; later rounds delete the value. One or two are usual."""

_MAX_ROUNDS = 16


class SecretPatternMode(StrEnum):
    REDACT = "redact"
    WARN = "warn"
    OFF = "off"


class RedactionResult(Struct, frozen=True, gc=False):
    content: bytes
    replaced: tuple[str, ...] = ()
    """Secret ids and pattern names that were replaced, sorted."""
    warned: tuple[str, ...] = ()
    """Pattern names that were found and left in place, sorted."""

    def __repr__(self) -> str:  # content must never be logged
        return f"RedactionResult(replaced={self.replaced!r}, warned={self.warned!r})"

    def __rich_repr__(self) -> list[tuple[str, tuple[str, ...]]]:
        return [("replaced", self.replaced), ("warned", self.warned)]


class Redactor:
    """Redacts content with one state of a vault. Reusable and cached per state."""

    __slots__ = (
        "_all_matches",
        "_first_match",
        "_names",
        "_names_by_text",
        "_pattern_mode",
        "_values_by_needle",
    )

    def __init__(
        self, secrets: Mapping[str, str], pattern_mode: SecretPatternMode = SecretPatternMode.REDACT
    ) -> None:
        self._pattern_mode = pattern_mode
        self._names_by_text: dict[str, tuple[str, ...]] = {}
        self._names: dict[bytes, str] = {}
        for secret_id in sorted(secrets):
            if len(secrets[secret_id]) >= MIN_SECRET_LENGTH:
                self._names.setdefault(_encode(secrets[secret_id]), secret_id)
        values_by_needle = _group_by_needle(self._names)
        self._values_by_needle = tuple(values_by_needle.values())
        # The first automaton only detects whether any needle occurs, which is faster. No needle is
        # a prefix of another, so there is at most one match per byte.
        self._first_match = BytesAhoCorasick(values_by_needle, matchkind=MatchKind.LeftmostFirst)
        self._all_matches = BytesAhoCorasick(values_by_needle)

    def redact(self, content: bytes) -> RedactionResult:
        """Return the content without secrets; the same object if there are none.

        A replacement can form another value at its edges, so this repeats until nothing is found.
        Later rounds delete values instead of replacing them; if even that does not end, all content
        is dropped.
        """
        spans = self._find_spans(content)
        if not spans:
            return RedactionResult(content, (), self.find_warnings(content))
        replaced: set[str] = set()
        for round_number in range(_MAX_ROUNDS):
            names = {span.name for span in spans}
            markers = {
                name: self._marker(name) if round_number < _MARKER_ROUNDS else b"" for name in names
            }
            content = _replace(content, spans, markers)
            replaced |= names
            spans = self._find_spans(content)
            if not spans:
                return RedactionResult(
                    content, tuple(sorted(replaced)), self.find_warnings(content)
                )
        content = b"" if self._find_spans(b"[REDACTED]") else b"[REDACTED]"
        return RedactionResult(content, tuple(sorted(replaced)), ())

    def redact_all(self, contents: Sequence[bytes]) -> list[RedactionResult]:
        """Results of `redact` for many contents.

        One scan of all of them finds the few that have to be searched one by one.
        """
        suspects = self._find_suspects(contents)
        return [
            self.redact(content) if number in suspects else RedactionResult(content)
            for number, content in enumerate(contents)
        ]

    def _find_suspects(self, contents: Sequence[bytes]) -> set[int]:
        """Numbers of contents that may have secrets; a match across two contents counts for both.

        The matches do not overlap, so one that hides another at a border counts for both, too.
        """
        suspects: set[int] = set()
        ends: list[int] = []
        for start, end in self._find_candidates(b"".join(contents)):
            ends = ends or list(accumulate(map(len, contents)))
            suspects.update(range(bisect_right(ends, start), bisect_right(ends, end - 1) + 1))
        return suspects

    def _find_candidates(self, content: bytes) -> Iterator[tuple[int, int]]:
        """Where a value or a pattern may begin."""
        if self._names:
            for _, start, end in scan(self._first_match, content, _NEEDLE_BYTES):
                yield start, end
        if self._pattern_mode is not SecretPatternMode.OFF:
            for _, start, end in find_anchors(content):
                yield start, end

    def find_cut(self, content: bytes, position: int) -> tuple[int, bool]:
        """Return the last position up to this one that is outside all secrets, or 0.

        And whether the content has secrets at all.
        """
        values = self._values_in(content)
        spans = _find_values(content, values, self._names) if values else []
        if self._pattern_mode is SecretPatternMode.REDACT:
            spans += find_secrets(content)
        cut = position
        while crossed := [span.start for span in spans if span.start < cut < span.end]:
            cut = min(crossed)
        return cut, bool(spans)

    def find_in_text(self, text: str) -> tuple[str, ...]:
        """Names of what would be replaced in a short text, such as a path. Cached."""
        names = self._names_by_text.get(text)
        if names is None:
            if len(self._names_by_text) >= _MAX_CACHED_TEXTS:
                self._names_by_text.clear()
            names = self._names_by_text[text] = self.redact(_encode(text)).replaced
        return names

    def _find_spans(self, content: bytes) -> list[SecretSpan]:
        """Exact values; patterns only if no value is left."""
        values = self._values_in(content)
        if values:
            return _find_values(content, values, self._names)
        return find_secrets(content) if self._pattern_mode is SecretPatternMode.REDACT else []

    def _values_in(self, content: bytes) -> list[bytes]:
        """Values that occur in the content, including values within others."""
        if not self._names or not any(scan(self._first_match, content, _NEEDLE_BYTES)):
            return []
        matches = scan(self._all_matches, content, _NEEDLE_BYTES, overlapping=True)
        suspects = {needle for needle, _, _ in matches}
        return [
            value
            for index in suspects
            for value in self._values_by_needle[index]
            if value in content
        ]

    def _marker(self, name: str) -> bytes:
        """Marker for a name; shorter or empty if the marker itself would be redacted."""
        named = b"[REDACTED:%b]" % _encode(name)
        return next((m for m in (named, b"[REDACTED]") if not self._find_spans(m)), b"")

    def find_warnings(self, content: bytes) -> tuple[str, ...]:
        """Pattern names in content that are only warned about, sorted."""
        if self._pattern_mode is not SecretPatternMode.WARN:
            return ()
        return tuple(sorted({span.name for span in find_secrets(content)}))


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_MARKER_PREFIX = "[REDACTED:"
_MARKER_TAIL = re.compile(r"[A-Za-z0-9._-]*\]?")


def secret_problem(secret_id: str, value: str) -> str | None:
    """Reason why a secret cannot be stored, without the value; None if it can."""
    if not _ID.fullmatch(secret_id):
        return (
            "an id must have 1 to 128 letters, digits, dots, dashes or underscores "
            "and start with a letter or digit"
        )
    if secret_id in PATTERN_NAMES:
        return "this id is the name of a built-in pattern"
    if find_secrets(secret_id.encode()):
        return "this id looks like a secret, and ids are public"
    return _value_problem(value) or _marker_problem(secret_id, value)


def _value_problem(value: str) -> str | None:
    if len(value) < MIN_SECRET_LENGTH:
        return f"a value must have at least {MIN_SECRET_LENGTH} characters"
    if value.isspace():
        return "a value must not be blank"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "a value must be valid Unicode"
    return (
        f"a value must have at most {MAX_SECRET_BYTES} bytes" if size > MAX_SECRET_BYTES else None
    )


def _marker_problem(secret_id: str, value: str) -> str | None:
    """Reject values that are part of a marker."""
    markers = ["[REDACTED]", *(f"{_MARKER_PREFIX}{name}]" for name in (secret_id, *PATTERN_NAMES))]
    openings = (_MARKER_PREFIX[start:] for start in range(len(_MARKER_PREFIX) - 1))
    starts_marker = any(
        value.startswith(o) and _MARKER_TAIL.fullmatch(value, len(o)) for o in openings
    )
    if starts_marker or any(value in marker for marker in markers):
        return "this value is part of a redaction marker"
    return None


def _encode(text: str) -> bytes:
    """UTF-8 that also encodes lone surrogates, so it never fails."""
    return text.encode("utf-8", "surrogatepass")


def _group_by_needle(values: Iterable[bytes]) -> dict[bytes, list[bytes]]:
    """Values grouped by needle; no needle is a prefix of another.

    In sorted order, all values with a needle as prefix follow it directly.
    """
    groups: dict[bytes, list[bytes]] = {}
    needle = b""
    for value in sorted(values):
        if not (needle and value.startswith(needle)):
            needle = value[:_NEEDLE_BYTES]
        groups.setdefault(needle, []).append(value)
    return groups


def _find_values(
    content: bytes, values: Iterable[bytes], names: Mapping[bytes, str]
) -> list[SecretSpan]:
    """Spans of values without overlaps: longer values first, then from left to right."""
    by_length: dict[int, list[bytes]] = {}
    for value in values:
        by_length.setdefault(len(value), []).append(value)
    spans: list[SecretSpan] = []
    gaps = [(0, len(content))]
    view = memoryview(content)
    for length in sorted(by_length, reverse=True):
        group = by_length[length]
        automaton = BytesAhoCorasick(group, implementation=Implementation.ContiguousNFA)
        remaining: list[tuple[int, int]] = []
        for gap_start, gap_end in gaps:
            position = gap_start
            for index, start, end in automaton.find_matches_as_indexes(view[gap_start:gap_end]):
                spans.append(SecretSpan(gap_start + start, gap_start + end, names[group[index]]))
                remaining.append((position, gap_start + start))
                position = gap_start + end
            remaining.append((position, gap_end))
        gaps = [gap for gap in remaining if gap[1] - gap[0] >= MIN_SECRET_LENGTH]
    return sorted(spans)


def _replace(content: bytes, spans: Iterable[SecretSpan], markers: Mapping[str, bytes]) -> bytes:
    parts: list[bytes] = []
    position = 0
    for start, end, name in spans:
        parts += (content[position:start], markers[name])
        position = end
    return b"".join((*parts, content[position:]))
