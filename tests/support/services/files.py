"""SQLite files for tests: one template per process, and a copy for each test."""

from __future__ import annotations

from functools import cache
from pathlib import Path as File
from tempfile import TemporaryDirectory

from carrel.adapters.sqlite.migration_runner import prepare


@cache
def template() -> bytes:
    """A file with the schema only. Creating one takes ten times as long as opening it."""
    with TemporaryDirectory(prefix="carrel-") as directory:
        file = File(directory) / "carrel.db"
        prepare(file)
        return file.read_bytes()


def fresh(file: File) -> File:
    """The same path, with a new store unless one exists."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(template())
    return file
