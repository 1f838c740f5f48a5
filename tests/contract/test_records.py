"""What every Records must do: facts by id, by handle and by link, changed only by commits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.contract.scenes import ACME, AGENT, GLOBEX, NOW, SOUL, attempt, commit, say, texts
from tests.contract.worlds import World

from carrel.core.store.record import (
    AuditEntry,
    CollectionRevision,
    Record,
    RecordChange,
    RecordType,
    global_unique_key,
    unique_key,
)
from carrel.core.store.tree import Applied, Expect, ExpectationFailed, Outcome

pytestmark = pytest.mark.anyio

ADA = unique_key(ACME, RecordType.PERSON, "email", "ada@example.org")
KEY = global_unique_key(RecordType.KEY, "hash", "abc")


def person(id: str, body: dict[str, Any] | None, **more: Any) -> RecordChange:
    return RecordChange(
        **{"tenant": ACME, "noun": RecordType.PERSON, "id": id, "body": body, **more}
    )


async def change(world: World, *changes: RecordChange, **more: Any) -> Outcome:
    [outcome] = await world.trees.commit([commit(changes=changes, **more)])
    return outcome


async def changed(world: World, *changes: RecordChange, **more: Any) -> None:
    outcome = await change(world, *changes, **more)
    assert outcome == Applied(()), outcome


async def ids(world: World, tenant: str = ACME, **more: Any) -> list[str]:
    return [record.id for record in await world.records.list(tenant, RecordType.PERSON, **more)]


async def test_an_empty_store_knows_no_records(world: World) -> None:
    assert await world.records.get(ACME, RecordType.PERSON, ["ada", "bob"]) == (None, None)
    assert await world.records.get(ACME, RecordType.PERSON, []) == ()
    assert await world.records.named([ADA]) == (None,)
    assert await world.records.list(ACME, RecordType.PERSON) == ()
    assert await world.records.shelves([(ACME, RecordType.PERSON)]) == (0,)
    assert await world.records.audit(ACME) == ()


async def test_a_record_is_read_as_it_was_written(world: World) -> None:
    body = {"name": "Ada ✓", "n": 1, "x": 1.5, "deep": {"list": [1, None, True, "\u0000é"]}}
    await changed(world, person("ada", body), at=NOW)
    await changed(world, person("ada", {**body, "n": 2}), at=NOW + 5)

    assert await world.records.get(ACME, RecordType.PERSON, ["bob", "ada", "ada"]) == (
        None,
        *[Record(ACME, RecordType.PERSON, "ada", 2, {**body, "n": 2}, NOW, NOW + 5)] * 2,
    )


async def test_what_was_read_cannot_change_what_is_kept(world: World) -> None:
    body: dict[str, Any] = {"deep": {"list": [1]}}
    await changed(world, person("ada", body))
    body["deep"]["list"].append(2)
    [read] = await world.records.get(ACME, RecordType.PERSON, ["ada"])
    assert read
    read.body["deep"]["list"].append(3)

    [again] = await world.records.get(ACME, RecordType.PERSON, ["ada"])
    assert again
    assert again.body == {"deep": {"list": [1]}}


async def test_the_same_id_in_another_tenant_or_noun_is_another_record(world: World) -> None:
    await changed(world, person("ada", {"of": "acme"}))
    await changed(world, person("ada", {"of": "globex"}, tenant=GLOBEX))
    await changed(world, person("ada", {"of": "key"}, noun=RecordType.KEY))

    for tenant, noun, of in (
        (ACME, RecordType.PERSON, "acme"),
        (GLOBEX, RecordType.PERSON, "globex"),
    ):
        [record] = await world.records.get(tenant, noun, ["ada"])
        assert record
        assert record.body == {"of": of}
    assert await ids(world, GLOBEX) == ["ada"]
    assert await world.records.get(GLOBEX, RecordType.KEY, ["ada"]) == (None,)


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
async def test_a_change_is_applied_if_the_revision_is_the_one_expected(
    world: World, body: dict[str, Any] | None
) -> None:
    for n, (there, expected, holds) in enumerate(EXPECTATIONS):
        for turn in range(there):
            await changed(world, person(f"p{n}", {"n": turn}))
        wanted = person(f"p{n}", body, expected=expected)

        assert await change(world, wanted) == (Applied(()) if holds else ExpectationFailed(wanted))

        [record] = await world.records.get(ACME, RecordType.PERSON, [f"p{n}"])
        revision = (there + 1 if body else 0) if holds else there
        assert (record.revision if record else 0) == revision


async def test_of_many_who_saw_the_same_revision_exactly_one_wins(world: World) -> None:
    await changed(world, person("ada", {"n": 0}))

    outcomes = await asyncio.gather(
        *[change(world, person("ada", {"n": n}, expected=1)) for n in range(32)]
    )

    assert sum(isinstance(outcome, Applied) for outcome in outcomes) == 1
    [record] = await world.records.get(ACME, RecordType.PERSON, ["ada"])
    assert record
    assert record.revision == 2


async def test_deleting_what_is_not_there_succeeds_and_moves_nothing(world: World) -> None:
    await changed(world, person("bob", {}))
    before = await world.records.revision()

    await changed(world, person("ada", None))

    assert await world.records.shelves([(ACME, RecordType.PERSON)]) == (1,)
    assert await world.records.revision() == before


async def test_a_record_is_found_by_any_of_its_handles_whatever_its_tenant(world: World) -> None:
    await changed(world, person("ada", {}, handles=(ADA, KEY)))
    await changed(world, person("eve", {}, tenant=GLOBEX, handles=("theirs",)))

    found = await world.records.named([KEY, "nobody's", ADA, "theirs", KEY])

    assert [record and (record.tenant, record.id) for record in found] == [
        (ACME, "ada"),
        None,
        (ACME, "ada"),
        (GLOBEX, "eve"),
        (ACME, "ada"),
    ]


async def test_handles_and_links_replace_what_the_record_had(world: World) -> None:
    await changed(world, person("ada", {}, handles=(ADA, KEY), links=("red", "big")))
    await changed(world, person("ada", {}, handles=(KEY, "new"), links=("big", "old")))

    found = await world.records.named([ADA, KEY, "new"])
    assert [record and record.id for record in found] == [None, "ada", "ada"]
    assert [await ids(world, link=link) for link in ("red", "big", "old")] == [[], ["ada"], ["ada"]]


async def test_deleting_a_record_gives_up_its_names(world: World) -> None:
    await changed(world, person("ada", {}, handles=(ADA,), links=("red",)))
    await changed(world, person("ada", None))

    assert await world.records.named([ADA]) == (None,)
    assert await ids(world, link="red") == []
    await changed(world, person("bob", {}, handles=(ADA,), expected=0))
    await changed(world, person("ada", {}, expected=0))
    assert await ids(world, link="red") == []


async def test_a_handle_that_another_record_has_is_refused_by_name(world: World) -> None:
    await changed(world, person("ada", {}, handles=(ADA,)))
    rival = person("bob", {}, handles=("free", ADA), tenant=GLOBEX, noun=RecordType.KEY)

    outcome = await change(world, person("carl", {}), rival)

    assert outcome == ExpectationFailed(rival, handle=ADA)
    assert await ids(world) == ["ada"]
    assert await world.records.named(["free"]) == (None,)


async def test_two_changes_of_one_commit_cannot_have_the_same_handle(world: World) -> None:
    rivals = [person(id, {}, handles=(ADA,)) for id in ("ada", "bob")]

    assert await change(world, *rivals) == ExpectationFailed(rivals[1], handle=ADA)
    assert await ids(world) == []


async def test_a_handle_given_up_can_be_taken_in_the_same_commit(world: World) -> None:
    await changed(world, person("old", {}, handles=(ADA,)))
    await changed(world, person("old", None), person("new", {}, handles=(ADA,)))
    await changed(world, person("new", {}), person("newer", {}, handles=(ADA,)))

    [found] = await world.records.named([ADA])
    assert found
    assert found.id == "newer"


async def test_of_many_who_take_the_same_handle_exactly_one_wins(world: World) -> None:
    rivals = [person(f"p{n}", {}, handles=(ADA,)) for n in range(32)]

    outcomes = await asyncio.gather(*[change(world, rival) for rival in rivals])

    won = [rival for rival, outcome in zip(rivals, outcomes, strict=True) if outcome == Applied(())]
    assert len(won) == 1
    lost = [outcome for outcome in outcomes if isinstance(outcome, ExpectationFailed)]
    assert {outcome.handle for outcome in lost} == {ADA}
    assert await ids(world) == [won[0].id]


async def test_a_list_is_in_order_of_id_and_can_be_paged(world: World) -> None:
    names = ["b", "B", "a", "a.b", "a-b", "a_b", "ab", "Z", "9", "10"]
    await changed(world, *[person(name, {}) for name in names])
    await changed(world, person("other", {}, tenant=GLOBEX), person("key", {}, noun=RecordType.KEY))

    assert await ids(world) == sorted(names)
    assert await ids(world, limit=3) == sorted(names)[:3]
    assert await ids(world, after=sorted(names)[2], limit=4) == sorted(names)[3:7]
    assert await ids(world, after="zzz") == []


async def test_a_list_by_link_holds_only_those_with_that_link(world: World) -> None:
    for n in range(6):
        await changed(world, person(f"p{n}", {}, links=("even",) if n % 2 == 0 else ("odd",)))
    await changed(world, person("p9", {}, links=("even",), tenant=GLOBEX))

    assert await ids(world, link="even") == ["p0", "p2", "p4"]
    assert await ids(world, link="even", after="p0", limit=1) == ["p2"]
    assert await ids(world, link="eve") == []


async def test_an_empty_tenant_lists_those_of_all(world: World) -> None:
    await changed(world, person("b", {}), person("d", {}))
    await changed(world, person("a", {}, tenant=GLOBEX), person("c", {}, tenant=GLOBEX))

    assert await ids(world, "") == ["a", "b", "c", "d"]
    assert await ids(world, "", after="b") == ["c", "d"]


async def test_a_shelf_rises_once_with_each_commit_that_changes_it(world: World) -> None:
    asks = [(ACME, RecordType.PERSON), (ACME, RecordType.KEY), (GLOBEX, RecordType.PERSON)]

    await changed(world, person("ada", {}), person("bob", {}), person("k", {}, noun=RecordType.KEY))
    assert await world.records.shelves(asks) == (1, 1, 0)
    await changed(world, person("ada", {"n": 2}))
    assert await world.records.shelves(asks) == (2, 1, 0)
    await changed(world, person("ada", None))
    assert await world.records.shelves([*asks, asks[0]]) == (3, 1, 0, 3)


async def test_a_refused_change_moves_no_shelf(world: World) -> None:
    before = await world.records.revision()
    wrong = person("ada", {}, expected=3)

    assert await change(world, person("bob", {}), wrong) == ExpectationFailed(wrong)

    assert await world.records.shelves([(ACME, RecordType.PERSON)]) == (0,)
    assert await world.records.revision() == before


async def test_the_revision_rises_with_any_change_of_any_record(world: World) -> None:
    seen = [await world.records.revision()]
    for wanted in (
        person("ada", {}),
        person("ada", {}, tenant=GLOBEX),
        person("ada", {}, noun=RecordType.KEY),
        person("ada", None),
    ):
        await changed(world, wanted)
        seen.append(await world.records.revision())
    await attempt(world, "a file is no record")

    assert seen == sorted(set(seen))
    assert await world.records.revision() == seen[-1]


async def test_a_decision_on_records_and_the_files_that_follow_are_one_commit(
    world: World,
) -> None:
    await changed(world, person("ada", {"title": "Dr"}))
    seen = CollectionRevision(ACME, RecordType.PERSON, 1)
    await changed(world, person("ada", {"title": "Prof"}))

    assert await attempt(world, "Dr Ada", shelves=(seen,)) == ExpectationFailed(seen)
    assert await texts(world, AGENT) == {}


async def test_of_many_decisions_on_one_shelf_exactly_one_wins(world: World) -> None:
    unmoved = CollectionRevision(ACME, RecordType.PERSON, 0)

    outcomes = await asyncio.gather(
        *[change(world, person(f"p{n}", {}), shelves=(unmoved,)) for n in range(32)]
    )

    assert sum(isinstance(outcome, Applied) for outcome in outcomes) == 1
    assert len(await ids(world)) == 1


async def test_the_last_use_never_goes_back(world: World) -> None:
    await world.records.used({"k1": NOW, "k2": NOW})
    await world.records.used({"k1": NOW - 1, "k2": NOW + 1})
    await world.records.used({})

    assert await world.records.last_used(["k2", "k1", "k3"]) == (NOW + 1, NOW, None)
    assert await world.records.last_used([]) == ()


async def test_every_commit_that_changed_records_is_a_deed(world: World) -> None:
    await changed(
        world, person("bob", {}), person("k", {}, noun=RecordType.KEY), by="ada", why="hire", at=NOW
    )
    await attempt(world, "a file is no record")
    await change(world, person("bob", {}, expected=7))
    await changed(world, person("eve", {}, tenant=GLOBEX))
    await changed(world, person("bob", None), by="eve", why="fire", at=NOW + 1)

    newest, first = await world.records.audit(ACME)

    assert newest == AuditEntry(newest.id, ACME, NOW + 1, "eve", "fire", ("person/bob",))
    assert first == AuditEntry(first.id, ACME, NOW, "ada", "hire", ("person/bob", "key/k"))
    assert newest.id > first.id
    assert await world.records.audit(ACME, before=newest.id) == (first,)
    assert await world.records.audit(ACME, limit=1) == (newest,)
    assert [deed.subjects for deed in await world.records.audit(GLOBEX)] == [("person/eve",)]


async def test_a_commit_may_name_in_the_audit_what_it_does_not_change(world: World) -> None:
    about = ("agent/marco", "person/ada")
    await say(world, "reviewed", about=about)
    await attempt(world, "refused", expects=(Expect(AGENT, SOUL, 7),), about=about)
    shelves = [(ACME, RecordType.PERSON), (ACME, RecordType.AGENT)]
    untouched = (await world.records.revision(), await world.records.shelves(shelves))
    changes = (person("bob", {}),)
    await say(world, "both", about=about[:1], changes=changes, why="both")

    both, named = await world.records.audit(ACME)

    assert (named.why, named.subjects) == ("to see", about)
    assert (both.why, both.subjects) == ("both", ("person/bob", "agent/marco"))
    assert untouched == (0, (0, 0))


async def test_records_are_counted_by_their_links(world: World) -> None:
    for number in range(3):
        links = ("team:a", "even") if number % 2 == 0 else ("team:a",)
        await changed(world, person(f"p{number}", {}, links=links))
    await changed(world, person("k", {}, noun=RecordType.KEY, links=("team:a",)))
    await changed(world, person("eve", {}, tenant=GLOBEX, links=("team:a",)))

    counted = await world.records.count(ACME, RecordType.PERSON, ["even", "team:a", "odd", "even"])

    assert counted == (2, 3, 0, 2)
    assert await world.records.count(ACME, RecordType.PERSON, []) == ()
    await changed(world, person("p0", None))
    assert await world.records.count(ACME, RecordType.PERSON, ["even"]) == (1,)
