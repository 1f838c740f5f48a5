"""Queries of the full-text index of session entries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from sqlite3 import Connection, Cursor

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.rows import Row
from carrel.core.search.bm25 import MAX_COUNTED, TermCount, TermStatistics
from carrel.core.sessions.session import limit_by_size


def owner_term(tenant: str, agent: str) -> str:
    """Return one search term that identifies tenant and agent."""
    return hashlib.blake2b(f"{tenant}/{agent}".encode(), digest_size=12).hexdigest()


def match_expression(owner: str, term: str, *, is_prefix: bool) -> str:
    """Return an FTS5 query. Terms are letters and digits, so quoting is enough."""
    return f'{{owner}} : "{owner}" AND {{terms}} : "{term}"' + " *" * is_prefix


def count_terms_of(
    db: Connection, owner_key: tuple[str, str], terms: Sequence[str]
) -> TermStatistics:
    [documents] = db.execute(STATEMENTS["count_session_entries_by_agent"], owner_key).fetchone()
    owner = owner_term(*owner_key)

    def count(term: str, is_prefix: bool) -> int:
        expression = match_expression(owner, term, is_prefix=is_prefix)
        parameters = (expression, MAX_COUNTED)
        return int(db.execute(STATEMENTS["count_session_entry_terms"], parameters).fetchone()[0])

    counts = {term: TermCount(count(term, False), count(term, True)) for term in terms}
    return TermStatistics(documents, counts)


def search_rows(db: Connection, parameters: Row) -> list[Row]:
    """Find ids first, so that only short rows are sorted."""
    ids = [
        row[0] for row in db.execute(STATEMENTS["search_session_entries"], parameters).fetchall()
    ]
    return limit_bytes(db.execute(STATEMENTS["session_entries_by_id"], (json.dumps(ids),)), 4)


def limit_bytes(rows: Cursor, content: int) -> list[Row]:
    """Return rows up to the size limit of a response, by the content and item columns."""
    limited: Iterator[Row] = limit_by_size(
        rows,
        lambda row: len(row[content]) + sum(len(item or "") for item in row[content + 4 :][:1]),
    )
    return list(limited)
