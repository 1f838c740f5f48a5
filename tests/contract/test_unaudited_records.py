"""What every store must do with records that agents write often: disturb nobody, audit nothing."""

from __future__ import annotations

import pytest
from tests.support.commits import ACME, NOW, commit, write
from tests.support.contract_stores import Ports

from carrel.core.store.commit import Applied, ExpectationFailed
from carrel.core.store.record import UNAUDITED_TYPES, RecordChange, RecordType, unique_key

pytestmark = pytest.mark.anyio


def memory(id: str = "mem_1", **more: object) -> RecordChange:
    facts = {"body": {"content": "tea"}, "index_keys": ("agent:marco",), **more}
    return RecordChange(ACME, RecordType.MEMORY, id, **facts)  # type: ignore[arg-type]


async def changed(ports: Ports, *changes: RecordChange) -> object:
    [outcome] = await ports.trees.commit([commit(changes=changes, at=NOW)])
    return outcome


@pytest.mark.parametrize("noun", sorted(UNAUDITED_TYPES))
async def test_a_quiet_change_raises_its_shelf_and_nothing_else(
    ports: Ports, noun: RecordType
) -> None:
    await changed(ports, RecordChange(ACME, RecordType.AGENT, "marco", {}))
    before, told = await ports.records.revision(), await ports.records.audit(ACME)

    assert await changed(ports, RecordChange(ACME, noun, "one", {"content": "x"})) == Applied(())
    await changed(ports, RecordChange(ACME, noun, "one", {"content": "y"}))
    await changed(ports, RecordChange(ACME, noun, "one", None))

    assert await ports.records.revision() == before
    assert await ports.records.audit(ACME) == told
    assert await ports.records.collection_revisions([(ACME, noun)]) == (3,)


async def test_one_that_is_not_quiet_among_them_is_told(ports: Ports) -> None:
    before = await ports.records.revision()

    await changed(ports, memory(), RecordChange(ACME, RecordType.AGENT, "marco", {}))

    assert await ports.records.revision() > before
    [entry] = await ports.records.audit(ACME)
    assert entry.subjects == ("agent/marco",)


async def test_a_quiet_change_with_files_is_one_commit_and_may_name_what_it_is_about(
    ports: Ports,
) -> None:
    said = commit(
        await write(ports, "x"), changes=(memory(),), audit_subjects=("agent/marco",), at=NOW
    )
    await ports.trees.commit([said])

    [entry] = await ports.records.audit(ACME)
    assert entry.subjects == ("agent/marco",)


async def test_only_one_quiet_record_has_a_handle(ports: Ports) -> None:
    name = unique_key(ACME, RecordType.MEMORY, "text", "x")
    assert await changed(ports, memory("mem_1", unique_keys=(name,))) == Applied(())

    refused = await changed(ports, memory("mem_2", unique_keys=(name,)))

    assert isinstance(refused, ExpectationFailed)
    assert refused.unique_key == name


async def test_what_changes_in_another_process_raises_nothing_here(ports: Ports) -> None:
    async with ports.twin() as twin:
        before = await ports.records.revision()
        await twin.trees.commit([commit(changes=(memory(),), at=NOW)])
        assert await ports.records.revision() == before
        [found] = await ports.records.get(ACME, RecordType.MEMORY, ["mem_1"])
        assert found
