"""What may never be stored: a tenant's secrets and unmistakable shapes, replaced by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind
from msgspec import Struct

from carrel.core.redaction.secret_patterns import SHAPES, SecretSpan, find_shapes, scan

LEAST_CHARACTERS = 8
MOST_BYTES = 64 * 1024

_NEEDLE = 32
"""How much of a value is searched for at first: enough to be rare, and the automaton is small."""

_MOST_LOOKED_AT = 4096
"""Short texts whose answer is kept: the same paths are written again and again."""

_NAMED_ROUNDS = 8
"""Rounds in which a marker is put in a value's place; ordinary vaults need one or two."""

_ROUNDS = 16


class SecretPatternMode(StrEnum):
    REDACT = "redact"
    WARN = "warn"
    OFF = "off"


class RedactionResult(Struct, frozen=True, gc=False):
    content: bytes
    replaced: tuple[str, ...] = ()
    """Names of what was replaced, secret ids and shapes, sorted."""
    warned: tuple[str, ...] = ()
    """Names of the shapes that were seen and left, sorted."""

    def __repr__(self) -> str:  # without the content, which is nobody's to log
        return f"Redacted(replaced={self.replaced!r}, warned={self.warned!r})"

    def __rich_repr__(self) -> list[tuple[str, tuple[str, ...]]]:
        return [("replaced", self.replaced), ("warned", self.warned)]


class Redactor:
    """Replaces the secrets of one vault. Made once for a vault's state, used for many contents."""

    __slots__ = ("_every", "_families", "_gate", "_looked_at", "_names", "_shapes")

    def __init__(
        self, secrets: Mapping[str, str], shapes: SecretPatternMode = SecretPatternMode.REDACT
    ) -> None:
        self._shapes = shapes
        self._looked_at: dict[str, tuple[str, ...]] = {}
        self._names: dict[bytes, str] = {}
        for secret_id in sorted(secrets):
            if len(secrets[secret_id]) >= LEAST_CHARACTERS:
                self._names.setdefault(_encoded(secrets[secret_id]), secret_id)
        families = _by_needle(self._names)
        self._families = tuple(families.values())
        # The gate only tells whether there is anything, and is the faster for it; no needle begins
        # with another, so that all matches together are at most one for each byte.
        self._gate = BytesAhoCorasick(families, matchkind=MatchKind.LeftmostFirst)
        self._every = BytesAhoCorasick(families)

    def redact(self, content: bytes) -> RedactionResult:
        """The content without any secret; the very same object if there was none.

        A replacement can complete another value at its seam, so this repeats until a search finds
        nothing. It ends: after a few rounds values are cut out and not replaced, and in the end,
        which only values made for it can reach, nothing of the content is kept.
        """
        spans = self._spans(content)
        if not spans:
            return RedactionResult(content, (), self._warnings(content))
        replaced: set[str] = set()
        for turn in range(_ROUNDS):
            names = {span.name for span in spans}
            markers = {name: self._marker(name) if turn < _NAMED_ROUNDS else b"" for name in names}
            content = _replace(content, spans, markers)
            replaced |= names
            spans = self._spans(content)
            if not spans:
                return RedactionResult(content, tuple(sorted(replaced)), self._warnings(content))
        content = b"" if self._spans(b"[REDACTED]") else b"[REDACTED]"
        return RedactionResult(content, tuple(sorted(replaced)), ())

    def finds_in(self, text: str) -> tuple[str, ...]:
        """The names of what would be replaced in a short text, such as a path."""
        found = self._looked_at.get(text)
        if found is None:
            if len(self._looked_at) >= _MOST_LOOKED_AT:
                self._looked_at.clear()
            found = self._looked_at[text] = self.redact(_encoded(text)).replaced
        return found

    def _spans(self, content: bytes) -> list[SecretSpan]:
        """What is to be replaced first: exact values, and shapes where no value is left."""
        values = self._present(content)
        if values:
            return _longest_first(content, values, self._names)
        return find_shapes(content) if self._shapes is SecretPatternMode.REDACT else []

    def _present(self, content: bytes) -> list[bytes]:
        """The values that occur, be it inside one another."""
        if not self._names or not any(scan(self._gate, content, _NEEDLE)):
            return []
        found = scan(self._every, content, _NEEDLE, overlapping=True)
        suspects = {needle for needle, _, _ in found}
        return [value for one in suspects for value in self._families[one] if value in content]

    def _marker(self, name: str) -> bytes:
        """The marker for a name, or less of it where a marker would itself be redacted."""
        named = b"[REDACTED:%b]" % _encoded(name)
        return next((m for m in (named, b"[REDACTED]") if not self._spans(m)), b"")

    def _warnings(self, content: bytes) -> tuple[str, ...]:
        if self._shapes is not SecretPatternMode.WARN:
            return ()
        return tuple(sorted({span.name for span in find_shapes(content)}))


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_OPENING = "[REDACTED:"
_REST = re.compile(r"[A-Za-z0-9._-]*\]?")


def secret_problem(secret_id: str, value: str) -> str | None:
    """Why this cannot be kept in the vault, in words that do not repeat the value; or None."""
    if not _ID.fullmatch(secret_id):
        return (
            "an id has 1 to 128 letters, digits, dots, dashes or underscores, "
            "and begins with a letter or digit"
        )
    if secret_id in SHAPES:
        return "this id is the name of a shape, whose marker it would share"
    if find_shapes(secret_id.encode()):
        return "this id looks like a secret itself, and ids are shown"
    return _value_problem(value) or _marker_problem(secret_id, value)


def _value_problem(value: str) -> str | None:
    if len(value) < LEAST_CHARACTERS:
        return f"a value has at least {LEAST_CHARACTERS} characters"
    if value.isspace():
        return "a value has more in it than blanks"
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "a value is text that UTF-8 can write"
    return f"a value has at most {MOST_BYTES} bytes" if size > MOST_BYTES else None


def _marker_problem(secret_id: str, value: str) -> str | None:
    """Values that stand in this secret's marker, in a shape's, or in one that begins like any."""
    markers = ["[REDACTED]", *(f"{_OPENING}{name}]" for name in (secret_id, *SHAPES))]
    openings = (_OPENING[at:] for at in range(len(_OPENING) - 1))
    opens = any(value.startswith(o) and _REST.fullmatch(value, len(o)) for o in openings)
    if opens or any(value in marker for marker in markers):
        return "this value is part of a marker that would stand in its place"
    return None


def _encoded(text: str) -> bytes:
    """As UTF-8; what UTF-8 has no form for still gets one, and so never fails a request."""
    return text.encode("utf-8", "surrogatepass")


def _by_needle(values: Iterable[bytes]) -> dict[bytes, list[bytes]]:
    """Every value under the needle it begins with; no needle begins with another.

    In order, all that begins with a needle follows it at once.
    """
    families: dict[bytes, list[bytes]] = {}
    needle = b""
    for value in sorted(values):
        if not (needle and value.startswith(needle)):
            needle = value[:_NEEDLE]
        families.setdefault(needle, []).append(value)
    return families


def _longest_first(
    content: bytes, values: Iterable[bytes], names: Mapping[bytes, str]
) -> list[SecretSpan]:
    """Where values occur without overlaps: longer before shorter, then from left to right."""
    alike: dict[int, list[bytes]] = {}
    for value in values:
        alike.setdefault(len(value), []).append(value)
    spans: list[SecretSpan] = []
    gaps = [(0, len(content))]
    view = memoryview(content)
    for length in sorted(alike, reverse=True):
        same = alike[length]
        automaton = BytesAhoCorasick(same, implementation=Implementation.ContiguousNFA)
        smaller: list[tuple[int, int]] = []
        for left, right in gaps:
            at = left
            for which, start, end in automaton.find_matches_as_indexes(view[left:right]):
                spans.append(SecretSpan(left + start, left + end, names[same[which]]))
                smaller.append((at, left + start))
                at = left + end
            smaller.append((at, right))
        gaps = [gap for gap in smaller if gap[1] - gap[0] >= LEAST_CHARACTERS]
    return sorted(spans)


def _replace(content: bytes, spans: Iterable[SecretSpan], markers: Mapping[str, bytes]) -> bytes:
    pieces: list[bytes] = []
    at = 0
    for start, end, name in spans:
        pieces += (content[at:start], markers[name])
        at = end
    return b"".join((*pieces, content[at:]))
