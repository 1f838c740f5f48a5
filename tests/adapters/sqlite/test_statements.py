"""Named SQLite statements: each fits the schema, and each is used."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path as File

import pytest

from carrel.adapters.sqlite import database
from carrel.adapters.sqlite.database import STATEMENTS, connect
from carrel.adapters.sqlite.migration_runner import prepare


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> File:
    file = tmp_path_factory.mktemp("statements") / "carrel.db"
    prepare(file)
    return file


def placeholders(statement: str) -> int:
    numbered = [int(number) for number in re.findall(r"\?(\d+)", statement)]
    return max(numbered) if numbered else statement.count("?")


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement_prepares_against_the_migrated_schema(file: File, name: str) -> None:
    statement = STATEMENTS[name]
    with closing(connect(file)) as db:
        assert db.execute(f"EXPLAIN {statement}", ["[]"] * placeholders(statement)).fetchall()


def test_a_statement_with_an_unknown_column_does_not_prepare(file: File) -> None:
    with closing(connect(file)) as db, pytest.raises(sqlite3.OperationalError, match="noun"):
        db.execute("EXPLAIN SELECT noun FROM record")


def test_every_statement_is_used_by_the_adapter() -> None:
    modules = File(database.__file__).parent.glob("*.py")
    code = "".join(module.read_text("utf-8") for module in modules)
    assert [
        name for name in STATEMENTS if f'"{name}"' not in code and f"'{name}'" not in code
    ] == []
