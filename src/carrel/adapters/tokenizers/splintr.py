"""Exact token counts with splintr, whose vocabularies ship with its package."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from hashlib import blake2b
from importlib.util import find_spec
from typing import Any, Final

from carrel.core.lru_cache import LruCache

DEFAULT_ENCODING: Final = "o200k_base"
_MAX_CACHED_COUNTS: Final = 16_384
"""Number of cached token counts."""


def is_installed() -> bool:
    return find_spec("splintr") is not None


class SplintrTokens:
    def __init__(self, name: str = DEFAULT_ENCODING) -> None:
        self.name = name
        self._tokenizer: Any = None
        self._lock = threading.Lock()
        self._counts: LruCache[bytes, int] = LruCache(_MAX_CACHED_COUNTS)

    def load(self) -> None:
        """Load the vocabulary now instead of on first use. Raises ValueError if unknown."""
        with self._lock:
            if self._tokenizer is None:
                import splintr  # noqa: PLC0415 - an extra, and large

                self._tokenizer = splintr.Tokenizer.from_pretrained(self.name)

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        keys = [blake2b(text.encode(), digest_size=16).digest() for text in texts]
        counts: dict[bytes, int] = {}
        missing: dict[bytes, str] = {}
        for key, text in zip(keys, texts, strict=True):
            count = self._counts.get(key)
            if count is None:
                missing[key] = text
            else:
                counts[key] = count
        if missing:
            for key, count in (await asyncio.to_thread(self._count_texts, missing)).items():
                counts[key] = count
                self._counts.put(key, count)
        return tuple(counts[key] for key in keys)

    def _count_texts(self, texts: dict[bytes, str]) -> dict[bytes, int]:
        self.load()
        return {key: len(self._tokenizer.encode_ordinary(text)) for key, text in texts.items()}
