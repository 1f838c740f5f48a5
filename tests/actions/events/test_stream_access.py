"""A stream ends with the credential of its caller, and follows the caller's role."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import pytest
from tests.support.items import create_agent
from tests.support.stores import advance_clock
from tests.support.tenants import add_person, create_tenant

from carrel.actions.accounts import credentials, keys, people
from carrel.actions.accounts.keys import KeySpec
from carrel.actions.events import run_log, streams
from carrel.actions.events.event_access import Batches
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.overlay import stacks
from carrel.actions.runs import runs
from carrel.core.access import Actor, CredentialKind, Role
from carrel.core.identifiers import Path, Stack
from carrel.core.runs import RunStatus
from carrel.core.store.event import WORKSPACE_UPDATED, Event, EventFilter
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
HOUR = 3_600_000


@asynccontextmanager
async def file_events(ports: Ports, actor: Actor) -> AsyncIterator[Batches]:
    log = EventFilter(actor.tenant, types=frozenset({WORKSPACE_UPDATED}))
    _, batches = await streams.listen_as(ports, actor, log)
    async with aclosing(batches):
        yield batches


async def write(ports: Ports, owner: Actor, stack: Stack, path: str) -> None:
    await files.put(ports, stack, Path(path), b"x", owner, WriteOptions())


def paths_of(batch: tuple[Event, ...]) -> list[str]:
    return [event.payload["path"] for event in batch]


async def end_credential(ports: Ports, owner: Actor, actor: Actor, how: str) -> None:
    match how:
        case "revoked":
            await keys.revoke(ports, owner, actor.key)
        case "expired":
            advance_clock(ports, HOUR)
        case _:
            await people.delete(ports, owner, actor.person or "")


@pytest.mark.parametrize("how", ["revoked", "expired", "person deleted"])
async def test_a_stream_ends_with_the_callers_credential(anywhere: Ports, how: str) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    _, bob = await add_person(ports, owner, "bob", Role.ADMIN)
    spec = KeySpec("brief", CredentialKind.PERSON, expires=ports.clock.now() + HOUR)
    brief = await credentials.authenticate(ports, (await keys.create(ports, bob, spec)).token)
    defaults = await stacks.defaults_stack(ports, owner)
    async with file_events(ports, brief) as batches:
        await write(ports, owner, defaults, "before.md")
        assert paths_of(await anext(batches)) == ["before.md"]
        await end_credential(ports, owner, brief, how)
        await write(ports, owner, defaults, "after.md")
        with pytest.raises(StopAsyncIteration):
            await anext(batches)


async def test_a_stream_of_an_admin_who_becomes_a_member_omits_private_agents(
    anywhere: Ports,
) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    bob, as_bob = await add_person(ports, owner, "bob", Role.ADMIN)
    await create_agent(ports, owner, "desk", owner=owner.person)
    desk = await stacks.agent_stack(ports, owner, "desk")
    defaults = await stacks.defaults_stack(ports, owner)
    async with file_events(ports, as_bob) as batches:
        await write(ports, owner, desk, "own.md")
        assert paths_of(await anext(batches)) == ["own.md"]
        await people.patch(ports, owner, bob.id, {"role": Role.MEMBER})
        await write(ports, owner, desk, "later.md")
        await write(ports, owner, defaults, "shared.md")
        assert paths_of(await anext(batches)) == ["shared.md"]


async def test_a_stream_of_a_run_ends_with_the_callers_credential(anywhere: Ports) -> None:
    ports = anywhere
    _, owner = await create_tenant(ports)
    _, bob = await add_person(ports, owner, "bob", Role.ADMIN)
    run = await runs.start(ports, owner, runs.RunRequest("w"))
    _, batches = await run_log.listen_to_run(ports, bob, run)
    async with aclosing(batches):
        assert await anext(batches)
        await keys.revoke(ports, owner, bob.key)
        await write(ports, owner, await stacks.defaults_stack(ports, owner), "a.md")
        await runs.update(ports, owner, run.id, status=RunStatus.COMPLETED)
        with pytest.raises(StopAsyncIteration):
            await anext(batches)
