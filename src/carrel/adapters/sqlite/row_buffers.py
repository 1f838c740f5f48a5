"""Rows that a transaction writes at its end, in one or two statements for each table."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Final

from msgspec.json import encode

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.rows import Row

_MIN_JOINT_ROWS: Final = 8
"""So many events are written by one statement, since binding a row takes longer than inserting it.

Versions and entries have too many columns of their own for that.
"""


class RowBuffers:
    """Rows by table, in the order of their statements."""

    __slots__ = ("contents", "entries", "events", "prunes", "scopes", "versions")

    def __init__(self) -> None:
        self.scopes: list[Row] = []
        self.contents: list[Row] = []
        self.versions: list[Row] = []
        self.entries: dict[tuple[int, str], Row] = {}
        self.events: list[Row] = []
        """With consecutive ids."""
        self.prunes: list[Row] = []

    def write(self, db: sqlite3.Connection) -> None:
        """Write all rows and empty the buffers."""
        _write_each(db, "add_scope", self.scopes)
        _write_each(db, "add_content", self.contents)
        _write_each(db, "add_version", self.versions)
        _write_each(db, "set_entry", self.entries.values())
        self._write_events(db)
        _write_each(db, "prune_version", self.prunes)
        for rows in (self.scopes, self.contents, self.versions, self.events, self.prunes):
            rows.clear()
        self.entries.clear()

    def _write_events(self, db: sqlite3.Connection) -> None:
        """Write events with one statement if only their ids and payloads differ.

        Those in the log of a run differ in their sequence.
        """
        rows = self.events
        if len(rows) < _MIN_JOINT_ROWS or not _differ_in_payload(rows):
            _write_each(db, "add_event", rows)
            return
        *columns, _, at = rows[0]
        payloads = encode([row[6] for row in rows]).decode()
        db.execute(STATEMENTS["add_events"], (*columns, at, payloads))


def _differ_in_payload(events: Sequence[Row]) -> bool:
    """Whether events differ in their ids and payloads only."""
    common = [(*event[1:6], event[7]) for event in events]
    return common.count(common[0]) == len(common)


def _write_each(db: sqlite3.Connection, statement: str, rows: Collection[Row]) -> None:
    if rows:
        db.executemany(STATEMENTS[statement], rows)
