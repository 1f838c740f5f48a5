"""After any history the followed catalog equals a fresh export."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path as File

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.contract_stores import flip_bit
from tests.support.logs import captured_logs
from tests.support.object_store import DictionaryObjectStore
from tests.support.random_edits import INITIAL_CHANGES, Change, Simulation, changes
from tests.support.stores import advance_clock, open_ports, overwrite_content, ports_over

from carrel.actions.catalog.export import CLAIM_KEY, export
from carrel.actions.catalog.follower import BACKOFF_SECONDS, CatalogFollower, run_catalog
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.overlay import stacks
from carrel.adapters.filesystem.object_directory import DirectoryObjectStore
from carrel.adapters.postgres import open_store
from carrel.adapters.postgres.leader_lock import PostgresLeaderLock
from carrel.adapters.sqlite.leader_lock import FileLeaderLock
from carrel.core.access import Actor
from carrel.core.agents.layers import build_stack
from carrel.core.catalog.layout import AgentFileKey, ReviewedFileKey, TemplateFileKey
from carrel.core.identifiers import Path, digest
from carrel.core.overlay.agent_resolution import pinned_entry
from carrel.core.overlay.file_classes import FileClass
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

NOTE = Path("notes/a.md")
FOLLOWER_STEPS: list[Change] = [(name, 0, 0, 0) for name in ("catch up", "crash", "restart")]


class FlakyObjectStore(DictionaryObjectStore):
    """An object store that fails after a number of operations, even within a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.fails_after: int | None = None

    async def put(self, contents: Mapping[str, bytes]) -> Mapping[str, str]:
        for key, content in contents.items():
            self._maybe_fail()
            await super().put({key: content})
        return {}

    async def delete(self, keys: Collection[str]) -> None:
        for key in keys:
            self._maybe_fail()
            await super().delete([key])

    def _maybe_fail(self) -> None:
        if self.fails_after is not None:
            if self.fails_after == 0:
                raise OSError("the store is gone")
            self.fails_after -= 1


async def with_ports(work: Callable[[Ports], Awaitable[None]]) -> None:
    """Run work over a store of its own, for tests that Hypothesis repeats."""
    with tempfile.TemporaryDirectory() as directory:
        async with open_ports(File(directory)) as ports:
            await work(ports)


async def fresh_export(ports: Ports) -> dict[str, bytes]:
    object_store = DictionaryObjectStore()
    await export(ports, object_store)
    return object_store.objects


async def check_catalog_readers(ports: Ports, objects: Mapping[str, bytes]) -> None:
    """Reading the catalog by its layout gives the content that each agent is served."""
    for tenant in await ports.records.list("", RecordType.TENANT):
        for agent in await ports.records.list(tenant.id, RecordType.AGENT):
            workspace = await files.list_files(ports, build_stack(agent))
            raw = await files.read_contents(ports, workspace, raw=True)
            served = await files.read_contents(ports, workspace)
            for path in raw.contents:
                pinned = workspace.files[path].file_class is FileClass.PINNED
                fallbacks = (
                    await _pinned_keys(ports, agent, path)
                    if pinned
                    else await _live_keys(ports, agent)
                )
                own = AgentFileKey(tenant.body["slug"], agent.body["slug"], path).text
                managed = workspace.files[path].file_class is FileClass.MANAGED and own in objects
                content = served.contents[path] if managed else raw.contents[path]
                keys = [own, *(key.format(path=path) for key in fallbacks)]
                assert next(objects[key] for key in keys if key in objects) == content


async def _slugs(ports: Ports, agent: Record) -> tuple[str, list[str]]:
    [tenant] = await ports.records.get(agent.tenant, RecordType.TENANT, [agent.tenant])
    assert tenant
    id = agent.body.get("templateId")
    [template] = await ports.records.get(agent.tenant, RecordType.TEMPLATE, [id]) if id else [None]
    return tenant.body["slug"], [*([template.body["slug"]] if template else []), "defaults"]


async def _live_keys(ports: Ports, agent: Record) -> list[str]:
    tenant, lower = await _slugs(ports, agent)
    return [TemplateFileKey(tenant, slug, Path("{path}")).text for slug in lower]


async def _pinned_keys(ports: Ports, agent: Record, path: Path) -> list[str]:
    tenant, lower = await _slugs(ports, agent)
    entry = pinned_entry(path, await ports.trees.read(build_stack(agent), (path,)))
    base = entry.base if entry else None
    return [ReviewedFileKey(tenant, lower[0], path, base.digest).text] if base else []


class FollowedCatalog:
    """A simulation and its catalog; the follower may fail or restart at any point."""

    def __init__(self, simulation: Simulation, object_store: FlakyObjectStore) -> None:
        self.simulation, self.ports, self.object_store = simulation, simulation.ports, object_store
        self._follower = CatalogFollower(self.ports, object_store)

    async def step(self, number: int, change: Change) -> None:
        if change[0] == "catch up":
            await self.check()
        elif change[0] == "restart":
            self._follower = CatalogFollower(self.ports, self.object_store)
        elif change[0] == "crash":
            await self._crash(number)
        else:
            await self.simulation.happen(change)

    async def _crash(self, number: int) -> None:
        self.object_store.fails_after = number % 5
        with suppress(OSError):
            await self._follower.catch_up()
        self.object_store.fails_after = None
        if number % 2:
            self._follower = CatalogFollower(self.ports, self.object_store)

    async def check(self) -> None:
        await self._follower.catch_up()
        assert self.object_store.objects == await fresh_export(self.ports)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(changes | st.sampled_from(FOLLOWER_STEPS), max_size=25))
def test_the_followed_catalog_equals_a_fresh_export_after_any_history(
    history: list[Change],
) -> None:
    async def run_history(ports: Ports) -> None:
        simulation = await Simulation(ports).open()
        catalog = FollowedCatalog(simulation, FlakyObjectStore())
        for number, change in enumerate((*INITIAL_CHANGES, *history)):
            await catalog.step(number, change)
        await catalog.check()
        await check_catalog_readers(simulation.ports, catalog.object_store.objects)

    asyncio.run(with_ports(run_history))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(changes, max_size=12))
def test_the_followed_catalog_equals_a_fresh_export_after_every_change(
    history: list[Change],
) -> None:
    async def run_history(ports: Ports) -> None:
        simulation = await Simulation(ports).open()
        catalog = FollowedCatalog(simulation, FlakyObjectStore())
        for change in INITIAL_CHANGES:
            await simulation.happen(change)
        for change in history:
            await simulation.happen(change)
            await catalog.check()

    asyncio.run(with_ports(run_history))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(changes, max_size=20), st.integers(1, 7))
def test_a_catalog_in_a_directory_equals_a_fresh_export(
    history: list[Change], interval: int
) -> None:
    async def run_history(ports: Ports, directory: File) -> None:
        simulation = await Simulation(ports).open()
        followed = DirectoryObjectStore(directory / "followed")
        follower = CatalogFollower(simulation.ports, followed)
        for number, change in enumerate((*INITIAL_CHANGES, *history)):
            await simulation.happen(change)
            if number % interval == 0:
                await follower.catch_up()
        await follower.catch_up()
        await export(simulation.ports, DirectoryObjectStore(directory / "fresh"))
        assert read_directory(directory / "followed") == read_directory(directory / "fresh")

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(with_ports(partial(run_history, directory=File(directory))))


def read_directory(directory: File) -> dict[str, bytes | None]:
    """Every file and every directory."""
    paths = directory.rglob("*")
    return {str(f.relative_to(directory)): f.read_bytes() if f.is_file() else None for f in paths}


@pytest.fixture
async def simulation(ports: Ports) -> Simulation:
    simulation = await Simulation(ports).open()
    for change in INITIAL_CHANGES:
        await simulation.happen(change)
    return simulation


async def write_note(ports: Ports, owner: Actor, text: bytes) -> None:
    stack = await stacks.agent_stack(ports, owner, "amy")
    await files.put(ports, stack, NOTE, text, owner, WriteOptions())


async def test_only_changed_tenants_are_exported_again(simulation: Simulation) -> None:
    object_store = DictionaryObjectStore()
    follower = CatalogFollower(simulation.ports, object_store)
    assert (await follower.catch_up()).tenants == 2
    assert (await follower.catch_up()).tenants == 0

    await write_note(simulation.ports, simulation.owners[1], b"x")
    assert (await follower.catch_up()).tenants == 1
    await simulation.happen(("rename_agent", 0, 0, 2))
    assert (await follower.catch_up()).tenants == 1
    await files.put(
        simulation.ports, (simulation.owners[0].scope,), NOTE, b"elsewhere", simulation.owners[0]
    )
    assert (await follower.catch_up()).tenants == 0
    assert object_store.objects == await fresh_export(simulation.ports)


async def test_objects_of_deleted_tenants_are_removed_at_the_start(simulation: Simulation) -> None:
    object_store = DictionaryObjectStore()
    await object_store.put(
        {CLAIM_KEY: b"{}", "tenants/gone/agents/a/workspace/b": b"x", "tenants/x": b"y"}
    )

    assert (await CatalogFollower(simulation.ports, object_store).catch_up()).deleted == 1

    assert "tenants/x" in object_store.objects
    assert {k: v for k, v in object_store.objects.items() if k.startswith("tenants/acme")} == {
        k: v for k, v in (await fresh_export(simulation.ports)).items() if k != CLAIM_KEY
    }


async def test_a_failed_object_is_retried_and_does_not_delay_other_tenants(
    simulation: Simulation, tmp_path: File
) -> None:
    ports, object_store = simulation.ports, DictionaryObjectStore()
    await write_note(ports, simulation.owners[0], b"damaged")
    overwrite_content(tmp_path, digest(b"damaged"), flip_bit(b"damaged"))
    follower = CatalogFollower(ports, object_store)

    with captured_logs() as logs:
        assert len((await follower.catch_up()).failures) == 1
        await write_note(ports, simulation.owners[1], b"sound")
        assert (await follower.catch_up()).tenants == 1
        assert (await follower.catch_up()).tenants == 0
        for seconds in BACKOFF_SECONDS:
            advance_clock(ports, seconds * 1000)
            assert len((await follower.catch_up()).failures) == 1

    assert object_store.objects["tenants/acme-2/agents/amy/workspace/notes/a.md"] == b"sound"
    assert [log["objects"] for log in logs] == [1] * (1 + len(BACKOFF_SECONDS))
    assert b"damaged" not in repr(logs).encode()
    overwrite_content(tmp_path, digest(b"damaged"), b"damaged")
    advance_clock(ports, BACKOFF_SECONDS[-1] * 1000)
    assert (await follower.catch_up()).failures == []
    assert object_store.objects == await fresh_export(ports)
    advance_clock(ports, BACKOFF_SECONDS[-1] * 1000)
    assert (await follower.catch_up()).tenants == 0


@asynccontextmanager
async def following(
    ports: Ports, object_store: DictionaryObjectStore, processes: int = 1
) -> AsyncIterator[asyncio.Event]:
    stop = asyncio.Event()
    with tempfile.TemporaryDirectory() as directory:
        locks = [FileLeaderLock(File(directory) / "lock", "catalog") for _ in range(processes + 1)]
        tasks = [
            asyncio.create_task(run_catalog(ports, object_store, lock, stop))
            for lock in locks[:processes]
        ]
        try:
            yield stop
        finally:
            stop.set()
            async with asyncio.timeout(30):
                await asyncio.gather(*tasks)
        assert await locks[-1].try_acquire()
        await locks[-1].release()


async def wait_until_caught_up(ports: Ports, object_store: DictionaryObjectStore) -> None:
    async with asyncio.timeout(30):
        while object_store.objects != await fresh_export(ports):
            await ports.events.wait_for_new(0.01)


async def test_a_server_keeps_the_catalog_up_to_date(simulation: Simulation) -> None:
    object_store = DictionaryObjectStore()
    async with following(simulation.ports, object_store):
        await wait_until_caught_up(simulation.ports, object_store)
        await write_note(simulation.ports, simulation.owners[0], b"live")
        await wait_until_caught_up(simulation.ports, object_store)
        assert object_store.objects["tenants/acme/agents/amy/workspace/notes/a.md"] == b"live"
        await simulation.happen(("rename_template", 0, 0, 2))
        await wait_until_caught_up(simulation.ports, object_store)
        await simulation.happen(("fire", 1, 0, 0))
        await wait_until_caught_up(simulation.ports, object_store)


async def test_of_many_processes_one_writes_the_catalog(simulation: Simulation) -> None:
    object_store = DictionaryObjectStore()
    async with following(simulation.ports, object_store, processes=3):
        await wait_until_caught_up(simulation.ports, object_store)
        await write_note(simulation.ports, simulation.owners[0], b"live")
        await wait_until_caught_up(simulation.ports, object_store)
    assert object_store.written == len(object_store.objects) + 1  # a manifest was written twice


async def test_a_failing_object_store_is_logged_and_retried(simulation: Simulation) -> None:
    object_store = FlakyObjectStore()
    object_store.fails_after = 3
    with captured_logs() as logs:
        async with following(simulation.ports, object_store):
            async with asyncio.timeout(30):
                while not logs:
                    await simulation.ports.events.wait_for_new(0.01)
            object_store.fails_after = None
            await wait_until_caught_up(simulation.ports, object_store)
    assert logs[0]["event"] == "catalog export failed"
    assert logs[0]["said"] == "the store is gone"


class HangingObjectStore(DictionaryObjectStore):
    """An object store that never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.called = asyncio.Event()

    async def put(self, contents: Mapping[str, bytes]) -> Mapping[str, str]:
        self.called.set()
        await asyncio.Event().wait()
        return {}


async def test_a_hanging_object_store_does_not_prevent_a_shutdown(simulation: Simulation) -> None:
    object_store = HangingObjectStore()
    async with following(simulation.ports, object_store), asyncio.timeout(30):
        await object_store.called.wait()
    assert object_store.objects == {}


async def test_a_foreign_catalog_is_not_changed(simulation: Simulation) -> None:
    object_store = DictionaryObjectStore()
    await object_store.put({"tenants/other/agents/a/workspace/b": b"theirs"})
    with captured_logs() as logs:
        async with following(simulation.ports, object_store), asyncio.timeout(30):
            while not logs:
                await simulation.ports.events.wait_for_new(0.01)
    assert "--adopt" in logs[0]["said"]
    assert CLAIM_KEY not in object_store.objects
    assert set(object_store.objects) == {"tenants/other/agents/a/workspace/b"}


async def test_on_postgresql_a_server_exports_the_writes_of_another(postgres_url: str) -> None:
    async with open_store(postgres_url) as mine, open_store(postgres_url) as theirs:
        simulation = await Simulation(ports_over(theirs)).open()
        for change in INITIAL_CHANGES:
            await simulation.happen(change)
        object_store, lock, stop = (
            DictionaryObjectStore(),
            PostgresLeaderLock(postgres_url, "catalog"),
            asyncio.Event(),
        )
        task = asyncio.create_task(run_catalog(ports_over(mine), object_store, lock, stop))
        await wait_until_caught_up(simulation.ports, object_store)
        await write_note(simulation.ports, simulation.owners[1], b"live")
        await wait_until_caught_up(simulation.ports, object_store)
        await simulation.happen(("rename_agent", 0, 0, 2))
        await wait_until_caught_up(simulation.ports, object_store)
        stop.set()
        await task
