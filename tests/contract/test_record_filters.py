"""Contract of RecordStore: records that meet several conditions, and their number."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.commits import ACME, GLOBEX, NOW, commit
from tests.support.contract_stores import Ports

from carrel.core.store.audit_filter import AuditFilter
from carrel.core.store.commit import Applied
from carrel.core.store.record import KeyReference, RecordChange, RecordFilter, RecordType

pytestmark = pytest.mark.anyio


def person(id: str, **options: Any) -> RecordChange:
    return RecordChange(
        **{"tenant": ACME, "type": RecordType.PERSON, "id": id, "body": {}} | options
    )


async def add(ports: Ports, change: RecordChange) -> None:
    [outcome] = await ports.trees.commit([commit(changes=(change,))])
    assert outcome == Applied(())


async def test_listed_records_meet_every_condition(ports: Ports) -> None:
    keys = {
        "p0": ("team:a", "word:ada", "word:young"),
        "p1": ("team:a", "word:adam"),
        "p2": ("team:b", "word:ada", "word:adam"),
        "p3": ("team:a", "even", "word:eve"),
    }
    for id, index_keys in keys.items():
        await add(ports, person(id, index_keys=index_keys))
    await add(ports, person("k", type=RecordType.KEY, index_keys=("team:a",)))
    await add(ports, person("g", tenant=GLOBEX, index_keys=("team:a", "word:ada")))

    async def matching(*filters: tuple[str, ...], after: str = "", limit: int = 9) -> list[str]:
        people = (ACME, RecordType.PERSON)
        records = RecordFilter(*filters)
        listed = await ports.records.list_matching(*people, records, after=after, limit=limit)
        if not after and len(listed) < limit:
            assert await ports.records.count_matching(*people, records) == len(listed)
        return [record.id for record in listed]

    assert await matching() == ["p0", "p1", "p2", "p3"]
    assert await matching(after="p1", limit=1) == ["p2"]
    assert await matching(("team:a",)) == ["p0", "p1", "p3"]
    assert await matching(("team:a", "even")) == ["p3"]
    assert await matching(("team:a",), ("word:ad",)) == ["p0", "p1"]
    assert await matching(("team:a",), ("word:ad",), after="p0") == ["p1"]
    assert await matching((), ("word:ad",)) == ["p0", "p1", "p2"]
    assert await matching((), ("word:ad",), after="p0", limit=1) == ["p1"]
    assert await matching((), ("word:ad", "word:yo")) == ["p0"]
    assert await matching((), ("word:ad", "word:eve")) == []
    assert await matching(("odd",)) == await matching((), ("word:z",)) == []


async def test_records_are_counted_by_each_index_key_with_a_prefix(ports: Ports) -> None:
    await add(ports, person("p0", index_keys=("tag:b", "tag:a", "tags")))
    await add(ports, person("p1", index_keys=("tag:b",)))
    await add(ports, person("p2", tenant=GLOBEX, index_keys=("tag:b",)))

    counts = await ports.records.count_by_key(ACME, RecordType.PERSON, "tag:")
    assert list(counts.items()) == [("tag:a", 1), ("tag:b", 2)]
    assert await ports.records.count_by_key(ACME, RecordType.KEY, "tag:") == {}


async def test_audit_entries_are_found_by_author_key_action_record_and_time(ports: Ports) -> None:
    async def audited(number: int, author: str, reason: str, *subjects: str) -> None:
        fields = {"author": author, "at": NOW + number, "audit_subjects": subjects}
        change = person(f"p{number}")
        options = {
            "key": KeyReference(f"key_{author}", "k"),
            "reason": reason,
            "changes": (change,),
        }
        [outcome] = await ports.trees.commit([commit(**fields, **options)])
        assert outcome == Applied(())

    await audited(1, "ada", "sign in, invited by bob")
    await audited(2, "bob", "accept: SOUL.md", "agent/marco", "file/agent/marco/SOUL.md")
    await audited(3, "ada", "accept: RULES.md", "agent/marco", "agent/eve")
    await audited(3, "ada", "hire", "agent/eve")

    async def listed(before: int = 0, limit: int = 9, **conditions: Any) -> list[str]:
        conditions |= {"end": NOW + conditions["end"]} if "end" in conditions else {}
        conditions |= {"start": NOW + conditions["start"]} if "start" in conditions else {}
        filter = AuditFilter(**conditions)
        entries = await ports.records.audit(ACME, filter, before=before, limit=limit)
        if limit == 9 and not before:
            assert await ports.records.count_audit_entries(ACME, filter) == len(entries)
        return [entry.reason for entry in entries]

    everything = ["hire", "accept: RULES.md", "accept: SOUL.md", "sign in, invited by bob"]
    assert await listed() == everything
    assert await listed(author="ada") == [everything[0], everything[1], everything[3]]
    assert await listed(author="key_bob") == ["accept: SOUL.md"]
    assert await listed(action="sign in") == ["sign in, invited by bob"]
    assert await listed(object="agent/eve") == ["hire", "accept: RULES.md"]
    assert await listed(object="agent") == everything[:3]
    assert await listed(object="file/agent/marco/SOUL.md") == ["accept: SOUL.md"]
    assert await listed(object="agent/marco", action="accept", author="ada") == ["accept: RULES.md"]
    assert await listed(start=2, end=3) == ["accept: SOUL.md"]
    assert await listed(object="agent", end=3) == ["accept: SOUL.md"]
    assert await listed(object="agent/nobody") == await listed(action="acc") == []
    newest = await ports.records.audit(ACME, limit=1)
    assert await listed(before=int(newest[0].id), limit=2) == everything[1:3]
    assert await listed(before=int(newest[0].id), author="ada", limit=1) == ["accept: RULES.md"]
    assert await ports.records.audit(GLOBEX, AuditFilter(author="ada")) == ()
