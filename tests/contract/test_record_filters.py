"""Contract of RecordStore: records that meet several conditions, and their number."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.commits import ACME, GLOBEX, commit
from tests.support.contract_stores import Ports

from carrel.core.store.commit import Applied
from carrel.core.store.record import RecordChange, RecordFilter, RecordType

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
