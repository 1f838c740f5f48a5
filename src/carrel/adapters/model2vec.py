"""Meanings by a static model of model2vec, from a directory on this machine: nothing is fetched.

Imported only where such a model is set, since it and numpy are an extra.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path as File
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from model2vec import StaticModel
from numpy.typing import NDArray

from carrel.ports import IndexedTexts

Matrix: TypeAlias = NDArray[np.float32]

ROOM: Final = 128 * 2**20
"""Bytes of vectors that are kept by their texts, and as many again by their owners."""
_AROUND: Final = 1024
"""Bytes that an owner takes beside, so that those who have nothing are not kept without end."""
_BESIDE: Final = 160
"""Bytes that a vector takes beside its numbers where it is kept by its text."""
_DIGITS: Final = 5
"""Of a cosine: what is alike but for the last bits of a sum is equally near."""


@dataclass(frozen=True, slots=True)
class EmbeddingMatrix:
    """An owner's texts, a row each."""

    revision: int
    ids: NDArray[np.str_]
    """In rising order."""
    rows: Matrix

    @property
    def size(self) -> int:
        return self.ids.nbytes + self.rows.nbytes + _AROUND


class Model2VecIndex:
    def __init__(self, model: StaticModel, room: int = ROOM) -> None:
        self._model, self._room = model, room
        self._width = int(model.dim)
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, bytes] = OrderedDict()
        """Vectors by the digest of their text, which never changes."""
        self._laid: OrderedDict[str, EmbeddingMatrix] = OrderedDict()
        self._size = 0
        self._layings: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @classmethod
    def at(cls, directory: File) -> Model2VecIndex:
        """The model in a directory. Raises ValueError where there is none."""
        if not directory.is_dir():
            # Of what is no directory here model2vec would ask a server elsewhere.
            raise ValueError(f"there is no directory {directory}")
        try:
            model = StaticModel.from_pretrained(directory)
            sound = bool(model.dim and np.isfinite(model.embedding).all())
        except Exception as problem:  # those who read its parts raise what they like
            raise ValueError(f"{directory} holds no model of model2vec: {problem}") from None
        if not sound:
            raise ValueError(f"the model in {directory} is damaged")
        return cls(model)

    async def nearest(
        self, queries: Sequence[str], texts: IndexedTexts, *, limit: int
    ) -> tuple[tuple[tuple[str, float], ...], ...]:
        laid = await self._lay(texts)
        return await asyncio.to_thread(self._compared, queries, laid, limit)

    async def _lay(self, texts: IndexedTexts) -> EmbeddingMatrix:
        """Whoever asks while they are being laid out waits, and finds them."""
        async with self._layings.setdefault(texts.owner, asyncio.Lock()):
            laid = self._laid.get(texts.owner)
            if laid is None or laid.revision < texts.revision:
                laid = await self._read(texts)
                self._keep(texts.owner, laid)
            else:
                self._laid.move_to_end(texts.owner)
            return laid

    async def _read(self, texts: IndexedTexts) -> EmbeddingMatrix:
        ids: list[str] = []
        pages: list[Matrix] = [np.empty((0, self._width), np.float32)]
        async for page in texts.pages:
            ids += [id for id, _ in page]
            pages.append(await asyncio.to_thread(self.vectors, [text for _, text in page]))
        return await asyncio.to_thread(_laid, texts.revision, ids, pages)

    def _keep(self, owner: str, laid: EmbeddingMatrix) -> None:
        was = self._laid.pop(owner, None)
        self._laid[owner] = laid
        self._size += laid.size - (was.size if was else 0)
        while self._size > self._room:
            self._size -= self._laid.popitem(last=False)[1].size

    def _compared(
        self, queries: Sequence[str], laid: EmbeddingMatrix, limit: int
    ) -> tuple[tuple[tuple[str, float], ...], ...]:
        cosines = self.vectors(queries) @ laid.rows.T
        return tuple(_best(row, laid.ids, limit) for row in cosines.round(_DIGITS))

    def vectors(self, texts: Sequence[str]) -> Matrix:
        """A row for each text, of norm 1, or of zeros where no word of it is known."""
        keys = [blake2b(text.encode(), digest_size=16).digest() for text in texts]
        with self._lock:
            found = {key: self._known[key] for key in keys if key in self._known}
            unknown = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
            if unknown:
                fresh = self._placed(list(unknown.values()))
                found |= {key: row.tobytes() for key, row in zip(unknown, fresh, strict=True)}
            self._remember(found)
        together = b"".join(found[key] for key in keys)
        return np.frombuffer(together, np.float32).reshape(len(keys), self._width)

    def _placed(self, texts: list[str]) -> Matrix:
        rows = self._model.encode(texts, normalize=False, use_multiprocessing=False)
        rows = rows.astype(np.float32)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        placed: Matrix = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
        return placed

    def _remember(self, vectors: dict[bytes, bytes]) -> None:
        for key, vector in vectors.items():
            self._known[key] = vector
            self._known.move_to_end(key)
        while len(self._known) * (self._width * 4 + _BESIDE) > self._room:
            self._known.popitem(last=False)


def _laid(revision: int, ids: list[str], pages: list[Matrix]) -> EmbeddingMatrix:
    return EmbeddingMatrix(revision, np.array(ids, np.str_), np.concatenate(pages))


def _best(cosines: Matrix, ids: NDArray[np.str_], limit: int) -> tuple[tuple[str, float], ...]:
    some = np.flatnonzero(cosines > 0)
    order = some[np.lexsort((some, cosines[some]))][::-1][:limit]
    return tuple((str(ids[at]), float(cosines[at])) for at in order)
