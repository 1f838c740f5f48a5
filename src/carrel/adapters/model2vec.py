"""Semantic index over a local static model2vec model. Downloads nothing.

Imported only if a model is configured, since model2vec and numpy are an optional extra.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path as File
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from model2vec import StaticModel
from numpy.typing import NDArray

from carrel.core.lru_cache import LruCache
from carrel.ports import IndexedTexts

Matrix: TypeAlias = NDArray[np.float32]

CACHE_BYTES: Final = 128 * 2**20
"""Size limit of the vector cache, and also of the matrix cache."""
_MATRIX_OVERHEAD_BYTES: Final = 1024
"""Counted per matrix besides its arrays, so that empty ones are evicted too."""
_VECTOR_OVERHEAD_BYTES: Final = 160
"""Counted per cached vector besides its numbers."""
_COSINE_DIGITS: Final = 5
"""Decimals of a cosine, so that rounding errors do not decide the order."""


@dataclass(frozen=True, slots=True)
class EmbeddingMatrix:
    """Vectors of one owner's texts at a revision, one row each."""

    revision: int
    ids: NDArray[np.str_]
    """In ascending order."""
    rows: Matrix

    @property
    def size(self) -> int:
        return self.ids.nbytes + self.rows.nbytes + _MATRIX_OVERHEAD_BYTES


class Model2VecIndex:
    def __init__(self, model: StaticModel, max_bytes: int = CACHE_BYTES) -> None:
        self._model = model
        self._width = int(model.dim)
        self._lock = threading.Lock()
        self._vectors_by_text: LruCache[bytes, bytes] = LruCache(max_bytes)
        """Vectors by the digest of their text."""
        self._matrices: LruCache[str, EmbeddingMatrix] = LruCache(max_bytes)
        self._load_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @classmethod
    def from_directory(cls, directory: File) -> Model2VecIndex:
        """Load the model in a directory. Raises ValueError if there is none."""
        if not directory.is_dir():
            # model2vec would download a name that is not a local directory.
            raise ValueError(f"no such directory: {directory}")
        try:
            model = StaticModel.from_pretrained(directory)
            is_valid = bool(model.dim and np.isfinite(model.embedding).all())
        except Exception as problem:  # model2vec documents no exceptions
            raise ValueError(f"{directory} is not a model2vec model: {problem}") from None
        if not is_valid:
            raise ValueError(f"the model in {directory} is damaged")
        return cls(model)

    async def nearest(
        self, queries: Sequence[str], texts: IndexedTexts, *, limit: int
    ) -> tuple[tuple[tuple[str, float], ...], ...]:
        matrix = await self._load_matrix(texts)
        return await asyncio.to_thread(self._find_nearest, queries, matrix, limit)

    async def _load_matrix(self, texts: IndexedTexts) -> EmbeddingMatrix:
        """Return the owner's matrix at this revision or later; one load at a time."""
        async with self._load_locks.setdefault(texts.owner, asyncio.Lock()):
            matrix = self._matrices.get(texts.owner)
            if matrix is None or matrix.revision < texts.revision:
                matrix = await self._embed_pages(texts)
                self._matrices.put(texts.owner, matrix, matrix.size)
            return matrix

    async def _embed_pages(self, texts: IndexedTexts) -> EmbeddingMatrix:
        ids: list[str] = []
        pages: list[Matrix] = [np.empty((0, self._width), np.float32)]
        async for page in texts.pages:
            ids += [id for id, _ in page]
            pages.append(await asyncio.to_thread(self.vectors, [text for _, text in page]))
        return await asyncio.to_thread(_build_matrix, texts.revision, ids, pages)

    def _find_nearest(
        self, queries: Sequence[str], matrix: EmbeddingMatrix, limit: int
    ) -> tuple[tuple[tuple[str, float], ...], ...]:
        cosines = self.vectors(queries) @ matrix.rows.T
        return tuple(_top_matches(row, matrix.ids, limit) for row in cosines.round(_COSINE_DIGITS))

    def vectors(self, texts: Sequence[str]) -> Matrix:
        """Return one row per text: norm 1, or zeros if the model knows none of its words."""
        keys = [blake2b(text.encode(), digest_size=16).digest() for text in texts]
        with self._lock:
            by_key = {
                key: vector
                for key in keys
                if (vector := self._vectors_by_text.get(key)) is not None
            }
            missing = {
                key: text for key, text in zip(keys, texts, strict=True) if key not in by_key
            }
            if missing:
                embedded = self._embed(list(missing.values()))
                for key, row in zip(missing, embedded, strict=True):
                    by_key[key] = vector = row.tobytes()
                    self._vectors_by_text.put(key, vector, len(vector) + _VECTOR_OVERHEAD_BYTES)
        joined = b"".join(by_key[key] for key in keys)
        return np.frombuffer(joined, np.float32).reshape(len(keys), self._width)

    def _embed(self, texts: list[str]) -> Matrix:
        rows = self._model.encode(texts, normalize=False, use_multiprocessing=False)
        rows = rows.astype(np.float32)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        normalized: Matrix = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
        return normalized


def _build_matrix(revision: int, ids: list[str], pages: list[Matrix]) -> EmbeddingMatrix:
    return EmbeddingMatrix(revision, np.array(ids, np.str_), np.concatenate(pages))


def _top_matches(
    cosines: Matrix, ids: NDArray[np.str_], limit: int
) -> tuple[tuple[str, float], ...]:
    candidates = np.flatnonzero(cosines > 0)
    order = candidates[np.lexsort((candidates, cosines[candidates]))][::-1][:limit]
    return tuple((str(ids[index]), float(cosines[index])) for index in order)
