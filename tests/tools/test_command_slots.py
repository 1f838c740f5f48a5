"""A bounded number of commands runs at once; the others wait, and tenants take turns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path as File

import pytest
from msgspec import structs
from tests.support.stores import open_ports
from tests.support.tool_fixture import BOX, ToolTenant, create_tool_tenant
from tests.support.wait import wait_until

from carrel.actions.sandbox import sandboxes
from carrel.core.errors import TooManyCommands
from carrel.ports import CommandSlots
from carrel.tools.calls import run_call

pytestmark = pytest.mark.anyio
WAITING_LIMIT = 100


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def tools(tmp_path: File) -> AsyncIterator[ToolTenant]:
    async with open_ports(tmp_path) as ports:
        slots = CommandSlots(limit=2, waiting_limit=WAITING_LIMIT)
        yield await create_tool_tenant(replace(ports, command_slots=slots))


async def hold(slots: CommandSlots, tenant: str, order: list[str], end: asyncio.Event) -> None:
    async with slots.hold(tenant):
        order.append(tenant)
        await end.wait()


async def test_a_command_waits_for_one_slot_however_many_commands_another_tenant_has() -> None:
    slots, order = CommandSlots(limit=2, waiting_limit=WAITING_LIMIT), list[str]()
    ends = [asyncio.Event() for _ in range(101)]
    async with asyncio.TaskGroup() as group:
        for end in ends[:100]:
            group.create_task(hold(slots, "greedy", order, end))
        await wait_until(lambda: slots.waiting_count == 98, "98 commands wait")
        group.create_task(hold(slots, "modest", order, ends[100]))
        await wait_until(lambda: slots.waiting_count == 99, "the other tenant's command waits")
        ends[0].set()
        await wait_until(lambda: len(order) == 3, "the next command has started")
        assert (order, slots.running) == (["greedy", "greedy", "modest"], 2)
        for end in ends:
            end.set()
    assert (slots.running, slots.waiting_count, slots.started, slots.refused) == (0, 0, 101, 0)
    assert slots.waited_seconds > 0


async def test_a_waiting_command_is_not_given_to_its_provider(
    tools: ToolTenant, tmp_path: File
) -> None:
    """So its time limit, which the provider enforces, begins with its start."""
    slots, gate = tools.ports.command_slots, tmp_path / "gate"
    command = f"while [ ! -e {gate} ]; do sleep 0.01; done; echo done"
    calls = [asyncio.create_task(tools.call("bash", command=command)) for _ in range(3)]
    await wait_until(
        lambda: len(tools.runner.orders) == 2 and slots.waiting_count == 1, "one waits"
    )
    gate.touch()
    assert [await call for call in calls] == ["done\n"] * 3
    assert len(tools.runner.orders) == 3


async def test_a_cancelled_command_leaves_the_queue_or_frees_its_slot(tools: ToolTenant) -> None:
    slots = tools.ports.command_slots
    calls = [asyncio.create_task(tools.call("bash", command="sleep 600")) for _ in range(3)]
    await wait_until(lambda: slots.waiting_count == 1, "one waits")
    for call in reversed(calls):
        call.cancel()
    await asyncio.wait(calls)
    assert (slots.running, slots.waiting_count, slots.started) == (0, 0, 2)


async def test_a_slot_that_was_granted_to_a_cancelled_command_is_free_again() -> None:
    slots, end = CommandSlots(limit=1), asyncio.Event()
    first = asyncio.create_task(hold(slots, "a", [], end))
    second = asyncio.create_task(hold(slots, "a", [], end))
    await wait_until(lambda: slots.waiting_count == 1, "one waits")
    first.add_done_callback(lambda _: second.cancel())
    end.set()
    await asyncio.wait([first, second])
    assert (slots.running, slots.waiting_count) == (0, 0)


async def test_commands_of_one_instance_take_one_slot() -> None:
    slots, end = CommandSlots(limit=2), asyncio.Event()
    started: list[str] = []

    async def run(key: str) -> None:
        async with slots.hold("a", instance_key=key):
            started.append(key)
            await end.wait()

    async with asyncio.TaskGroup() as group:
        for key in ("one", "one", "one", "two"):
            group.create_task(run(key))
        await wait_until(lambda: slots.running + slots.waiting_count == 4, "all have arrived")
        assert started == ["one", "two"]
        end.set()
    assert started == ["one", "two", "one", "one"]


async def test_a_refused_call_may_be_repeated_with_its_id_and_an_approved_one_waits(
    tools: ToolTenant,
) -> None:
    full = CommandSlots(limit=1, waiting_limit=0)
    context = structs.replace(tools.context, ports=replace(tools.ports, command_slots=full))
    arguments, end = {"command": "echo ran"}, asyncio.Event()
    holder = asyncio.create_task(hold(full, "other", [], end))
    await wait_until(lambda: full.running == 1, "the slot is taken")
    with pytest.raises(TooManyCommands, match="nothing was run"):
        await run_call(context, "bash", arguments, "call-1")
    approved = asyncio.create_task(
        run_call(structs.replace(context, is_approved=True), "bash", arguments)
    )
    await wait_until(lambda: full.waiting_count == 1, "the approved call waits")
    end.set()
    assert (await approved).content == "ran\n"
    await holder
    assert (await run_call(context, "bash", arguments, "call-1")).content == "ran\n"
    assert full.refused == 1


async def test_a_command_that_waited_is_checked_again(tools: ToolTenant) -> None:
    end = asyncio.Event()
    slots = tools.ports.command_slots
    holders = [asyncio.create_task(hold(slots, "other", [], end)) for _ in range(2)]
    call = asyncio.create_task(run_call(tools.context, "bash", {"command": "echo ran"}))
    await wait_until(lambda: slots.waiting_count == 1, "the call waits")
    await sandboxes.patch(tools.ports, tools.owner, BOX, {"config": {"runtimes": ["python"]}})
    end.set()
    reply = await call
    assert reply.is_error
    assert "does not allow" in reply.content
    assert tools.runner.orders == []
    await asyncio.wait(holders)
