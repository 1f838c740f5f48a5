"""Search of memories by words, within bounds."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_ai_harness.memory import MemorySearchMatch, MemorySearchResult


def search_texts(  # noqa: PLR0913 - the bounds of MemoryStore.search
    prefix: str,
    texts: Mapping[str, str],
    query: str,
    *,
    limit: int,
    max_files: int,
    max_chars: int,
    max_file_chars: int,
) -> MemorySearchResult:
    """Files that have words of a query, those with the most first; words in names count twice."""
    words = query.lower().split()
    searched = [(name, text[:max_file_chars]) for name, text in list(texts.items())[:max_files]]
    scored = [(_score(name, text, words), name, text) for name, text in searched]
    hits = sorted((hit for hit in scored if hit[0]), key=lambda hit: (-hit[0], hit[1]))
    matches, remaining = list[MemorySearchMatch](), max_chars
    for score, name, text in hits[:limit]:
        if remaining <= len(name):
            break
        snippet = _snippet(text, words, remaining - len(name))
        matches.append(MemorySearchMatch(path=prefix + name, snippet=snippet, score=float(score)))
        remaining -= len(name) + len(snippet)
    is_cut = any(len(text) > max_file_chars for text in list(texts.values())[:max_files])
    return MemorySearchResult(
        matches=matches,
        scanned=len(searched),
        truncated=is_cut or len(texts) > max_files or len(hits) > len(matches),
    )


def _score(name: str, text: str, words: list[str]) -> int:
    name, text = name.lower(), text.lower()
    return sum(text.count(word) + 2 * name.count(word) for word in words)


def _snippet(text: str, words: list[str], max_chars: int) -> str:
    """The text around the first word that is found."""
    lower = text.lower()
    positions = [position for word in words if (position := lower.find(word)) >= 0]
    start = max(0, min(positions, default=0) - max_chars // 3)
    start = max(0, min(start, len(text) - max_chars))
    snippet = text[start : start + max_chars]
    if start > 0 and max_chars > 6:
        snippet = f"...{snippet[3:]}"
    if start + max_chars < len(text) and max_chars > 6:
        snippet = f"{snippet[:-3]}..."
    return snippet
