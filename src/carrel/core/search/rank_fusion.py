"""One order made of several: by words and by meaning, neither of which knows the other's scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

Key = TypeVar("Key")

NEAR: Final = 0.35
"""How alike two meanings must be, as a cosine, for the one to answer a question about the other."""
_DAMPING: Final = 60
"""So that the first of one order does not outweigh what stands high in all of them."""


def fused(orders: Sequence[Sequence[Key]], first: Sequence[Key] = ()) -> list[Key]:
    """Every key once: those in ``first`` as they are, then by the sum of their reciprocal ranks.

    Where that is the same, the earlier order goes before the later. No order names a key twice.
    """
    leading = dict.fromkeys(first)
    scores: dict[Key, float] = {}
    for order in orders:
        for place, key in enumerate(order, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (_DAMPING + place)
    others = [key for key in scores if key not in leading]
    return [*leading, *sorted(others, key=lambda key: -scores[key])]
