"""Patterns of well-known secrets such as API keys and JWTs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from carrel.core.redaction.pem_keys import find_pem_block

WINDOW_BYTES = 64 * 1024
"""Bytes scanned at a time; bounds the memory for hostile content."""


class SecretSpan(NamedTuple):
    start: int
    end: int
    name: str


class MatchAttempt(NamedTuple):
    """Result of a pattern at an anchor: the secret's span, and the examined end.

    A pattern is not tried again within what it examined. This keeps the search linear.
    """

    start: int
    end: int
    examined_to: int


class SecretPattern(NamedTuple):
    name: str
    anchors: tuple[bytes, ...]
    match: Callable[[bytes, int], MatchAttempt | None]


def scan(
    automaton: BytesAhoCorasick, content: bytes, max_length: int, *, overlapping: bool = False
) -> Iterable[tuple[int, int, int]]:
    """Matches (pattern, start, end) in order; no pattern is longer than `max_length`.

    Windows are searched separately, so matches at their edges may overlap; none is missed.
    """
    if len(content) <= WINDOW_BYTES:
        return automaton.find_matches_as_indexes(content, overlapping)
    return _scan_windows(automaton, content, max_length, overlapping)


def _scan_windows(
    automaton: BytesAhoCorasick, content: bytes, max_length: int, overlapping: bool
) -> Iterator[tuple[int, int, int]]:
    view = memoryview(content)
    for offset in range(0, len(content), WINDOW_BYTES):
        window = view[offset : offset + WINDOW_BYTES + max_length - 1]
        for pattern, start, end in automaton.find_matches_as_indexes(window, overlapping):
            if start < WINDOW_BYTES:
                yield pattern, offset + start, offset + end


def find_anchors(content: bytes) -> Iterable[tuple[int, int, int]]:
    """Where a secret may begin, as (number, start, end). Every secret has such a place."""
    return scan(_ANCHORS, content, _MAX_ANCHOR_BYTES)


def find_secrets(content: bytes) -> list[SecretSpan]:
    """Secrets in content from left to right, without overlaps."""
    spans: list[SecretSpan] = []
    anchors = find_anchors(content)
    if not anchors:
        return spans
    covered_to = 0
    examined_to = [0] * len(_PATTERNS)
    for anchor, position, _ in anchors:
        rule = _PATTERN_BY_ANCHOR[anchor]
        if position < covered_to or position < examined_to[rule]:
            continue
        attempt = _PATTERNS[rule].match(content, position)
        if attempt is None:
            continue
        examined_to[rule] = attempt.examined_to
        if attempt.end > attempt.start:
            spans.append(SecretSpan(attempt.start, attempt.end, _PATTERNS[rule].name))
            covered_to = attempt.end
    return spans


_WORD_START = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
"""No word character before: `task-` is not `sk-`.

An escaped line end is no word character.
"""

_DIGEST_OR_UUID = re.compile(
    rb"(?<![0-9A-Za-z])"
    rb"(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    rb"|[0-9a-fA-F]{32}|[0-9a-fA-F]{40}|[0-9a-fA-F]{56}"
    rb"|[0-9a-fA-F]{64}|[0-9a-fA-F]{96}|[0-9a-fA-F]{128})"
    rb"(?![0-9A-Za-z])"
)
"""A UUID or a hex digest of a usual length, as a separate word."""

_HEX = re.compile(rb"[0-9a-fA-F]{32,}")
_TEN = re.compile(rb"[0-9A-Za-z]{10,}")
_TWENTY = re.compile(rb"[0-9A-Za-z]{20,}")
_DIGIT = re.compile(rb"[0-9]")
_LOWER = re.compile(rb"[a-z]")
_UPPER = re.compile(rb"[A-Z]")
_NON_HEX_LETTER = re.compile(rb"[G-Zg-z]")
_OPENAI_MARKER = b"T3BlbkFJ"  # base64 of "OpenAI", part of every newer key
_ANTHROPIC_TAIL = re.compile(rb"(?:api|admin|oat|ort|sid)[0-9]{2}-(?=.*[0-9A-Z])[0-9A-Za-z_-]{20,}")
_NUMBERS = re.compile(rb"[0-9-]+")
_FINE_GRAINED = re.compile(rb"[0-9A-Za-z]{22,}")


def _looks_random(tail: bytes) -> bool:
    """Whether the text is unlike any word, slug or digest."""
    for run in _TWENTY.findall(_HEX.sub(b"-", tail)):
        mixed = len(run) >= 40 and _LOWER.search(run) and _UPPER.search(run)
        if _NON_HEX_LETTER.search(run) and (mixed or _DIGIT.search(run)):
            return True
    return False


def _before_digests(tail: bytes) -> bytes:
    """Tail up to the first digest or UUID."""
    match = _DIGEST_OR_UUID.search(tail)
    return (tail[: match.start()] if match else tail).rstrip(b"-_")


def _openai_length(tail: bytes) -> int:
    tail = _before_digests(tail)
    return len(tail) if _OPENAI_MARKER in tail or _looks_random(tail) else 0


def _anthropic_length(tail: bytes) -> int:
    tail = _before_digests(tail)
    return len(tail) if _ANTHROPIC_TAIL.fullmatch(tail) or _looks_random(tail) else 0


def _github_length(tail: bytes) -> int:
    return len(tail) if len(tail) >= 36 and not _DIGEST_OR_UUID.fullmatch(tail) else 0


def _github_fine_grained_length(tail: bytes) -> int:
    tail = _before_digests(tail)
    return len(tail) if _FINE_GRAINED.match(tail) else 0


def _slack_length(tail: bytes) -> int:
    """Some tokens consist of numbers and a hex part that looks like a digest."""
    match = _DIGEST_OR_UUID.search(tail)
    head = tail[: match.start()] if match else tail
    if not any(_DIGIT.search(run) for run in _TEN.findall(head)):
        return 0
    if match and _NUMBERS.fullmatch(head) and b"-" not in match[0]:
        return match.end()
    return len(head.rstrip(b"-"))


def _token_matcher(
    prefix: bytes, tail: bytes, secret_length: Callable[[bytes], int]
) -> Callable[[bytes, int], MatchAttempt | None]:
    """Matcher for a prefix and a tail.

    `secret_length` returns how many bytes of the tail are secret. The tail pattern is possessive,
    so only `secret_length` can reject a match.
    """
    pattern = re.compile(_WORD_START + prefix + rb"(?P<tail>" + tail + rb")")

    def match_at(content: bytes, position: int) -> MatchAttempt | None:
        match = pattern.match(content, position)
        if match is None:
            return None
        length = secret_length(match["tail"])
        return MatchAttempt(
            position, match.start("tail") + length if length else position, match.end()
        )

    return match_at


_JWT = re.compile(
    _WORD_START + rb"(?P<head>eyJ[0-9A-Za-z_-]*+)"
    rb"(?:\.(?P<claims>[0-9A-Za-z_-]*+)\.(?P<signature>[0-9A-Za-z_-]*+))?"
)


def _match_jwt(content: bytes, position: int) -> MatchAttempt | None:
    match = _JWT.match(content, position)
    if match is None:
        return None
    head, claims, signature = (part or b"" for part in match.groups())
    genuine = (
        min(len(head), len(claims), len(signature)) >= 10
        and claims.startswith(b"eyJ")
        and not _DIGEST_OR_UUID.fullmatch(signature)
    )
    end = match.start("signature") + len(signature.rstrip(b"-_"))
    return MatchAttempt(position, end if genuine else position, match.end("head"))


def _match_private_key(content: bytes, position: int) -> MatchAttempt:
    start, end = find_pem_block(content, position)
    return MatchAttempt(start, end, end)


PRIVATE_KEY = "private-key"
"""Name of the only pattern whose secrets have several words, headers of any text among them."""
_WORD_TAIL = rb"[0-9A-Za-z_-]*+"
_PATTERNS = (
    SecretPattern(PRIVATE_KEY, (b"BEGIN ",), _match_private_key),
    SecretPattern(
        "aws-access-key",
        (b"AKIA", b"ASIA"),
        _token_matcher(rb"A[KS]IA", rb"[0-9A-Z]{16}(?![0-9A-Za-z])", len),
    ),
    SecretPattern(
        "github-token",
        (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"),
        _token_matcher(rb"gh[pousr]_", rb"[0-9A-Za-z]*+", _github_length),
    ),
    SecretPattern(
        "github-token",
        (b"github_pat_",),
        _token_matcher(rb"github_pat_", rb"[0-9A-Za-z_]*+", _github_fine_grained_length),
    ),
    SecretPattern(
        "slack-token",
        (b"xox",),
        _token_matcher(rb"xox[abceoprs]-", rb"[0-9A-Za-z-]*+", _slack_length),
    ),
    SecretPattern(
        "slack-token",
        (b"xapp-",),
        _token_matcher(rb"xapp-", rb"[0-9]-A[0-9A-Z]{6,20}-[0-9]{6,20}-[0-9a-f]{64}", len),
    ),
    SecretPattern(
        "anthropic-key", (b"sk-ant-",), _token_matcher(rb"sk-ant-", _WORD_TAIL, _anthropic_length)
    ),
    SecretPattern("openai-key", (b"sk-",), _token_matcher(rb"sk-", _WORD_TAIL, _openai_length)),
    SecretPattern("jwt", (b"eyJ",), _match_jwt),
)

PATTERN_NAMES = frozenset(rule.name for rule in _PATTERNS)

_PATTERN_BY_ANCHOR = [number for number, rule in enumerate(_PATTERNS) for _ in rule.anchors]
_MAX_ANCHOR_BYTES = max(len(anchor) for rule in _PATTERNS for anchor in rule.anchors)
_ANCHORS = BytesAhoCorasick(
    [anchor for rule in _PATTERNS for anchor in rule.anchors],
    # Leftmost-first matching is vectorised: 4 KB take half a microsecond. It reports no overlaps,
    # which are not needed: the second of two overlapping anchors is inside a word. Of two anchors
    # that start together the first is reported, so `sk-ant-` precedes `sk-`.
    matchkind=MatchKind.LeftmostFirst,
)
