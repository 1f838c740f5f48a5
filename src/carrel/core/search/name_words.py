"""Words of names, as index keys by which records are found while a name is typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from carrel.core.search.full_text import tokenize
from carrel.core.store.record import RecordFilter, RecordType

_PREFIX: Final = "word:"
_MAX_WORDS: Final = 32
_NAME_FIELDS: Final[Mapping[RecordType, tuple[str, ...]]] = {
    RecordType.AGENT: ("name", "slug"),
    RecordType.TEMPLATE: ("name", "slug"),
    RecordType.PERSON: ("name", "email"),
}


def name_index_keys(record_type: RecordType, body: Mapping[str, Any]) -> list[str]:
    """Index keys of a record, one for each word of its names."""
    names = (str(body[field]) for field in _NAME_FIELDS.get(record_type, ()))
    words = dict.fromkeys(word for name in names for word in tokenize(name))
    return [_PREFIX + word for word in list(words)[:_MAX_WORDS]]


def replace_name_keys(
    record_type: RecordType, body: Mapping[str, Any], index_keys: Sequence[str]
) -> tuple[str, ...]:
    """Index keys of a record whose names may have changed."""
    others = [key for key in index_keys if not key.startswith(_PREFIX)]
    return (*others, *name_index_keys(record_type, body))


def filter_by_name(query: str, *index_keys: str) -> RecordFilter:
    """Filter of records that have every word of a query, each as the beginning of one of theirs.

    A query without words, such as one of punctuation, finds nothing; an empty one finds all.
    """
    words = tokenize(query)
    prefixes = tuple(_PREFIX + word for word in words)
    if query.strip() and not words:
        prefixes = (_PREFIX + query.strip(),)
    return RecordFilter(tuple(index_keys), prefixes)
