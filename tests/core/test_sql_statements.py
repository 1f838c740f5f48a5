"""SQL statements loaded from files."""

from __future__ import annotations

import pytest

from carrel.core.sql_statements import parse_statements

SELECTS = "-- name: one\nSELECT 1;\n\n-- name: two\nSELECT 2;\n"


def test_each_statement_is_parsed_with_its_name() -> None:
    assert parse_statements(SELECTS) == {"one": "SELECT 1", "two": "SELECT 2"}


def test_duplicate_statement_names_are_refused() -> None:
    with pytest.raises(ValueError, match="duplicate statement names: one"):
        parse_statements(SELECTS + "-- name: one\nSELECT 3;\n")
