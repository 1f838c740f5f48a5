"""SQL kept in files."""

from __future__ import annotations

import pytest

from carrel.core.sql_statements import parse_statements

SELECTS = "-- name: one\nSELECT 1;\n\n-- name: two\nSELECT 2;\n"


def test_each_statement_is_found_by_its_name() -> None:
    assert parse_statements(SELECTS) == {"one": "SELECT 1", "two": "SELECT 2"}


def test_no_two_have_one_name() -> None:
    with pytest.raises(ValueError, match="duplicate statement names: one"):
        parse_statements(SELECTS + "-- name: one\nSELECT 3;\n")
