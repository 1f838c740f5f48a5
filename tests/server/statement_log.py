"""Record of the SQL statements that SQLite readers run."""

from __future__ import annotations

import sqlite3
from pathlib import Path as File

import pytest

from carrel.adapters.sqlite import database, reader


class StatementLog(list[str]):
    """Every statement on the readers' connections that are opened from now on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        connect = database.connect

        def traced(file: File) -> sqlite3.Connection:
            db = connect(file)
            db.set_trace_callback(self.append)
            return db

        monkeypatch.setattr(reader, "connect", traced)
