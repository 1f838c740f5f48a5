"""The few shapes of text that are unmistakably a secret, whoever's it is, and where they occur."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from carrel.core.redaction.pem_keys import read_armour

WINDOW = 64 * 1024
"""Bytes scanned at a time, so that a large hostile content never becomes one large list."""


class SecretSpan(NamedTuple):
    start: int
    end: int
    name: str


class MatchAttempt(NamedTuple):
    """What a rule saw at an anchor: a secret (none if it is empty), and up to where it looked.

    A rule that says no is not asked again about what it has looked at. This is what keeps the
    search linear in the content, whatever the content.
    """

    start: int
    end: int
    seen: int


class SecretPattern(NamedTuple):
    name: str
    anchors: tuple[bytes, ...]
    look: Callable[[bytes, int], MatchAttempt | None]


def scan(
    automaton: BytesAhoCorasick, content: bytes, reach: int, *, overlapping: bool = False
) -> Iterable[tuple[int, int, int]]:
    """The automaton's matches (pattern, start, end) in order; no pattern is longer than `reach`.

    Each window is searched by itself, so matches at its edge may overlap; none is missed.
    """
    if len(content) <= WINDOW:
        return automaton.find_matches_as_indexes(content, overlapping)
    return _windows(automaton, content, reach, overlapping)


def _windows(
    automaton: BytesAhoCorasick, content: bytes, reach: int, overlapping: bool
) -> Iterator[tuple[int, int, int]]:
    view = memoryview(content)
    for left in range(0, len(content), WINDOW):
        window = view[left : left + WINDOW + reach - 1]
        for pattern, start, end in automaton.find_matches_as_indexes(window, overlapping):
            if start < WINDOW:
                yield pattern, left + start, left + end


def find_shapes(content: bytes) -> list[SecretSpan]:
    """Where a shape occurs, from left to right, without overlaps."""
    spans: list[SecretSpan] = []
    anchors = scan(_ANCHORS, content, _REACH)
    if not anchors:
        return spans
    taken = 0
    seen = [0] * len(_RULES)
    for anchor, at, _ in anchors:
        rule = _RULE_OF[anchor]
        if at < taken or at < seen[rule]:
            continue
        look = _RULES[rule].look(content, at)
        if look is None:
            continue
        seen[rule] = look.seen
        if look.end > look.start:
            spans.append(SecretSpan(look.start, look.end, _RULES[rule].name))
            taken = look.end
    return spans


_LEFT = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
"""Nothing of the same word stands before: `task-` is no `sk-`. An escaped line end is no word."""

_UNTOUCHABLE = re.compile(
    rb"(?<![0-9A-Za-z])"
    rb"(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    rb"|[0-9a-fA-F]{32}|[0-9a-fA-F]{40}|[0-9a-fA-F]{56}"
    rb"|[0-9a-fA-F]{64}|[0-9a-fA-F]{96}|[0-9a-fA-F]{128})"
    rb"(?![0-9A-Za-z])"
)
"""A UUID, or a digest of any usual length, standing by itself."""

_HEX = re.compile(rb"[0-9a-fA-F]{32,}")
_TEN = re.compile(rb"[0-9A-Za-z]{10,}")
_TWENTY = re.compile(rb"[0-9A-Za-z]{20,}")
_DIGIT = re.compile(rb"[0-9]")
_LOWER = re.compile(rb"[a-z]")
_UPPER = re.compile(rb"[A-Z]")
_PAST_HEX = re.compile(rb"[G-Zg-z]")
_OF_OPENAI = b"T3BlbkFJ"  # base64 of "OpenAI", in the middle of every newer key
_OF_ANTHROPIC = re.compile(rb"(?:api|admin|oat|ort|sid)[0-9]{2}-(?=.*[0-9A-Z])[0-9A-Za-z_-]{20,}")
_NUMBERS = re.compile(rb"[0-9-]+")
_FINE_GRAINED = re.compile(rb"[0-9A-Za-z]{22,}")


def _looks_random(tail: bytes) -> bool:
    """Whether no word, slug or digest reads like this."""
    for run in _TWENTY.findall(_HEX.sub(b"-", tail)):
        mixed = len(run) >= 40 and _LOWER.search(run) and _UPPER.search(run)
        if _PAST_HEX.search(run) and (mixed or _DIGIT.search(run)):
            return True
    return False


def _before_digests(tail: bytes) -> bytes:
    """The tail up to the first digest or UUID joined to it."""
    found = _UNTOUCHABLE.search(tail)
    return (tail[: found.start()] if found else tail).rstrip(b"-_")


def _openai(tail: bytes) -> int:
    tail = _before_digests(tail)
    return len(tail) if _OF_OPENAI in tail or _looks_random(tail) else 0


def _anthropic(tail: bytes) -> int:
    tail = _before_digests(tail)
    return len(tail) if _OF_ANTHROPIC.fullmatch(tail) or _looks_random(tail) else 0


def _github(tail: bytes) -> int:
    return len(tail) if len(tail) >= 36 and not _UNTOUCHABLE.fullmatch(tail) else 0


def _github_fine_grained(tail: bytes) -> int:
    tail = _before_digests(tail)
    return len(tail) if _FINE_GRAINED.match(tail) else 0


def _slack(tail: bytes) -> int:
    """Some tokens are numbers and then what could be a digest, which there belongs to them."""
    found = _UNTOUCHABLE.search(tail)
    head = tail[: found.start()] if found else tail
    if not any(_DIGIT.search(run) for run in _TEN.findall(head)):
        return 0
    if found and _NUMBERS.fullmatch(head) and b"-" not in found[0]:
        return found.end()
    return len(head.rstrip(b"-"))


def _token(
    prefix: bytes, tail: bytes, judge: Callable[[bytes], int]
) -> Callable[[bytes, int], MatchAttempt | None]:
    """A rule for a prefix and a tail, of which the judge says how many bytes belong to a secret.

    The tail's pattern takes all it can and never gives back, so that only the judge refuses.
    """
    pattern = re.compile(_LEFT + prefix + rb"(?P<tail>" + tail + rb")")

    def look(content: bytes, at: int) -> MatchAttempt | None:
        found = pattern.match(content, at)
        if found is None:
            return None
        kept = judge(found["tail"])
        return MatchAttempt(at, found.start("tail") + kept if kept else at, found.end())

    return look


_JWT = re.compile(
    _LEFT + rb"(?P<head>eyJ[0-9A-Za-z_-]*+)"
    rb"(?:\.(?P<claims>[0-9A-Za-z_-]*+)\.(?P<signature>[0-9A-Za-z_-]*+))?"
)


def _jwt(content: bytes, at: int) -> MatchAttempt | None:
    found = _JWT.match(content, at)
    if found is None:
        return None
    head, claims, signature = (part or b"" for part in found.groups())
    genuine = (
        min(len(head), len(claims), len(signature)) >= 10
        and claims.startswith(b"eyJ")
        and not _UNTOUCHABLE.fullmatch(signature)
    )
    end = found.start("signature") + len(signature.rstrip(b"-_"))
    return MatchAttempt(at, end if genuine else at, found.end("head"))


def _private_key(content: bytes, at: int) -> MatchAttempt:
    start, end = read_armour(content, at)
    return MatchAttempt(start, end, end)


_WORD = rb"[0-9A-Za-z_-]*+"
_RULES = (
    SecretPattern("private-key", (b"BEGIN ",), _private_key),
    SecretPattern(
        "aws-access-key",
        (b"AKIA", b"ASIA"),
        _token(rb"A[KS]IA", rb"[0-9A-Z]{16}(?![0-9A-Za-z])", len),
    ),
    SecretPattern(
        "github-token",
        (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"),
        _token(rb"gh[pousr]_", rb"[0-9A-Za-z]*+", _github),
    ),
    SecretPattern(
        "github-token",
        (b"github_pat_",),
        _token(rb"github_pat_", rb"[0-9A-Za-z_]*+", _github_fine_grained),
    ),
    SecretPattern("slack-token", (b"xox",), _token(rb"xox[abceoprs]-", rb"[0-9A-Za-z-]*+", _slack)),
    SecretPattern(
        "slack-token",
        (b"xapp-",),
        _token(rb"xapp-", rb"[0-9]-A[0-9A-Z]{6,20}-[0-9]{6,20}-[0-9a-f]{64}", len),
    ),
    SecretPattern("anthropic-key", (b"sk-ant-",), _token(rb"sk-ant-", _WORD, _anthropic)),
    SecretPattern("openai-key", (b"sk-",), _token(rb"sk-", _WORD, _openai)),
    SecretPattern("jwt", (b"eyJ",), _jwt),
)

SHAPES = frozenset(rule.name for rule in _RULES)

_RULE_OF = [number for number, rule in enumerate(_RULES) for _ in rule.anchors]
_REACH = max(len(anchor) for rule in _RULES for anchor in rule.anchors)
_ANCHORS = BytesAhoCorasick(
    [anchor for rule in _RULES for anchor in rule.anchors],
    # Leftmost matching is vectorised for this few patterns: 4 KB take half a microsecond. It finds
    # no overlaps, and needs none: where two anchors overlap, the second is inside a word. Where two
    # begin together the first of them is found, and so `sk-ant-` stands before `sk-`.
    matchkind=MatchKind.LeftmostFirst,
)
