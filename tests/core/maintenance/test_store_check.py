"""Whatever is broken in a store is noticed; what is not broken is not complained of."""

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


def place(table: str, column: str) -> int:
    return TABLES[table].index(column)


def told(findings: FindingList) -> list[str]:
    return [f"{each.severity}: {each.subject}: {each.text}" for each in findings.items]


def put(table: str, column: str, value: Any, which: int = 0) -> Break:
    """Puts another value into one row."""

    def break_it(tables: Tables) -> None:
        tables[table][which][place(table, column)] = value

    return break_it


def drop(table: str, which: int = 0) -> Break:
    return lambda tables: tables[table].pop(which)


def drop_version(path: str, version: int) -> Break:
    def break_it(tables: Tables) -> None:
        row = find(tables, "version", lambda row: row[0] == 2 and row[1:3] == [path, version])
        tables["version"].remove(row)

    return break_it


def rename(path: str, other: str) -> Break:
    def break_it(tables: Tables) -> None:
        for row in (row for table in ("entry", "version") for row in tables[table]):
            row[1] = other if row[1] == path else row[1]

    return break_it


def test_every_table_of_the_scene_has_something_to_break() -> None:
    assert {table for table, rows in intact_tables().items() if not rows} == {"receipt"}


def test_a_whole_store_is_clean() -> None:
    assert told(check_tables(intact_tables())) == []


def test_an_empty_store_is_clean() -> None:
    assert told(check_tables({table: [] for table in TABLES})) == []


DAMAGES: dict[str, tuple[Break, str]] = {
    "a lost head": (drop("entry", 2), "agent marco of acme SOUL.md: has versions but no entry"),
    "a lost newest version": (
        drop_version("SOUL.md", 3),
        "SOUL.md: is at version 3, which is missing",
    ),
    "a lost version between": (drop_version("SOUL.md", 2), "SOUL.md: version 2 is missing"),
    "a lost first version": (drop_version("SOUL.md", 1), "SOUL.md: version 1 is missing"),
    "a lost scope": (drop("scope", 1), "the scope is missing"),
    "a scope of no kind": (put("scope", "kind", "desk"), "has an unknown scope kind"),
    "a miscounted scope": (
        put("scope", "files", 7, 1),
        "agent marco of acme: states 7 files of 100005 bytes; found 2 of 100005",
    ),
    "a misweighed scope": (put("scope", "size", 1, 1), "found 2 of 100005"),
    "a scope that went back": (
        put("scope", "revision", 3, 1),
        "has a revision that the scope has not reached",
    ),
    "a scope that never was": (put("scope", "revision", -1), "sales of acme: has no revision"),
    "a history of no scope": (
        drop("scope", 1),
        "version 3 of SOUL.md of scope 2: the scope is missing",
    ),
    "lost bytes": (drop("content", 1), "the content of version 1 is missing"),
    "lost bytes beneath": (drop("content"), "the base content of version 1 is missing"),
    "changed bytes": (
        put("content", "body", b"onE", 1),
        "content 2: its bytes do not match sha256:",
    ),
    "cut bytes": (put("content", "body", b"on", 1), "content 2: its bytes do not match sha256:"),
    "bytes of another size": (put("content", "size", 4, 1), "content 2: its bytes do not match"),
    "bytes of another digest": (
        put("content", "digest", bytes(32), 1),
        "the content of version 1 does not match its digest or size",
    ),
    "one digest of two sizes": (
        lambda tables: tables["content"].append([9, tables["content"][4][1], 5, NOW, None]),
        "content 9: another row with this digest has a different size",
    ),
    "a version of other bytes": (
        put("version", "content", 3, 3),
        "SOUL.md: the content of version 1 does not match its digest or size",
    ),
    "half a tombstone": (put("version", "digest", None, 3), "version 1 has only some of content"),
    "half a tombstone as a head": (
        put("entry", "size", None, 2),
        "the entry has only some of content",
    ),
    "revisions that fall": (
        put("version", "revision", 1, 5),
        "SOUL.md: version 3 has a lower revision than its predecessor",
    ),
    "a head behind its history": (
        put("entry", "version", 2, 2),
        "SOUL.md: is at version 2, but has a version 3",
    ),
    "a path that is none": (rename("SOUL.md", "SOUL.md/"), "SOUL.md/: is not a normalized path"),
    "a content counter that went back": (
        put("counter", "value", 1, 0),
        "counter content: is 1, less than the used id 6",
    ),
    "a lost event counter": (drop("counter", 1), "counter event: is 0, less than the used id 10"),
    "a lost records counter": (drop("counter", 2), "counter records: is 0 although records exist"),
    "a lost record": (drop("record"), "index key all of acme: refers to a missing person: per_1"),
    "a record without a shelf": (
        drop("shelf"),
        "person per_1 of acme: its collection revision is missing",
    ),
    "a shelf that never rose": (
        put("shelf", "revision", 0),
        "collection revision person of acme: has no rev",
    ),
    "a record of no kind": (put("record", "noun", "desk"), "has an unknown record type"),
    "a record without a revision": (put("record", "revision", 0), "per_1 of acme: has no revision"),
    "a record that is no JSON": (put("record", "body", "{"), "its body is not a JSON object"),
    "a record that is no object": (put("record", "body", "[]"), "its body is not a JSON object"),
    "a record deeper than can be": (put("record", "body", "[" * 10**5), "is not a JSON object"),
    "a handle to nothing": (
        put("handle", "id", "per_2"),
        "unique key acme/person/email: refers to a missing person: per_2",
    ),
    "a link to nothing": (put("link", "noun", "key"), "refers to a missing key: per_1"),
    "a lost run": (drop("run"), "layer 0 of run run_1: the run is missing"),
    "a run of no scope": (put("run", "scope", 9), "run run_1: refers to the missing scope 9"),
    "a run in no status": (
        put("run", "status", "lost"),
        "has an invalid status, mode or kept flag",
    ),
    "a run of no mode": (put("run", "mode", "lost"), "has an invalid status, mode or kept flag"),
    "a run without variables": (put("run", "variables", "no"), "its variables are not a JSON"),
    "a run that was let go but holds": (
        put("run", "kept", 0),
        "the run was released but still has layers",
    ),
    "a layer of no scope": (
        put("run_layer", "scope", 9),
        "layer 0 of run run_1: refers to the missing scope 9",
    ),
    "a layer from the future": (
        put("run_layer", "revision", 99),
        "layer 0 of run run_1: has revision 99, which the scope has not reached",
    ),
    "an event of no scope": (put("event", "scope", 9), "event 1: refers to the missing scope 9"),
    "an event of no run": (
        put("event", "run", "run_9", 4),
        "event 5: has a sequence beyond the log of run run_9",
    ),
    "an event past the end of its run": (
        put("event", "sequence", 3, 4),
        "has a sequence beyond the log",
    ),
    "an event that is no JSON": (put("event", "payload", ""), "its payload is not a JSON object"),
    "a lost delivery": (drop("delivery"), "attempt 1 of del_1: the delivery is missing"),
    "a delivery in no state": (put("delivery", "state", "lost"), "del_1: has an unknown state"),
    "a mark that is none": (
        put("mark", "cursor", "x"),
        "delivery cursor deliveries: is not an event id",
    ),
    "a mark in the future": (
        put("mark", "cursor", "99"),
        "delivery cursor deliveries: is past the last event",
    ),
    "a lost session": (drop("session"), "entry 1 of session 5f0c8a52-2f5e-4d3c-9f10-000000000000"),
    "a session of another spelling": (
        put("session", "id", "5F0C"),
        "its id is not a canonical UUID",
    ),
    "a session of no mode": (put("session", "mode", "lost"), "its mode is unknown"),
    "a session from before it began": (
        put("session", "last", 1),
        "its entry count or timestamps are invalid",
    ),
    "a lost last entry": (drop("utterance", 2), "1 sessions have fewer entries than they state"),
    "a lost entry between": (drop("utterance", 1), "follows entry 1"),
    "a lost first entry": (drop("utterance", 3), "entry 2 of session"),
    "an entry too many": (put("session", "entries", 2), "exceeds the session's entry count"),
    "an entry of no role": (put("utterance", "role", "judge"), "its role is unknown"),
    "an entry that is no text": (put("utterance", "content", b"\xff"), "its content is not text"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found(damage: str) -> None:
    break_it, expected = DAMAGES[damage]
    tables = intact_tables()
    break_it(tables)

    findings = check_tables(tables)

    assert not findings.is_clean
    assert any(expected in text for text in told(findings)), told(findings)


@pytest.mark.parametrize("column", COLUMNS["entry"])
def test_a_head_that_differs_in_anything_from_its_newest_version_is_found(column: str) -> None:
    tables = intact_tables()
    row = find(tables, "entry", lambda row: row[0] == 2 and row[1] == "SOUL.md")
    value = row[place("entry", column)]
    row[place("entry", column)] = value + 1 if isinstance(value, int) else value[::-1]

    assert not check_tables(tables).is_clean


@pytest.mark.parametrize("table", TABLES)
def test_a_row_that_is_there_twice_or_out_of_order_is_found(table: str) -> None:
    tables = intact_tables()
    if table == "receipt":
        tables[table] = [["acme", "put", key, "f", NOW, None, None, None] for key in ("a", "b")]
    tables[table].append(list(tables[table][0]))

    findings = check_tables(tables)

    last = [text for text in told(findings) if f"{table} " in text]
    assert any("is a duplicate" in text or "is out of key order" in text for text in last), told(
        findings
    )


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("wrong", [3.5, None, "text", 7, b"bytes"], ids=repr)
def test_a_value_of_a_kind_that_its_column_never_holds_is_found(table: str, wrong: object) -> None:
    for number, column in list(enumerate(COLUMNS[table]))[KEY_LENGTHS[table] :]:
        tables = intact_tables()
        kinds = COLUMNS[table][column]
        if not tables[table] or isinstance(wrong, kinds):
            continue
        tables[table][0][number] = wrong

        assert any(
            "a column has an unexpected type" in text for text in told(check_tables(tables))
        ), column


def test_bytes_that_nothing_refers_to_are_a_warning_once_they_are_old() -> None:
    tables = intact_tables()
    tables["content"].append([7, tables["content"][0][1], 7, NOW - 60_000, b"beneath"])
    tables["counter"][0][1] = 7

    assert told(check_tables(tables, grace=60_000)) == []
    findings = check_tables(tables, grace=59_999)
    assert told(findings) == ["warning: content: 1 row is unreferenced; run carrel gc"]
    assert findings.is_clean


def test_bytes_that_are_outside_are_named_with_their_size() -> None:
    from carrel.core.maintenance.store_check import StoreCheck  # noqa: PLC0415 - only this test asks it

    examination = StoreCheck(NOW, 0)
    examination.check_rows("content", intact_tables()["content"])

    assert list(examination.external_blobs.values()) == [100_000]


def test_findings_are_told_up_to_a_number_and_counted_beyond() -> None:
    findings = FindingList()
    for n in range(MAX_FINDINGS + 5):
        findings.error(f"thing {n}", "is broken")
    findings.warn("things", "are many")

    assert (len(findings.items), findings.omitted_count) == (MAX_FINDINGS, 6)
    assert (findings.errors, findings.warnings, findings.is_clean) == (MAX_FINDINGS + 5, 1, False)


def test_no_finding_shows_content_or_what_follows_a_handles_colon() -> None:
    for break_it, _ in DAMAGES.values():
        tables = intact_tables()
        break_it(tables)
        for text in told(check_tables(tables)):
            assert "beneath" not in text
            assert "ada@" not in text
