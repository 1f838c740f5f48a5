"""A tiny embedding model, created on demand: real in all but its size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path as File
from typing import Final

import numpy as np
from model2vec import StaticModel
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace

MEANINGS: Final[Mapping[str, Sequence[float]]] = {
    "car": (3.0, 0.0, 0.0, 0.0),
    "automobile": (2.0, 0.2, 0.0, 0.0),
    "vehicle": (1.0, 0.9, 0.0, 0.0),
    "tea": (0.0, 0.0, 1.0, 0.0),
    "beverage": (0.0, 0.0, 0.9, 0.1),
    "blue": (0.0, 0.1, 0.0, 1.0),
    "!!!": (3.0, 0.0, 0.0, 0.0),
}
"""The vector of every word of its vocabulary."""


def model(meanings: Mapping[str, Sequence[float]] = MEANINGS) -> StaticModel:
    words = ["[UNK]", *meanings]
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    width = len(next(iter(meanings.values())))
    vectors = np.array([[0.0] * width, *meanings.values()], np.float32)
    return StaticModel(vectors, tokenizer)


def save_model(directory: File) -> File:
    """A directory that contains the model."""
    model().save_pretrained(directory)
    return directory
