"""Unaudited record types: changes raise only their collection revision."""

from __future__ import annotations

import pytest
from tests.support.commits import ACME, NOW, commit, write
from tests.support.contract_stores import Ports

from carrel.core.store.commit import Applied, ExpectationFailed
from carrel.core.store.record import UNAUDITED_TYPES, RecordChange, RecordType, unique_key

pytestmark = pytest.mark.anyio


def memory(id: str = "mem_1", **changed: object) -> RecordChange:
    fields = {"body": {"content": "tea"}, "index_keys": ("agent:marco",), **changed}
    return RecordChange(ACME, RecordType.MEMORY, id, **fields)  # type: ignore[arg-type]


async def apply_changes(ports: Ports, *changes: RecordChange) -> object:
    [outcome] = await ports.trees.commit([commit(changes=changes, at=NOW)])
    return outcome


@pytest.mark.parametrize("record_type", sorted(UNAUDITED_TYPES))
async def test_an_unaudited_change_raises_only_its_collection_revision(
    ports: Ports, record_type: RecordType
) -> None:
    await apply_changes(ports, RecordChange(ACME, RecordType.AGENT, "marco", {}))
    before, audit_before = await ports.records.revision(), await ports.records.audit(ACME)

    assert await apply_changes(
        ports, RecordChange(ACME, record_type, "one", {"content": "x"})
    ) == Applied(())
    await apply_changes(ports, RecordChange(ACME, record_type, "one", {"content": "y"}))
    await apply_changes(ports, RecordChange(ACME, record_type, "one", None))

    assert await ports.records.revision() == before
    assert await ports.records.audit(ACME) == audit_before
    assert await ports.records.collection_revisions([(ACME, record_type)]) == (3,)


async def test_an_audited_change_among_unaudited_ones_is_audited(ports: Ports) -> None:
    before = await ports.records.revision()

    await apply_changes(ports, memory(), RecordChange(ACME, RecordType.AGENT, "marco", {}))

    assert await ports.records.revision() > before
    [entry] = await ports.records.audit(ACME)
    assert entry.subjects == ("agent/marco",)


async def test_an_unaudited_change_with_files_is_one_commit_with_audit_subjects(
    ports: Ports,
) -> None:
    combined = commit(
        await write(ports, "x"), changes=(memory(),), audit_subjects=("agent/marco",), at=NOW
    )
    await ports.trees.commit([combined])

    [entry] = await ports.records.audit(ACME)
    assert entry.subjects == ("agent/marco",)


async def test_a_unique_key_of_an_unaudited_record_is_refused_to_another(ports: Ports) -> None:
    key = unique_key(ACME, RecordType.MEMORY, "text", "x")
    assert await apply_changes(ports, memory("mem_1", unique_keys=(key,))) == Applied(())

    refused = await apply_changes(ports, memory("mem_2", unique_keys=(key,)))

    assert isinstance(refused, ExpectationFailed)
    assert refused.unique_key == key


async def test_an_unaudited_change_in_another_process_leaves_the_store_revision(
    ports: Ports,
) -> None:
    async with ports.twin() as twin:
        before = await ports.records.revision()
        await twin.trees.commit([commit(changes=(memory(),), at=NOW)])
        assert await ports.records.revision() == before
        [record] = await ports.records.get(ACME, RecordType.MEMORY, ["mem_1"])
        assert record
