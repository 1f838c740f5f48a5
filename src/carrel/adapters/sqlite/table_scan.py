"""Reads a table in key order, past damaged pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from carrel.adapters.sqlite.damage import is_damage

Row = Sequence[Any]
Fetch = Callable[[sqlite3.Cursor, int], Sequence[Row]]


class TableScan:
    """Returns the rows of a table in batches.

    After a damaged page it reads the other rows: first each row by its key, then from the end
    backwards. ``damage`` names the rows that cannot be read.
    """

    def __init__(
        self, db: sqlite3.Connection, source: str, columns: Sequence[str], key_length: int
    ) -> None:
        self._db, self._source = db, source
        self._columns, self._keys = ", ".join(columns), columns[:key_length]
        self.damage: list[str] = []

    def batches(self, fetch: Fetch, size: int) -> Iterator[Sequence[Row]]:
        """Rows ordered by key. A generator, so that each batch is read when it is needed."""
        last: Row | None = None
        try:
            keys = ", ".join(self._keys)
            cursor = self._db.execute(f"SELECT {self._columns} FROM {self._source} ORDER BY {keys}")
            while rows := fetch(cursor, size):
                last = rows[-1][: len(self._keys)]
                yield rows
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            yield from self._batches_after(last, size)

    def _batches_after(self, last: Row | None, size: int) -> Iterator[Sequence[Row]]:
        ahead, is_complete = self._readable_keys(last, "ASC")
        behind: list[Row] = []
        if not is_complete:
            behind = self._readable_keys(ahead[-1] if ahead else last, "DESC")[0][::-1]
            self.damage.append(_describe_gap(ahead[-1] if ahead else last, behind))
        rows = [row for key in (*ahead, *behind) if (row := self._row(key)) is not None]
        for start in range(0, len(rows), size):
            yield rows[start : start + size]

    def _readable_keys(self, after: Row | None, order: str) -> tuple[list[Row], bool]:
        """Keys greater than ``after`` until a damaged page, and whether there is none."""
        names = ", ".join(self._keys)
        placeholders = ", ".join("?" for _ in self._keys)
        condition = f"WHERE ({names}) > ({placeholders})" if after is not None else ""
        ordering = ", ".join(f"{name} {order}" for name in self._keys)
        keys: list[Row] = []
        try:
            for key in self._db.execute(
                f"SELECT {names} FROM {self._source} {condition} ORDER BY {ordering}", after or ()
            ):
                keys.append(key)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            return keys, False
        return keys, True

    def _row(self, key: Row) -> Row | None:
        condition = " AND ".join(f"{name} IS ?" for name in self._keys)
        sql = f"SELECT {self._columns} FROM {self._source} WHERE {condition}"
        try:
            row: Row | None = self._db.execute(sql, key).fetchone()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self.damage.append(f"row {_format_key(key)} cannot be read")
            return None
        return row


def _describe_gap(before: Row | None, behind: Sequence[Row]) -> str:
    start = f"after {_format_key(before)}" if before is not None else "from the first"
    end = f"up to {_format_key(behind[0])}" if behind else "to the last"
    return f"rows {start} {end} cannot be read"


def _format_key(key: Row) -> str:
    return "/".join(map(str, key))
