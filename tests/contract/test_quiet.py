"""What every store must do with records that agents write often: disturb nobody, audit nothing."""

from __future__ import annotations

import pytest
from tests.contract.scenes import ACME, NOW, commit, write
from tests.contract.worlds import World

from carrel.core.store.record import QUIET, RecordChange, RecordType, unique_key
from carrel.core.store.tree import Applied, ExpectationFailed

pytestmark = pytest.mark.anyio


def memory(id: str = "mem_1", **more: object) -> RecordChange:
    facts = {"body": {"content": "tea"}, "links": ("agent:marco",), **more}
    return RecordChange(ACME, RecordType.MEMORY, id, **facts)  # type: ignore[arg-type]


async def changed(world: World, *changes: RecordChange) -> object:
    [outcome] = await world.trees.commit([commit(changes=changes, at=NOW)])
    return outcome


@pytest.mark.parametrize("noun", sorted(QUIET))
async def test_a_quiet_change_raises_its_shelf_and_nothing_else(
    world: World, noun: RecordType
) -> None:
    await changed(world, RecordChange(ACME, RecordType.AGENT, "marco", {}))
    before, told = await world.records.revision(), await world.records.audit(ACME)

    assert await changed(world, RecordChange(ACME, noun, "one", {"content": "x"})) == Applied(())
    await changed(world, RecordChange(ACME, noun, "one", {"content": "y"}))
    await changed(world, RecordChange(ACME, noun, "one", None))

    assert await world.records.revision() == before
    assert await world.records.audit(ACME) == told
    assert await world.records.shelves([(ACME, noun)]) == (3,)


async def test_one_that_is_not_quiet_among_them_is_told(world: World) -> None:
    before = await world.records.revision()

    await changed(world, memory(), RecordChange(ACME, RecordType.AGENT, "marco", {}))

    assert await world.records.revision() > before
    [deed] = await world.records.audit(ACME)
    assert deed.subjects == ("agent/marco",)


async def test_a_quiet_change_with_files_is_one_commit_and_may_name_what_it_is_about(
    world: World,
) -> None:
    said = commit(await write(world, "x"), changes=(memory(),), about=("agent/marco",), at=NOW)
    await world.trees.commit([said])

    [deed] = await world.records.audit(ACME)
    assert deed.subjects == ("agent/marco",)


async def test_only_one_quiet_record_has_a_handle(world: World) -> None:
    name = unique_key(ACME, RecordType.MEMORY, "text", "x")
    assert await changed(world, memory("mem_1", handles=(name,))) == Applied(())

    refused = await changed(world, memory("mem_2", handles=(name,)))

    assert isinstance(refused, ExpectationFailed)
    assert refused.handle == name


async def test_what_changes_in_another_process_raises_nothing_here(world: World) -> None:
    async with world.twin() as twin:
        before = await world.records.revision()
        await twin.trees.commit([commit(changes=(memory(),), at=NOW)])
        assert await world.records.revision() == before
        [found] = await world.records.get(ACME, RecordType.MEMORY, ["mem_1"])
        assert found
