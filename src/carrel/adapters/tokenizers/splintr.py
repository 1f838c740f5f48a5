"""Exact token counts with splintr, whose vocabularies ship with its package."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from importlib.util import find_spec
from typing import Any, Final

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
        self._counts: OrderedDict[bytes, int] = OrderedDict()

    def load(self) -> None:
        """Load the vocabulary now instead of on first use. Raises ValueError if unknown."""
        with self._lock:
            if self._tokenizer is None:
                import splintr  # noqa: PLC0415 - an extra, and large

                self._tokenizer = splintr.Tokenizer.from_pretrained(self.name)

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        keys = [blake2b(text.encode(), digest_size=16).digest() for text in texts]
        counts = {key: self._counts[key] for key in keys if key in self._counts}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in counts}
        if missing:
            counts |= await asyncio.to_thread(self._count_texts, missing)
            self._cache_counts(counts)
        return tuple(counts[key] for key in keys)

    def _count_texts(self, texts: dict[bytes, str]) -> dict[bytes, int]:
        self.load()
        return {key: len(self._tokenizer.encode_ordinary(text)) for key, text in texts.items()}

    def _cache_counts(self, counts: dict[bytes, int]) -> None:
        self._counts.update(counts)
        while len(self._counts) > _MAX_CACHED_COUNTS:
            self._counts.popitem(last=False)
