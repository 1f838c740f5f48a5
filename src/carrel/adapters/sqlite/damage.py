"""Damaged pages: every statement of every connection reports them as corrupt content."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from carrel.core.maintenance.tables import TABLES
from carrel.core.outages import CorruptContent

_TABLE_NAME: Final = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+([a-z_]+)")
# Unbound, since `super()` takes longer than the statement of a short read.
_EXECUTE: Final = sqlite3.Cursor.execute
_FETCHONE: Final = sqlite3.Cursor.fetchone
_FETCHALL: Final = sqlite3.Cursor.fetchall
_UNDECODABLE: Final = "Could not decode to UTF-8"


class DamagedPage(CorruptContent, sqlite3.DatabaseError):
    """SQLite met a damaged page; the message names the tables of the statement."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


class SqliteCursor(sqlite3.Cursor):
    """Raises DamagedPage for a damaged page."""

    __slots__ = ("_statement",)

    def execute(self, sql: str, parameters: Any = (), /) -> SqliteCursor:
        self._statement = sql
        try:
            _EXECUTE(self, sql, parameters)
        except sqlite3.DatabaseError as error:
            self._raise(error)
        return self

    def executemany(self, sql: str, parameters: Any, /) -> SqliteCursor:
        self._statement = sql
        try:
            super().executemany(sql, parameters)
        except sqlite3.DatabaseError as error:
            self._raise(error)
        return self

    def fetchone(self) -> Any:
        try:
            return _FETCHONE(self)
        except sqlite3.DatabaseError as error:
            self._raise(error)

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        try:
            return super().fetchmany(size)
        except sqlite3.DatabaseError as error:
            self._raise(error)
            raise

    def fetchall(self) -> list[Any]:
        try:
            return _FETCHALL(self)
        except sqlite3.DatabaseError as error:
            self._raise(error)
            raise

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except sqlite3.DatabaseError as error:
            self._raise(error)

    def _raise(self, error: sqlite3.DatabaseError) -> None:
        if not is_damage(error):
            raise error
        if _code(error) == sqlite3.SQLITE_NOTADB:  # the first page
            problem = DamagedPage(str(error))
            problem.sqlite_errorcode = sqlite3.SQLITE_NOTADB
            raise problem from error
        raise DamagedPage(f"{_tables(self._statement)}: a page is damaged") from error


class SqliteConnection(sqlite3.Connection):
    """Its statements raise DamagedPage for a damaged page."""

    def execute(self, sql: str, parameters: Any = (), /) -> SqliteCursor:
        return SqliteCursor(self).execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> SqliteCursor:
        return self.cursor(SqliteCursor).executemany(sql, parameters)


def is_damage(error: BaseException) -> bool:
    """Whether SQLite met a damaged page."""
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    if _code(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return True
    return str(error).startswith(_UNDECODABLE)  # Python's sqlite3 reads no bytes but UTF-8


def _code(error: sqlite3.Error) -> int:
    """Primary code of an error; 0 if it is not SQLite's."""
    code: int = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code


@contextmanager
def name_damage(subject: str) -> Iterator[None]:
    """Name this subject, such as a path, if SQLite meets a damaged page."""
    try:
        yield
    except DamagedPage as error:
        raise CorruptContent(f"{subject}: {error}") from error


def undecodable_row(table: str, key: str) -> CorruptContent:
    """Error to raise for a row whose bytes were damaged in a page without structure."""
    return CorruptContent(f"table {table}, row {key}: a page is damaged")


def _tables(statement: str) -> str:
    names: Sequence[str] = sorted({*_TABLE_NAME.findall(statement)} & TABLES.keys())
    if not names:
        return "the database"
    return ("table " if len(names) == 1 else "tables ") + ", ".join(names)
