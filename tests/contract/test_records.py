"""Contract of RecordStore: records by id, unique key and index key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.commits import (
    ACME,
    AGENT,
    GLOBEX,
    NOW,
    SOUL,
    commit,
    put_text,
    read_texts,
    try_write,
)
from tests.support.contract_stores import Ports

from carrel.core.store.commit import Applied, Expect, ExpectationFailed, Outcome
from carrel.core.store.record import (
    AuditEntry,
    CollectionRevision,
    Record,
    RecordChange,
    RecordType,
    global_unique_key,
    unique_key,
)

pytestmark = pytest.mark.anyio

ADA = unique_key(ACME, RecordType.PERSON, "email", "ada@example.org")
KEY = global_unique_key(RecordType.KEY, "hash", "abc")


def person(id: str, body: dict[str, Any] | None, **options: Any) -> RecordChange:
    fields = {"tenant": ACME, "type": RecordType.PERSON, "id": id, "body": body, **options}
    return RecordChange(**fields)


async def change(ports: Ports, *changes: RecordChange, **options: Any) -> Outcome:
    [outcome] = await ports.trees.commit([commit(changes=changes, **options)])
    return outcome


async def apply_changes(ports: Ports, *changes: RecordChange, **options: Any) -> None:
    outcome = await change(ports, *changes, **options)
    assert outcome == Applied(()), outcome


async def ids(ports: Ports, tenant: str = ACME, **options: Any) -> list[str]:
    return [record.id for record in await ports.records.list(tenant, RecordType.PERSON, **options)]


async def test_an_empty_store_has_no_records(ports: Ports) -> None:
    assert await ports.records.get(ACME, RecordType.PERSON, ["ada", "bob"]) == (None, None)
    assert await ports.records.get(ACME, RecordType.PERSON, []) == ()
    assert await ports.records.get_by_unique_key([ADA]) == (None,)
    assert await ports.records.list(ACME, RecordType.PERSON) == ()
    assert await ports.records.collection_revisions([(ACME, RecordType.PERSON)]) == (0,)
    assert await ports.records.audit(ACME) == ()


async def test_a_record_reads_back_as_written(ports: Ports) -> None:
    body = {"name": "Ada ✓", "n": 1, "x": 1.5, "deep": {"list": [1, None, True, "\u0000é"]}}
    await apply_changes(ports, person("ada", body), at=NOW)
    await apply_changes(ports, person("ada", {**body, "n": 2}), at=NOW + 5)

    assert await ports.records.get(ACME, RecordType.PERSON, ["bob", "ada", "ada"]) == (
        None,
        *[Record(ACME, RecordType.PERSON, "ada", 2, {**body, "n": 2}, NOW, NOW + 5)] * 2,
    )


async def test_changing_a_read_body_does_not_change_the_stored_record(ports: Ports) -> None:
    body: dict[str, Any] = {"deep": {"list": [1]}}
    await apply_changes(ports, person("ada", body))
    body["deep"]["list"].append(2)
    [read] = await ports.records.get(ACME, RecordType.PERSON, ["ada"])
    assert read
    read.body["deep"]["list"].append(3)

    [again] = await ports.records.get(ACME, RecordType.PERSON, ["ada"])
    assert again
    assert again.body == {"deep": {"list": [1]}}


async def test_the_same_id_in_another_tenant_or_type_is_another_record(ports: Ports) -> None:
    await apply_changes(ports, person("ada", {"of": "acme"}))
    await apply_changes(ports, person("ada", {"of": "globex"}, tenant=GLOBEX))
    await apply_changes(ports, person("ada", {"of": "key"}, type=RecordType.KEY))

    for tenant, record_type, owner in (
        (ACME, RecordType.PERSON, "acme"),
        (GLOBEX, RecordType.PERSON, "globex"),
    ):
        [record] = await ports.records.get(tenant, record_type, ["ada"])
        assert record
        assert record.body == {"of": owner}
    assert await ids(ports, GLOBEX) == ["ada"]
    assert await ports.records.get(GLOBEX, RecordType.KEY, ["ada"]) == (None,)


EXPECTATIONS = [
    (0, None, True),
    (0, 0, True),
    (0, 1, False),
    (2, None, True),
    (2, 0, False),
    (2, 1, False),
    (2, 2, True),
    (2, 3, False),
]


@pytest.mark.parametrize("body", [{"new": True}, None], ids=["put", "delete"])
async def test_a_change_is_applied_if_the_revision_is_the_expected_one(
    ports: Ports, body: dict[str, Any] | None
) -> None:
    for n, (current, expected, holds) in enumerate(EXPECTATIONS):
        for turn in range(current):
            await apply_changes(ports, person(f"p{n}", {"n": turn}))
        requested = person(f"p{n}", body, expected=expected)

        assert await change(ports, requested) == (
            Applied(()) if holds else ExpectationFailed(requested)
        )

        [record] = await ports.records.get(ACME, RecordType.PERSON, [f"p{n}"])
        revision = (current + 1 if body else 0) if holds else current
        assert (record.revision if record else 0) == revision


async def test_of_many_writers_with_one_revision_exactly_one_wins(ports: Ports) -> None:
    await apply_changes(ports, person("ada", {"n": 0}))

    outcomes = await asyncio.gather(
        *[change(ports, person("ada", {"n": n}, expected=1)) for n in range(32)]
    )

    assert sum(isinstance(outcome, Applied) for outcome in outcomes) == 1
    [record] = await ports.records.get(ACME, RecordType.PERSON, ["ada"])
    assert record
    assert record.revision == 2


async def test_deleting_an_absent_record_succeeds_and_changes_nothing(ports: Ports) -> None:
    await apply_changes(ports, person("bob", {}))
    before = await ports.records.revision()

    await apply_changes(ports, person("ada", None))

    assert await ports.records.collection_revisions([(ACME, RecordType.PERSON)]) == (1,)
    assert await ports.records.revision() == before


async def test_a_record_is_read_by_any_of_its_unique_keys_across_tenants(ports: Ports) -> None:
    await apply_changes(ports, person("ada", {}, unique_keys=(ADA, KEY)))
    await apply_changes(ports, person("eve", {}, tenant=GLOBEX, unique_keys=("theirs",)))

    records = await ports.records.get_by_unique_key([KEY, "unused", ADA, "theirs", KEY])

    assert [record and (record.tenant, record.id) for record in records] == [
        (ACME, "ada"),
        None,
        (ACME, "ada"),
        (GLOBEX, "eve"),
        (ACME, "ada"),
    ]


async def test_unique_and_index_keys_replace_the_previous_ones(ports: Ports) -> None:
    await apply_changes(ports, person("ada", {}, unique_keys=(ADA, KEY), index_keys=("red", "big")))
    await apply_changes(
        ports, person("ada", {}, unique_keys=(KEY, "new"), index_keys=("big", "old"))
    )

    records = await ports.records.get_by_unique_key([ADA, KEY, "new"])
    assert [record and record.id for record in records] == [None, "ada", "ada"]
    assert [await ids(ports, index_key=key) for key in ("red", "big", "old")] == [
        [],
        ["ada"],
        ["ada"],
    ]


async def test_deleting_a_record_frees_its_keys(ports: Ports) -> None:
    await apply_changes(ports, person("ada", {}, unique_keys=(ADA,), index_keys=("red",)))
    await apply_changes(ports, person("ada", None))

    assert await ports.records.get_by_unique_key([ADA]) == (None,)
    assert await ids(ports, index_key="red") == []
    await apply_changes(ports, person("bob", {}, unique_keys=(ADA,), expected=0))
    await apply_changes(ports, person("ada", {}, expected=0))
    assert await ids(ports, index_key="red") == []


async def test_a_unique_key_of_another_record_is_refused_and_named(ports: Ports) -> None:
    await apply_changes(ports, person("ada", {}, unique_keys=(ADA,)))
    rival = person("bob", {}, unique_keys=("free", ADA), tenant=GLOBEX, type=RecordType.KEY)

    outcome = await change(ports, person("carl", {}), rival)

    assert outcome == ExpectationFailed(rival, unique_key=ADA)
    assert await ids(ports) == ["ada"]
    assert await ports.records.get_by_unique_key(["free"]) == (None,)


async def test_two_changes_of_a_commit_cannot_have_the_same_unique_key(ports: Ports) -> None:
    rivals = [person(id, {}, unique_keys=(ADA,)) for id in ("ada", "bob")]
    assert await change(ports, *rivals) == ExpectationFailed(rivals[1], unique_key=ADA)
    assert await ids(ports) == []


async def test_a_freed_unique_key_can_be_taken_in_the_same_commit(ports: Ports) -> None:
    await apply_changes(ports, person("old", {}, unique_keys=(ADA,)))
    await apply_changes(ports, person("old", None), person("new", {}, unique_keys=(ADA,)))
    await apply_changes(ports, person("new", {}), person("newer", {}, unique_keys=(ADA,)))

    await apply_changes(ports, person("newest", {}, unique_keys=(ADA,)), person("newer", {}))

    [record] = await ports.records.get_by_unique_key([ADA])
    assert getattr(record, "id", None) == "newest"


async def test_of_many_writers_taking_a_unique_key_exactly_one_wins(ports: Ports) -> None:
    rivals = [person(f"p{n}", {}, unique_keys=(ADA,)) for n in range(32)]

    outcomes = await asyncio.gather(*[change(ports, rival) for rival in rivals])

    won = [rival for rival, outcome in zip(rivals, outcomes, strict=True) if outcome == Applied(())]
    assert len(won) == 1
    lost = [outcome for outcome in outcomes if isinstance(outcome, ExpectationFailed)]
    assert {outcome.unique_key for outcome in lost} == {ADA}
    assert await ids(ports) == [won[0].id]


async def test_a_list_is_ordered_by_id_in_pages(ports: Ports) -> None:
    names = ["b", "B", "a", "a.b", "a-b", "a_b", "ab", "Z", "9", "10"]
    await apply_changes(ports, *[person(name, {}) for name in names])
    await apply_changes(
        ports, person("other", {}, tenant=GLOBEX), person("key", {}, type=RecordType.KEY)
    )

    assert await ids(ports) == sorted(names)
    assert await ids(ports, limit=3) == sorted(names)[:3]
    assert await ids(ports, after=sorted(names)[2], limit=4) == sorted(names)[3:7]
    assert await ids(ports, after="zzz") == []


async def test_a_list_by_index_key_has_only_the_records_with_that_key(ports: Ports) -> None:
    for n in range(6):
        await apply_changes(
            ports, person(f"p{n}", {}, index_keys=("even",) if n % 2 == 0 else ("odd",))
        )
    await apply_changes(ports, person("p9", {}, index_keys=("even",), tenant=GLOBEX))

    assert await ids(ports, index_key="even") == ["p0", "p2", "p4"]
    assert await ids(ports, index_key="even", after="p0", limit=1) == ["p2"]
    assert await ids(ports, index_key="eve") == []


async def test_an_empty_tenant_lists_the_records_of_all_tenants(ports: Ports) -> None:
    await apply_changes(ports, person("b", {}), person("d", {}))
    await apply_changes(ports, person("a", {}, tenant=GLOBEX), person("c", {}, tenant=GLOBEX))

    assert await ids(ports, "") == ["a", "b", "c", "d"]
    assert await ids(ports, "", after="b") == ["c", "d"]


async def test_a_collection_revision_rises_once_per_commit_that_changes_it(ports: Ports) -> None:
    collections = [(ACME, RecordType.PERSON), (ACME, RecordType.KEY), (GLOBEX, RecordType.PERSON)]

    await apply_changes(
        ports, person("ada", {}), person("bob", {}), person("k", {}, type=RecordType.KEY)
    )
    assert await ports.records.collection_revisions(collections) == (1, 1, 0)
    await apply_changes(ports, person("ada", {"n": 2}))
    assert await ports.records.collection_revisions(collections) == (2, 1, 0)
    await apply_changes(ports, person("ada", None))
    assert await ports.records.collection_revisions([*collections, collections[0]]) == (3, 1, 0, 3)


async def test_a_refused_change_leaves_the_collection_revision(ports: Ports) -> None:
    before = await ports.records.revision()
    refused = person("ada", {}, expected=3)

    assert await change(ports, person("bob", {}), refused) == ExpectationFailed(refused)

    assert await ports.records.collection_revisions([(ACME, RecordType.PERSON)]) == (0,)
    assert await ports.records.revision() == before


async def test_the_store_revision_rises_with_every_record_change(ports: Ports) -> None:
    revisions = [await ports.records.revision()]
    for requested in (
        person("ada", {}),
        person("ada", {}, tenant=GLOBEX),
        person("ada", {}, type=RecordType.KEY),
        person("ada", None),
    ):
        await apply_changes(ports, requested)
        revisions.append(await ports.records.revision())
    await try_write(ports, "a file is no record")

    assert revisions == sorted(set(revisions))
    assert await ports.records.revision() == revisions[-1]


async def test_files_that_depend_on_records_are_refused_if_the_records_changed(
    ports: Ports,
) -> None:
    await apply_changes(ports, person("ada", {"title": "Dr"}))
    expected = CollectionRevision(ACME, RecordType.PERSON, 1)
    await apply_changes(ports, person("ada", {"title": "Prof"}))

    outcome = await try_write(ports, "Dr Ada", collection_revisions=(expected,))
    assert outcome == ExpectationFailed(expected)
    assert await read_texts(ports, AGENT) == {}


async def test_of_many_commits_on_one_collection_revision_exactly_one_wins(ports: Ports) -> None:
    expected = CollectionRevision(ACME, RecordType.PERSON, 0)

    outcomes = await asyncio.gather(
        *[change(ports, person(f"p{n}", {}), collection_revisions=(expected,)) for n in range(32)]
    )

    assert sum(isinstance(outcome, Applied) for outcome in outcomes) == 1
    assert len(await ids(ports)) == 1


async def test_the_last_use_never_goes_back(ports: Ports) -> None:
    await ports.records.mark_used({"k1": NOW, "k2": NOW})
    await ports.records.mark_used({"k1": NOW - 1, "k2": NOW + 1})
    await ports.records.mark_used({})

    assert await ports.records.last_used(["k2", "k1", "k3"]) == (NOW + 1, NOW, None)
    assert await ports.records.last_used([]) == ()


async def test_every_commit_that_changes_records_is_an_audit_entry(ports: Ports) -> None:
    await apply_changes(
        ports,
        person("bob", {}),
        person("k", {}, type=RecordType.KEY),
        author="ada",
        reason="hire",
        at=NOW,
    )
    await try_write(ports, "a file is no record")
    await change(ports, person("bob", {}, expected=7))
    await apply_changes(ports, person("eve", {}, tenant=GLOBEX))
    await apply_changes(ports, person("bob", None), author="eve", reason="fire", at=NOW + 1)

    newest, first = await ports.records.audit(ACME)
    bob = ("person/bob",)
    assert newest == AuditEntry(newest.id, ACME, NOW + 1, "eve", "fire", bob, action="fire")
    assert (first.author, first.reason, first.subjects) == ("ada", "hire", (*bob, "key/k"))
    assert await ports.records.audit(ACME, before=int(newest.id)) == (first,)
    assert await ports.records.audit(ACME, limit=1) == (newest,)
    assert [entry.subjects for entry in await ports.records.audit(GLOBEX)] == [("person/eve",)]


async def test_a_commit_may_name_audit_subjects_that_it_does_not_change(ports: Ports) -> None:
    subjects = ("agent/marco", "person/ada")
    await put_text(ports, "reviewed", audit_subjects=subjects)
    await try_write(ports, "refused", expects=(Expect(AGENT, SOUL, 7),), audit_subjects=subjects)
    collection_revisions = [(ACME, RecordType.PERSON), (ACME, RecordType.AGENT)]
    untouched = (
        await ports.records.revision(),
        await ports.records.collection_revisions(collection_revisions),
    )
    changes = (person("bob", {}),)
    await put_text(ports, "both", audit_subjects=subjects[:1], changes=changes, reason="both")

    both, named = await ports.records.audit(ACME)

    assert (named.reason, named.subjects) == ("to see", subjects)
    assert (both.reason, both.subjects) == ("both", ("person/bob", "agent/marco"))
    assert untouched == (0, (0, 0))


async def test_records_are_counted_by_index_key(ports: Ports) -> None:
    for number in range(3):
        index_keys = ("team:a", "even") if number % 2 == 0 else ("team:a",)
        await apply_changes(ports, person(f"p{number}", {}, index_keys=index_keys))
    await apply_changes(ports, person("k", {}, type=RecordType.KEY, index_keys=("team:a",)))
    await apply_changes(ports, person("eve", {}, tenant=GLOBEX, index_keys=("team:a",)))

    counted = await ports.records.count(ACME, RecordType.PERSON, ["even", "team:a", "odd", "even"])

    assert counted == (2, 3, 0, 2)
    assert await ports.records.count(ACME, RecordType.PERSON, []) == ()
    await apply_changes(ports, person("p0", None))
    assert await ports.records.count(ACME, RecordType.PERSON, ["even"]) == (1,)
