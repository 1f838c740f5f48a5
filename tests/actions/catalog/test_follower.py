"""A catalog that is kept up to date is, after any history, the one that a fresh export would be."""

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
from structlog.testing import capture_logs
from tests.support.contract_stores import flip_bit
from tests.support.object_store import DictionaryObjectStore
from tests.support.random_edits import INITIAL_CHANGES, Change, RandomTenants, changes
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
from carrel.core.catalog.layout import AgentFileKey, ReviewedFileKey, TemplateFileKey
from carrel.core.identifiers import Path, digest
from carrel.core.overlay.agent_files import pinned_entry
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.layers import build_stack
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

NOTE = Path("notes/a.md")
KEEPING: list[Change] = [(name, 0, 0, 0) for name in ("catch up", "crash", "restart")]


class Flaky(DictionaryObjectStore):
    """A place that fails after so much has been done, and then has done only a part of a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.fails_after: int | None = None

    async def put(self, contents: Mapping[str, bytes]) -> Mapping[str, str]:
        for key, content in contents.items():
            self._may_fail()
            await super().put({key: content})
        return {}

    async def delete(self, keys: Collection[str]) -> None:
        for key in keys:
            self._may_fail()
            await super().delete([key])

    def _may_fail(self) -> None:
        if self.fails_after is not None:
            if self.fails_after == 0:
                raise OSError("the place is gone")
            self.fails_after -= 1


async def with_ports(work: Callable[[Ports], Awaitable[None]]) -> None:
    """Run work over a store of its own, for tests that Hypothesis repeats."""
    with tempfile.TemporaryDirectory() as directory:
        async with open_ports(File(directory)) as ports:
            await work(ports)


async def fresh(ports: Ports) -> dict[str, bytes]:
    object_store = DictionaryObjectStore()
    await export(ports, object_store)
    return object_store.objects


async def read_by_others(ports: Ports, objects: Mapping[str, bytes]) -> None:
    """Whoever reads the catalog by its own rules finds what Carrel serves each agent."""
    for tenant in await ports.records.list("", RecordType.TENANT):
        for agent in await ports.records.list(tenant.id, RecordType.AGENT):
            workspace = await files.list_files(ports, build_stack(agent))
            raw = await files.read_contents(ports, workspace, raw=True)
            served = await files.read_contents(ports, workspace)
            for path in raw.contents:
                pinned = workspace.files[path].file_class is FileClass.PINNED
                reader = await _pinned(ports, agent, path) if pinned else await _live(ports, agent)
                own = AgentFileKey(tenant.body["slug"], agent.body["slug"], path).text
                managed = workspace.files[path].file_class is FileClass.MANAGED and own in objects
                content = served.contents[path] if managed else raw.contents[path]
                ways = [own, *(way.format(path=path) for way in reader)]
                assert next(objects[way] for way in ways if way in objects) == content


async def _slugs(ports: Ports, agent: Record) -> tuple[str, list[str]]:
    [tenant] = await ports.records.get(agent.tenant, RecordType.TENANT, [agent.tenant])
    assert tenant
    id = agent.body.get("templateId")
    [template] = await ports.records.get(agent.tenant, RecordType.TEMPLATE, [id]) if id else [None]
    return tenant.body["slug"], [*([template.body["slug"]] if template else []), "defaults"]


async def _live(ports: Ports, agent: Record) -> list[str]:
    tenant, beneath = await _slugs(ports, agent)
    return [TemplateFileKey(tenant, slug, Path("{path}")).text for slug in beneath]


async def _pinned(ports: Ports, agent: Record, path: Path) -> list[str]:
    tenant, beneath = await _slugs(ports, agent)
    entry = pinned_entry(path, await ports.trees.read(build_stack(agent), (path,)))
    base = entry.base if entry else None
    return [ReviewedFileKey(tenant, beneath[0], path, base.digest).text] if base else []


class Kept:
    """A town and its catalog, which somebody keeps up to date who may fail or die at any point."""

    def __init__(self, town: RandomTenants, object_store: Flaky) -> None:
        self.town, self.ports, self.object_store = town, town.ports, object_store
        self._follower = CatalogFollower(self.ports, object_store)

    async def live(self, number: int, change: Change) -> None:
        if change[0] == "catch up":
            await self.check()
        elif change[0] == "restart":
            self._follower = CatalogFollower(self.ports, self.object_store)
        elif change[0] == "crash":
            await self._crash(number)
        else:
            await self.town.happen(change)

    async def _crash(self, number: int) -> None:
        self.object_store.fails_after = number % 5
        with suppress(OSError):
            await self._follower.catch_up()
        self.object_store.fails_after = None
        if number % 2:
            self._follower = CatalogFollower(self.ports, self.object_store)

    async def check(self) -> None:
        await self._follower.catch_up()
        assert self.object_store.objects == await fresh(self.ports)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(changes | st.sampled_from(KEEPING), max_size=25))
def test_what_is_kept_is_what_a_fresh_export_would_be_after_any_history(
    history: list[Change],
) -> None:
    async def live(ports: Ports) -> None:
        town = await RandomTenants(ports).open()
        kept = Kept(town, Flaky())
        for number, change in enumerate((*INITIAL_CHANGES, *history)):
            await kept.live(number, change)
        await kept.check()
        await read_by_others(town.ports, kept.object_store.objects)

    asyncio.run(with_ports(live))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(changes, max_size=12))
def test_so_it_is_after_every_single_change_of_it(history: list[Change]) -> None:
    async def live(ports: Ports) -> None:
        town = await RandomTenants(ports).open()
        kept = Kept(town, Flaky())
        for change in INITIAL_CHANGES:
            await town.happen(change)
        for change in history:
            await town.happen(change)
            await kept.check()

    asyncio.run(with_ports(live))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(changes, max_size=20), st.integers(1, 7))
def test_so_it_is_in_a_directory_where_files_bar_those_beneath_them(
    history: list[Change], often: int
) -> None:
    async def live(ports: Ports, place: File) -> None:
        town = await RandomTenants(ports).open()
        kept = DirectoryObjectStore(place / "kept")
        follower = CatalogFollower(town.ports, kept)
        for number, change in enumerate((*INITIAL_CHANGES, *history)):
            await town.happen(change)
            if number % often == 0:
                await follower.catch_up()
        await follower.catch_up()
        await export(town.ports, DirectoryObjectStore(place / "fresh"))
        assert on_disk(place / "kept") == on_disk(place / "fresh")

    with tempfile.TemporaryDirectory() as place:
        asyncio.run(with_ports(partial(live, place=File(place))))


def on_disk(place: File) -> dict[str, bytes | None]:
    """Every file and every directory."""
    found = place.rglob("*")
    return {str(f.relative_to(place)): f.read_bytes() if f.is_file() else None for f in found}


@pytest.fixture
async def town(ports: Ports) -> RandomTenants:
    town = await RandomTenants(ports).open()
    for change in INITIAL_CHANGES:
        await town.happen(change)
    return town


async def note(ports: Ports, owner: Actor, text: bytes) -> None:
    stack = await stacks.agent_stack(ports, owner, "amy")
    await files.put(ports, stack, NOTE, text, owner, WriteOptions())


async def test_only_the_tenants_that_changed_are_done_again(town: RandomTenants) -> None:
    object_store = DictionaryObjectStore()
    follower = CatalogFollower(town.ports, object_store)
    assert (await follower.catch_up()).tenants == 2
    assert (await follower.catch_up()).tenants == 0

    await note(town.ports, town.owners[1], b"x")
    assert (await follower.catch_up()).tenants == 1
    await town.happen(("rename_agent", 0, 0, 2))
    assert (await follower.catch_up()).tenants == 1
    await files.put(town.ports, (town.owners[0].scope,), NOTE, b"elsewhere", town.owners[0])
    assert (await follower.catch_up()).tenants == 0
    assert object_store.objects == await fresh(town.ports)


async def test_what_is_left_of_tenants_that_are_gone_is_removed_at_the_start(
    town: RandomTenants,
) -> None:
    object_store = DictionaryObjectStore()
    await object_store.put(
        {CLAIM_KEY: b"{}", "tenants/gone/agents/a/workspace/b": b"x", "tenants/x": b"y"}
    )

    assert (await CatalogFollower(town.ports, object_store).catch_up()).deleted == 1

    assert "tenants/x" in object_store.objects
    assert {k: v for k, v in object_store.objects.items() if k.startswith("tenants/acme")} == {
        k: v for k, v in (await fresh(town.ports)).items() if k != CLAIM_KEY
    }


async def test_what_of_a_tenant_cannot_be_had_is_tried_again_and_holds_up_no_other(
    town: RandomTenants, tmp_path: File
) -> None:
    ports, object_store = town.ports, DictionaryObjectStore()
    await note(ports, town.owners[0], b"damaged")
    overwrite_content(tmp_path, digest(b"damaged"), flip_bit(b"damaged"))
    follower = CatalogFollower(ports, object_store)

    with capture_logs() as logs:
        assert len((await follower.catch_up()).failures) == 1
        await note(ports, town.owners[1], b"sound")
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
    assert object_store.objects == await fresh(ports)
    advance_clock(ports, BACKOFF_SECONDS[-1] * 1000)
    assert (await follower.catch_up()).tenants == 0


@asynccontextmanager
async def keeping(
    ports: Ports, object_store: DictionaryObjectStore, processes: int = 1
) -> AsyncIterator[asyncio.Event]:
    stop = asyncio.Event()
    with tempfile.TemporaryDirectory() as directory:
        locks = [FileLeaderLock(File(directory) / "lock", "catalog") for _ in range(processes + 1)]
        works = [
            asyncio.create_task(run_catalog(ports, object_store, lock, stop))
            for lock in locks[:processes]
        ]
        try:
            yield stop
        finally:
            stop.set()
            async with asyncio.timeout(30):
                await asyncio.gather(*works)
        assert await locks[-1].try_acquire()
        await locks[-1].release()


async def caught_up(ports: Ports, object_store: DictionaryObjectStore) -> None:
    async with asyncio.timeout(30):
        while object_store.objects != await fresh(ports):
            await ports.events.wait_for_new(0.01)


async def test_a_server_keeps_it_up_to_date_by_itself(town: RandomTenants) -> None:
    object_store = DictionaryObjectStore()
    async with keeping(town.ports, object_store):
        await caught_up(town.ports, object_store)
        await note(town.ports, town.owners[0], b"live")
        await caught_up(town.ports, object_store)
        assert object_store.objects["tenants/acme/agents/amy/workspace/notes/a.md"] == b"live"
        await town.happen(("rename_template", 0, 0, 2))
        await caught_up(town.ports, object_store)
        await town.happen(("fire", 1, 0, 0))
        await caught_up(town.ports, object_store)


async def test_of_many_processes_one_keeps_it(town: RandomTenants) -> None:
    object_store = DictionaryObjectStore()
    async with keeping(town.ports, object_store, processes=3):
        await caught_up(town.ports, object_store)
        await note(town.ports, town.owners[0], b"live")
        await caught_up(town.ports, object_store)
    assert object_store.written == len(object_store.objects) + 1  # a manifest was written twice


async def test_a_place_that_fails_is_told_tried_again_and_stops_nothing(
    town: RandomTenants,
) -> None:
    object_store = Flaky()
    object_store.fails_after = 3
    with capture_logs() as logs:
        async with keeping(town.ports, object_store):
            async with asyncio.timeout(30):
                while not logs:
                    await town.ports.events.wait_for_new(0.01)
            object_store.fails_after = None
            await caught_up(town.ports, object_store)
    assert logs[0]["event"] == "catalog export failed"
    assert logs[0]["said"] == "the place is gone"


class Slow(DictionaryObjectStore):
    """A place that never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def put(self, contents: Mapping[str, bytes]) -> Mapping[str, str]:
        self.asked.set()
        await asyncio.Event().wait()
        return {}


async def test_a_place_that_never_answers_keeps_no_server_from_stopping(
    town: RandomTenants,
) -> None:
    object_store = Slow()
    async with keeping(town.ports, object_store), asyncio.timeout(30):
        await object_store.asked.wait()
    assert object_store.objects == {}


async def test_a_catalog_of_others_is_not_touched(town: RandomTenants) -> None:
    object_store = DictionaryObjectStore()
    await object_store.put({"tenants/other/agents/a/workspace/b": b"theirs"})
    with capture_logs() as logs:
        async with keeping(town.ports, object_store), asyncio.timeout(30):
            while not logs:
                await town.ports.events.wait_for_new(0.01)
    assert "--adopt" in logs[0]["said"]
    assert CLAIM_KEY not in object_store.objects
    assert set(object_store.objects) == {"tenants/other/agents/a/workspace/b"}


async def test_on_postgresql_what_one_server_writes_another_keeps(postgres_url: str) -> None:
    async with open_store(postgres_url) as mine, open_store(postgres_url) as theirs:
        town = await RandomTenants(ports_over(theirs)).open()
        for change in INITIAL_CHANGES:
            await town.happen(change)
        object_store, turn, stop = (
            DictionaryObjectStore(),
            PostgresLeaderLock(postgres_url, "catalog"),
            asyncio.Event(),
        )
        kept = asyncio.create_task(run_catalog(ports_over(mine), object_store, turn, stop))
        await caught_up(town.ports, object_store)
        await note(town.ports, town.owners[1], b"live")
        await caught_up(town.ports, object_store)
        await town.happen(("rename_agent", 0, 0, 2))
        await caught_up(town.ports, object_store)
        stop.set()
        await kept
