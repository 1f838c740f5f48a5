"""Ranks texts for a query by BM25, with the rarity of words in the searched collection.

A store counts the documents of each term (`TermStatistics`) and returns the candidates with the
highest sum of `TermWeight`; both are whole numbers, so every store returns the same candidates.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from msgspec import Struct

from carrel.core.identifiers import TimestampMs
from carrel.core.search.full_text import ParsedQuery, iter_terms, parse_query, tokenize

Key = TypeVar("Key")

MAX_COUNTED: Final = 10_000
"""Documents of one term that are counted; a more frequent term is no rarer than this."""
MAX_POSTINGS: Final = 20_000
"""Matches of all terms from which candidates are selected, unless one term has more."""

_SATURATION: Final = 1.2
"""k1 of BM25: how soon more occurrences of a term stop counting."""
_LENGTH_WEIGHT: Final = 0.5
"""b of BM25: how much a long text is discounted."""
_PREFIX_WEIGHT: Final = 0.5
"""Weight of a word that only starts with the term, relative to the word itself."""
_CHARACTER_WEIGHT: Final = 0.5
"""Weight of a single ideograph, relative to a word."""
_FUNCTION_WORD_WEIGHT: Final = 0.001
_MIN_WEIGHT: Final = 0.01
_PHRASE_BONUS: Final = 0.25
"""Additional share of the score if the text contains the query as a phrase."""
_UNITS: Final = 10_000
"""Whole units of a weight of 1."""
_SCORE_DIGITS: Final = 6


class TermCount(Struct, frozen=True):
    """Number of documents with a term, and with a word that starts with it."""

    exact: int
    prefixed: int


class TermStatistics(Struct, frozen=True):
    """Number of documents in a collection, and with each term of a query."""

    documents: int
    counts: Mapping[str, TermCount]

    def combine(self, other: TermStatistics) -> TermStatistics:
        """Statistics of both collections together; they have no document in common."""
        pairs = {
            term: (self.counts.get(term, _ABSENT), other.counts.get(term, _ABSENT))
            for term in (*self.counts, *other.counts)
        }
        counts = {
            term: TermCount(first.exact + second.exact, first.prefixed + second.prefixed)
            for term, (first, second) in pairs.items()
        }
        return TermStatistics(self.documents + other.documents, counts)

    def weights(self, query: ParsedQuery) -> dict[str, tuple[float, float]]:
        """Weight of each term and of a word that starts with it, from 0 to 1 by rarity."""
        function = (_FUNCTION_WORD_WEIGHT, _PREFIX_WEIGHT * _FUNCTION_WORD_WEIGHT)
        content = {term: self._content_weight(term) for term in query.content}
        return {**content, **dict.fromkeys(query.function, function)}

    def best_score(self, query: ParsedQuery) -> float:
        """Score of a text of average length with all terms that the collection has."""
        total = 0.0
        for term in query.content:
            count = self.counts.get(term, _ABSENT)
            if count.prefixed:
                total += self._content_weight(term)[0 if count.exact else 1]
        return total or 1.0

    def _content_weight(self, term: str) -> tuple[float, float]:
        count = self.counts.get(term, _ABSENT)
        share = _CHARACTER_WEIGHT if len(term) == 1 and not term.isascii() else 1.0
        exact, prefixed = (share * self._rarity(n) for n in (count.exact, count.prefixed))
        return exact, _PREFIX_WEIGHT * prefixed

    def _rarity(self, count: int) -> float:
        total = max(self.documents, count, 1)
        rarity = math.log(1 + (total - count + 0.5) / (count + 0.5))
        return max(_MIN_WEIGHT, rarity / math.log(1 + (total - 0.5) / 1.5)) if count else 1.0


_ABSENT: Final = TermCount(0, 0)
NO_STATISTICS: Final = TermStatistics(0, {})


class TermWeight(Struct, frozen=True):
    """Weights of a term in the selection of candidates, in whole units."""

    term: str
    exact: int
    prefix: int
    """Weight of words that start with the term; 0 if they do not match."""


class ScoredText(Struct, Generic[Key], frozen=True):
    key: Key
    score: float
    """Share of the query that the text answers: 1 if it has all known terms."""


def select_terms(query: ParsedQuery, statistics: TermStatistics) -> list[TermWeight]:
    """Terms by which candidates are selected: rarest first, up to MAX_POSTINGS matches.

    Function words only if the collection has no other term of the query.
    """
    counts = {term: count.prefixed for term, count in statistics.counts.items() if count.prefixed}
    searched_terms = [term for term in query.content if term in counts] or list(counts)
    weights = statistics.weights(query)
    selected: list[TermWeight] = []
    total = 0
    for term in sorted(searched_terms, key=lambda term: (counts[term], term)):
        total += counts[term]
        if selected and total > MAX_POSTINGS:
            break
        exact, prefix = (round(_UNITS * weight) for weight in weights[term])
        selected.append(TermWeight(term, exact, prefix))
    return selected


def split_weights(terms: Sequence[TermWeight]) -> list[tuple[str, bool, int]]:
    """Term, whether as a prefix, and weight, such that the weights of one term add up."""
    return [
        *((item.term, False, item.exact - item.prefix) for item in terms),
        *((item.term, True, item.prefix) for item in terms if item.prefix),
    ]


def rank_texts(
    query: str,
    candidates: Sequence[tuple[Key, str, TimestampMs]],
    statistics: TermStatistics | None = None,
    *,
    uncounted: int = 0,
) -> list[ScoredText[Key]]:
    """Candidates with a term of the query, best first, newer first among equals.

    The first `uncounted` candidates are added to the statistics; without statistics, all are.
    """
    parsed = parse_query(query)
    texts = [(key, tokenize(text), at) for key, text, at in candidates]
    documents = [_Document(text_words) for _, text_words, _ in texts]
    if statistics is None:
        statistics = _count_terms(parsed.terms, documents)
    elif uncounted:
        statistics = statistics.combine(_count_terms(parsed.terms, documents[:uncounted]))
    weights = statistics.weights(parsed)
    average = sum(document.length for document in documents) / max(1, len(documents))
    best = statistics.best_score(parsed)
    hits = []
    for (key, text_words, at), document in zip(texts, documents, strict=True):
        score = document.score(weights, average)
        if score and _has_phrase(parsed.words, text_words):
            score *= 1 + _PHRASE_BONUS
        if score:
            hits.append((round(score, _SCORE_DIGITS), at, key))
    hits.sort(key=lambda hit: hit[:2], reverse=True)
    return [ScoredText(key, min(1.0, round(score / best, _SCORE_DIGITS))) for score, _, key in hits]


class _Document:
    """Terms of one text with their number of occurrences."""

    def __init__(self, words: Sequence[str]) -> None:
        self.counts = Counter(iter_terms(words))
        self.length = len(words)
        self._vocabulary: list[str] | None = None

    def score(self, weights: Mapping[str, tuple[float, float]], average_length: float) -> float:
        norm = 1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * self.length / (average_length or 1)
        total = 0.0
        for term, (exact, prefix) in weights.items():
            count = self.counts.get(term, 0)
            weight = exact if count else prefix if prefix and self.has_prefix(term) else 0.0
            occurrences = count or 1
            total += weight * occurrences * (_SATURATION + 1) / (occurrences + _SATURATION * norm)
        return total

    def has_prefix(self, prefix: str) -> bool:
        if self._vocabulary is None:
            self._vocabulary = sorted(self.counts)
        index = bisect_left(self._vocabulary, prefix)
        return index < len(self._vocabulary) and self._vocabulary[index].startswith(prefix)


def _count_terms(terms: Sequence[str], documents: Sequence[_Document]) -> TermStatistics:
    def count(matches: Callable[[_Document], bool]) -> int:
        return sum(map(matches, documents))

    return TermStatistics(
        len(documents),
        {
            term: TermCount(
                count(lambda document, term=term: term in document.counts),  # type: ignore[misc]
                count(lambda document, term=term: document.has_prefix(term)),  # type: ignore[misc]
            )
            for term in terms
        },
    )


def _has_phrase(terms: Sequence[str], words: Sequence[str]) -> bool:
    """Whether two or more terms occur consecutively; the last may be a prefix."""
    if len(terms) < 2:
        return False
    *before, last = terms
    width = len(before)
    return any(
        word.startswith(last) and list(words[max(index - width, 0) : index]) == before
        for index, word in enumerate(words)
    )
