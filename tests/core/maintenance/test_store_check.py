"""The store check reports every kind of damage and nothing in an intact store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.strategies_rows import (
    NOW,
    Tables,
    check_tables,
    find,
    intact_tables,
)

from carrel.core.maintenance.findings import MAX_FINDINGS, FindingList
from carrel.core.maintenance.tables import COLUMNS, KEY_LENGTHS, TABLES

Break = Callable[[Tables], object]


def column_index(table: str, column: str) -> int:
    return TABLES[table].index(column)


def finding_texts(findings: FindingList) -> list[str]:
    return [f"{item.severity}: {item.subject}: {item.text}" for item in findings.items]


def put(table: str, column: str, value: Any, index: int = 0) -> Break:
    """Change one value of one row."""

    def damage_tables(tables: Tables) -> None:
        tables[table][index][column_index(table, column)] = value

    return damage_tables


def drop(table: str, index: int = 0) -> Break:
    return lambda tables: tables[table].pop(index)


def drop_version(path: str, version: int) -> Break:
    def damage_tables(tables: Tables) -> None:
        row = find(tables, "version", lambda row: row[0] == 2 and row[1:3] == [path, version])
        tables["version"].remove(row)

    return damage_tables


def rename(path: str, other: str) -> Break:
    def damage_tables(tables: Tables) -> None:
        for row in (row for table in ("entry", "version") for row in tables[table]):
            row[1] = other if row[1] == path else row[1]

    return damage_tables


def test_every_table_of_the_sample_store_has_rows_to_damage() -> None:
    assert {table for table, rows in intact_tables().items() if not rows} == {"idempotency_key"}


def test_an_intact_store_is_clean() -> None:
    assert finding_texts(check_tables(intact_tables())) == []


def test_an_empty_store_is_clean() -> None:
    assert finding_texts(check_tables({table: [] for table in TABLES})) == []


DAMAGES: dict[str, tuple[Break, str]] = {
    "a lost head": (drop("entry", 2), "agent marco of acme SOUL.md: has versions but no entry"),
    "a lost newest version": (
        drop_version("SOUL.md", 3),
        "SOUL.md: is at version 3, which is missing",
    ),
    "a lost version between": (drop_version("SOUL.md", 2), "SOUL.md: version 2 is missing"),
    "a lost first version": (drop_version("SOUL.md", 1), "SOUL.md: version 1 is missing"),
    "a lost scope": (drop("scope", 1), "the scope is missing"),
    "a scope of an unknown kind": (put("scope", "kind", "unknown"), "has an unknown scope kind"),
    "a miscounted scope": (
        put("scope", "files", 7, 1),
        "agent marco of acme: states 7 files of 100005 bytes; found 2 of 100005",
    ),
    "a misweighed scope": (put("scope", "size", 1, 1), "found 2 of 100005"),
    "a scope with a lowered revision": (
        put("scope", "revision", 3, 1),
        "has a revision that the scope has not reached",
    ),
    "a scope without a revision": (put("scope", "revision", -1), "sales of acme: has no revision"),
    "a history without a scope": (
        drop("scope", 1),
        "version 3 of SOUL.md of scope 2: the scope is missing",
    ),
    "lost content": (drop("content", 1), "the content of version 1 is missing"),
    "lost base content": (drop("content"), "the base content of version 1 is missing"),
    "changed content": (
        put("content", "body", b"onE", 1),
        "content 2: its bytes do not match sha256:",
    ),
    "truncated content": (
        put("content", "body", b"on", 1),
        "content 2: its bytes do not match sha256:",
    ),
    "content of another size": (put("content", "size", 4, 1), "content 2: its bytes do not match"),
    "content of another digest": (
        put("content", "digest", bytes(32), 1),
        "the content of version 1 does not match its digest or size",
    ),
    "a digest with two sizes": (
        lambda tables: tables["content"].append([9, tables["content"][4][1], 5, NOW, None]),
        "content 9: another row with this digest has a different size",
    ),
    "a version with other content": (
        put("version", "content", 3, 3),
        "SOUL.md: the content of version 1 does not match its digest or size",
    ),
    "half a tombstone": (put("version", "digest", None, 3), "version 1 has only some of content"),
    "half a tombstone as a head": (
        put("entry", "size", None, 2),
        "the entry has only some of content",
    ),
    "falling revisions": (
        put("version", "revision", 1, 5),
        "SOUL.md: version 3 has a lower revision than its predecessor",
    ),
    "a head behind its history": (
        put("entry", "version", 2, 2),
        "SOUL.md: is at version 2, but has a version 3",
    ),
    "an invalid path": (rename("SOUL.md", "SOUL.md/"), "SOUL.md/: is not a normalized path"),
    "a lowered content counter": (
        put("counter", "value", 1, 0),
        "counter content: is 1, less than the used id 6",
    ),
    "a lost event counter": (drop("counter", 1), "counter event: is 0, less than the used id 10"),
    "a lost records counter": (drop("counter", 2), "counter records: is 0 although records exist"),
    "a lost record": (drop("record"), "index key all of acme: refers to a missing person: per_1"),
    "a record without a collection revision": (
        drop("collection_revision"),
        "person per_1 of acme: its collection revision is missing",
    ),
    "a collection revision of zero": (
        put("collection_revision", "revision", 0),
        "collection revision person of acme: has no rev",
    ),
    "a record of an unknown type": (put("record", "type", "unknown"), "has an unknown record type"),
    "a record without a revision": (put("record", "revision", 0), "per_1 of acme: has no revision"),
    "a record that is not JSON": (put("record", "body", "{"), "its body is not a JSON object"),
    "a record that is not an object": (
        put("record", "body", "[]"),
        "its body is not a JSON object",
    ),
    "a record nested too deeply": (put("record", "body", "[" * 10**5), "is not a JSON object"),
    "a unique key to a missing record": (
        put("unique_key", "id", "per_2"),
        "unique key acme/person/email: refers to a missing person: per_2",
    ),
    "an index key to a missing record": (
        put("index_key", "type", "key"),
        "refers to a missing key: per_1",
    ),
    "a lost run": (drop("run"), "layer 0 of run run_1: the run is missing"),
    "a run of a missing scope": (
        put("run", "scope", 9),
        "run run_1: refers to the missing scope 9",
    ),
    "a run with an unknown status": (
        put("run", "status", "lost"),
        "has an invalid status, mode or kept flag",
    ),
    "a run with an unknown mode": (
        put("run", "mode", "lost"),
        "has an invalid status, mode or kept flag",
    ),
    "a run with invalid variables": (put("run", "variables", "no"), "its variables are not a JSON"),
    "a released run with layers": (
        put("run", "snapshot_kept", 0),
        "the run was released but still has layers",
    ),
    "a layer of a missing scope": (
        put("run_layer", "scope", 9),
        "layer 0 of run run_1: refers to the missing scope 9",
    ),
    "a layer ahead of its scope": (
        put("run_layer", "revision", 99),
        "layer 0 of run run_1: has revision 99, which the scope has not reached",
    ),
    "an event of a missing scope": (
        put("event", "scope", 9),
        "event 1: refers to the missing scope 9",
    ),
    "an event of a missing run": (
        put("event", "run", "run_9", 4),
        "event 5: has a sequence beyond the log of run run_9",
    ),
    "an event past the end of its run": (
        put("event", "sequence", 3, 4),
        "has a sequence beyond the log",
    ),
    "an event that is not JSON": (put("event", "payload", ""), "its payload is not a JSON object"),
    "a lost delivery": (drop("delivery"), "attempt 1 of del_1: the delivery is missing"),
    "a delivery in an unknown state": (
        put("delivery", "state", "lost"),
        "del_1: has an unknown state",
    ),
    "an invalid delivery cursor": (
        put("delivery_cursor", "cursor", "x"),
        "delivery cursor deliveries: is not an event id",
    ),
    "a delivery cursor past the last event": (
        put("delivery_cursor", "cursor", "99"),
        "delivery cursor deliveries: is past the last event",
    ),
    "a lost session": (drop("session"), "entry 1 of session 5f0c8a52-2f5e-4d3c-9f10-000000000000"),
    "a session with an invalid id": (
        put("session", "id", "a\0b"),
        "its id is not a session id",
    ),
    "a session with an unknown mode": (put("session", "mode", "lost"), "its mode is unknown"),
    "a session with invalid timestamps": (
        put("session", "last_entry_at", 1),
        "its entry count or timestamps are invalid",
    ),
    "a lost last entry": (
        drop("session_entry", 2),
        "1 sessions have fewer entries than they state",
    ),
    "a lost entry between": (drop("session_entry", 1), "follows entry 1"),
    "a lost first entry": (drop("session_entry", 3), "entry 2 of session"),
    "an entry too many": (put("session", "entry_count", 2), "exceeds the session's entry count"),
    "an entry with an unknown role": (put("session_entry", "role", "judge"), "its role is unknown"),
    "an entry that is not text": (
        put("session_entry", "content", b"\xff"),
        "its content is not text",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_reported(damage: str) -> None:
    damage_tables, expected = DAMAGES[damage]
    tables = intact_tables()
    damage_tables(tables)

    findings = check_tables(tables)

    assert not findings.is_clean
    assert any(expected in text for text in finding_texts(findings)), finding_texts(findings)


def _other_value(value: object) -> object:
    if isinstance(value, str | bytes):
        return value[::-1]
    return value + 1 if isinstance(value, int) else 1


@pytest.mark.parametrize("column", COLUMNS["entry"])
def test_a_head_that_differs_from_its_newest_version_is_reported(column: str) -> None:
    tables = intact_tables()
    row = find(tables, "entry", lambda row: row[0] == 2 and row[1] == "SOUL.md")
    value = row[column_index("entry", column)]
    row[column_index("entry", column)] = _other_value(value)

    assert not check_tables(tables).is_clean


@pytest.mark.parametrize("table", TABLES)
def test_a_duplicate_or_misplaced_row_is_reported(table: str) -> None:
    tables = intact_tables()
    if table == "idempotency_key":
        tables[table] = [["acme", "put", key, "f", NOW, *[None] * 4] for key in ("a", "b")]
    tables[table].append(list(tables[table][0]))

    findings = check_tables(tables)

    last = [text for text in finding_texts(findings) if f"{table} " in text]
    assert any("is a duplicate" in text or "is out of key order" in text for text in last), (
        finding_texts(findings)
    )


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("invalid", [3.5, None, "text", 7, b"bytes"], ids=repr)
def test_a_value_of_an_unexpected_type_is_reported(table: str, invalid: object) -> None:
    for number, column in list(enumerate(COLUMNS[table]))[KEY_LENGTHS[table] :]:
        tables = intact_tables()
        types = COLUMNS[table][column]
        if not tables[table] or isinstance(invalid, types):
            continue
        tables[table][0][number] = invalid

        assert any(
            "a column has an unexpected type" in text
            for text in finding_texts(check_tables(tables))
        ), column


def test_unreferenced_content_is_a_warning_after_the_grace_period() -> None:
    tables = intact_tables()
    tables["content"].append([7, tables["content"][0][1], 7, NOW - 60_000, b"beneath"])
    tables["counter"][0][1] = 7

    assert finding_texts(check_tables(tables, grace=60_000)) == []
    findings = check_tables(tables, grace=59_999)
    assert finding_texts(findings) == ["warning: content: 1 row is unreferenced; run carrel gc"]
    assert findings.is_clean


def test_external_blobs_are_listed_with_their_size() -> None:
    from carrel.core.maintenance.store_check import StoreCheck  # noqa: PLC0415 - only this test needs it

    check = StoreCheck(NOW, 0)
    check.check_rows("content", intact_tables()["content"])

    assert list(check.external_blobs.values()) == [100_000]


def test_findings_are_listed_up_to_a_limit_and_counted_beyond_it() -> None:
    findings = FindingList()
    for n in range(MAX_FINDINGS + 5):
        findings.error(f"thing {n}", "is broken")
    findings.warn("things", "are many")

    assert (len(findings.items), findings.omitted_count) == (MAX_FINDINGS, 6)
    assert (findings.errors, findings.warnings, findings.is_clean) == (MAX_FINDINGS + 5, 1, False)


def test_no_finding_contains_content_or_the_value_of_a_unique_key() -> None:
    for damage_tables, _ in DAMAGES.values():
        tables = intact_tables()
        damage_tables(tables)
        for text in finding_texts(check_tables(tables)):
            assert "beneath" not in text
            assert "ada@" not in text
