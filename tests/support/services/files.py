"""SQLite files for tests: one template a process, and a copy of it for each test."""

from __future__ import annotations

from functools import cache
from pathlib import Path as File
from tempfile import TemporaryDirectory

from carrel.adapters.sqlite.database import prepare


@cache
def template() -> bytes:
    """A file with the schema and nothing else. To make one takes ten times as long as to open it:
    it is written and flushed table by table."""
    with TemporaryDirectory(prefix="carrel-") as directory:
        file = File(directory) / "carrel.db"
        prepare(file)
        return file.read_bytes()


def fresh(file: File) -> File:
    """The same path, at which there is now a store: what was there, or one on its first day."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(template())
    return file
