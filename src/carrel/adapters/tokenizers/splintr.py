"""Real token counts by splintr, whose vocabularies lie in its package: nothing is fetched."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from importlib.util import find_spec
from typing import Any, Final

DEFAULT: Final = "o200k_base"
_MOST: Final = 16_384
"""Counts that are remembered: a text never changes, so neither does its count."""


def is_installed() -> bool:
    return find_spec("splintr") is not None


class SplintrTokens:
    def __init__(self, name: str = DEFAULT) -> None:
        self.name = name
        self._tokenizer: Any = None
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, int] = OrderedDict()

    def load(self) -> None:
        """At once, rather than when something is first counted. Raises ValueError by its name."""
        with self._lock:
            if self._tokenizer is None:
                import splintr  # noqa: PLC0415 - an extra, and large

                self._tokenizer = splintr.Tokenizer.from_pretrained(self.name)

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        keys = [blake2b(text.encode(), digest_size=16).digest() for text in texts]
        found = {key: self._known[key] for key in keys if key in self._known}
        unknown = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if unknown:
            found |= await asyncio.to_thread(self._counted, unknown)
            self._remember(found)
        return tuple(found[key] for key in keys)

    def _counted(self, texts: dict[bytes, str]) -> dict[bytes, int]:
        self.load()
        return {key: len(self._tokenizer.encode_ordinary(text)) for key, text in texts.items()}

    def _remember(self, counts: dict[bytes, int]) -> None:
        self._known.update(counts)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
