"""Filters, namespace conditions and similarity, as LangGraph stores define them."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

_KEY: Final = re.compile(r"[A-Za-z0-9_.-]+")
_ABSENT: Final = object()
_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_ORDER: Final = frozenset({"$gt", "$gte", "$lt", "$lte"})
WILDCARD: Final = "*"


def check_filter(conditions: Mapping[str, Any] | None) -> None:
    """Raises ValueError for a key or an operator that stores do not have."""
    for key, condition in (conditions or {}).items():
        if not _KEY.fullmatch(key):
            raise ValueError(
                f"Invalid filter key: {key!r}. Filter keys have letters, digits, _, . and - only."
            )
        for name in condition if isinstance(condition, Mapping) else ():
            if name.startswith("$") and name not in _OPERATORS:
                raise ValueError(f"Unsupported operator: {name}")


def fits_filter(value: Mapping[str, Any], conditions: Mapping[str, Any] | None) -> bool:
    """Whether a value fits all conditions: equal, or by operators; a dot leads into objects."""
    return all(
        _fits(_field(value, key), condition) for key, condition in (conditions or {}).items()
    )


def _field(value: Mapping[str, Any], key: str) -> Any:
    if key in value:
        return value[key]
    field: Any = value
    for name in key.split("."):
        if not isinstance(field, Mapping) or name not in field:
            return _ABSENT
        field = field[name]
    return field


def _fits(field: Any, condition: Any) -> bool:
    is_operation = isinstance(condition, Mapping) and any(name in _OPERATORS for name in condition)
    if not is_operation:
        return _compare("$eq", field, condition)
    return all(_compare(name, field, operand) for name, operand in condition.items())


def _compare(name: str, field: Any, operand: Any) -> bool:
    if field is _ABSENT:
        return name == "$ne"
    if isinstance(field, bool) != isinstance(operand, bool):
        return name == "$ne"
    try:
        return bool(_OPERATORS[name](field, operand))
    except TypeError:
        if name in _ORDER:
            return False
        raise


def has_prefix(namespace: Sequence[str], prefix: Sequence[str]) -> bool:
    """Whether a namespace begins with labels, of which ``*`` is any."""
    return len(namespace) >= len(prefix) and _labels_fit(namespace, prefix)


def has_suffix(namespace: Sequence[str], suffix: Sequence[str]) -> bool:
    if len(namespace) < len(suffix):
        return False
    return _labels_fit(namespace[len(namespace) - len(suffix) :], suffix)


def _labels_fit(labels: Sequence[str], pattern: Sequence[str]) -> bool:
    pairs = zip(labels, pattern, strict=False)
    return all(expected in (WILDCARD, label) for label, expected in pairs)


def literal_prefix(prefix: Sequence[str]) -> tuple[str, ...]:
    """The labels before the first that stands for any."""
    labels = list(prefix)
    return tuple(labels[: labels.index(WILDCARD)] if WILDCARD in labels else labels)


def best_similarity(query: Sequence[float], vectors: Iterable[Sequence[float]]) -> float | None:
    """The highest cosine similarity of any of the vectors; None if there are none."""
    return max((_cosine(query, vector) for vector in vectors), default=None)


def _cosine(first: Sequence[float], other: Sequence[float]) -> float:
    product = sum(a * b for a, b in zip(first, other, strict=True))
    lengths = math.sqrt(sum(a * a for a in first)) * math.sqrt(sum(b * b for b in other))
    return product / lengths if lengths else 0.0
