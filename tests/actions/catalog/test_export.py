"""Exporting the catalog: all of it, nothing twice, nothing of others, and what fails by name."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path as File
from typing import Any

import pytest
from tests.support.contract_stores import flip_bit
from tests.support.object_store import DictionaryObjectStore
from tests.support.stores import overwrite_content
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.catalog import export as catalog_export
from carrel.actions.catalog.export import CLAIM_KEY, export
from carrel.actions.catalog.writer import ExportResult
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.overlay import pins, stacks
from carrel.adapters.filesystem.object_directory import DirectoryObjectStore
from carrel.core.access import Actor
from carrel.core.errors import Conflict, NotFound
from carrel.core.identifiers import Path, Stack, digest
from carrel.core.store.tree import Applied, Commit, Entry, Write
from carrel.defaults import VERSION
from carrel.ports import ObjectStore, Ports

pytestmark = pytest.mark.anyio

AGENTS = "tenants/acme/agents"
RULES = Path("GUARDRAILS.md")


class Office:
    """A tenant with a template and two agents, one of which has none."""

    def __init__(self, ports: Ports, owner: Actor) -> None:
        self.ports, self.owner = ports, owner

    async def open(self) -> Office:
        await templates.create(self.ports, self.owner, "sales", "Sales")
        await self.write(await self.defaults, "GUARDRAILS.md", b"be good")
        await self.write(await self.defaults, "TONE.md", b"calm")
        await self.write(await self.sales, "SOUL.md", b"brisk")
        await agents.create(self.ports, self.owner, NewAgent("marco", "Marco", "sales"))
        await agents.create(self.ports, self.owner, NewAgent("loner", "Loner"))
        return self

    @property
    async def defaults(self) -> Stack:
        return await stacks.defaults_stack(self.ports, self.owner)

    @property
    async def sales(self) -> Stack:
        return await stacks.template_stack(self.ports, self.owner, "sales")

    async def own(self, name: str = "marco") -> Stack:
        return await stacks.agent_stack(self.ports, self.owner, name)

    async def write(self, stack: Stack, path: str, text: bytes) -> None:
        intent = WriteOptions(accept_template_update=True)
        await files.put(self.ports, stack, Path(path), text, self.owner, intent)

    async def insist(self, stack: Stack, path: str, text: bytes) -> None:
        """Where no room was asked for, as it was not always."""
        [blob] = await self.ports.blobs.put([text])
        write = Write(stack[0], Path(path), Entry(blob))
        [outcome] = await self.ports.trees.commit([Commit((write,), "ada", "why", 0)])
        assert isinstance(outcome, Applied)


@pytest.fixture
async def office(ports: Ports) -> Office:
    _, owner = await create_tenant(ports)
    return await Office(ports, owner).open()


def version(path: str, content: bytes, template: str = "sales") -> str:
    return f"{AGENTS}/_catalog/{template}/workspace-versions/{path}@{digest(content)}"


async def test_the_catalog_holds_what_every_layer_says_where_the_layout_has_it(
    office: Office,
) -> None:
    object_store = DictionaryObjectStore()
    await office.write(await office.own(), "notes/a.md", b"mine")
    await office.write(await office.own(), "GUARDRAILS.md", b"be yourself")

    done = await export(office.ports, object_store)

    shown = object_store.objects
    assert shown[f"{AGENTS}/marco/workspace/notes/a.md"] == b"mine"
    assert shown[f"{AGENTS}/marco/workspace/GUARDRAILS.md"] == b"be yourself"
    assert shown[f"{AGENTS}/_catalog/sales/workspace/SOUL.md"] == b"brisk"
    assert shown[f"{AGENTS}/_catalog/defaults/workspace/TONE.md"] == b"calm"
    assert shown[version("GUARDRAILS.md", b"be good")] == b"be good"
    assert shown[version("GUARDRAILS.md", b"be good", "defaults")] == b"be good"
    assert f"{AGENTS}/loner/workspace/GUARDRAILS.md" not in shown
    told = json.loads(shown[f"{AGENTS}/marco/workspace/manifest.json"])
    assert {file["path"] for file in told["files"]} == {"notes/a.md", "GUARDRAILS.md"}
    assert (done.tenants, done.written, done.failures) == (1, len(shown) - 1, [])


async def test_a_template_that_moves_on_leaves_its_agents_pins_to_be_read(office: Office) -> None:
    """In the original a template's edit made every agent's pin unreadable."""
    object_store = DictionaryObjectStore()
    await office.write(await office.sales, "GUARDRAILS.md", b"be better")

    await export(office.ports, object_store)

    assert object_store.objects[version("GUARDRAILS.md", b"be good")] == b"be good"
    assert object_store.objects[version("GUARDRAILS.md", b"be better")] == b"be better"
    await pins.accept(office.ports, office.owner, "marco", RULES, digest(b"be better"))
    await export(office.ports, object_store)
    assert version("GUARDRAILS.md", b"be good") not in object_store.objects


async def test_what_is_the_same_is_not_written_again_and_what_is_gone_is_removed(
    office: Office,
) -> None:
    object_store = DictionaryObjectStore()
    await office.write(await office.own(), "notes/a.md", b"mine")
    first = await export(office.ports, object_store)
    before, object_store.written = dict(object_store.objects), 0

    again = await export(office.ports, object_store)

    assert (again.written, again.deleted, object_store.written) == (0, 0, 0)
    assert again.unchanged == first.written
    assert object_store.objects == before
    await files.delete(office.ports, await office.own(), Path("notes/a.md"), office.owner)
    await agents.patch(office.ports, office.owner, "loner", {"slug": "hermit"})
    done = await export(office.ports, object_store)
    assert not [key for key in object_store.objects if "notes/a.md" in key or "/loner/" in key]
    assert f"{AGENTS}/hermit/workspace/manifest.json" in object_store.objects
    assert (done.written, done.deleted, object_store.written) == (2, 2, 2)


async def test_only_what_is_of_the_layout_is_removed_and_of_other_tenants_nothing(
    ports: Ports,
) -> None:
    object_store = DictionaryObjectStore()
    for slug in ("acme", "acme-2"):
        await create_tenant(ports, slug)
    await export(ports, object_store)
    theirs = {
        "README": b"",
        "tenants/acme/README": b"",
        "tenants/acme/skills/marco/workspace/a.md": b"",
        "tenants/acme/agents/marco/notes.txt": b"",
        "tenants/acme/agents/_catalog/index.json": b"",
    }
    stale = {
        "tenants/acme/agents/gone/workspace/a.md": b"",
        "tenants/acme-2/agents/gone/workspace/a.md": b"",
        "tenants/nobody/agents/gone/workspace/a.md": b"",
    }
    await object_store.put({**theirs, **stale})

    one = await export(ports, object_store, tenant_slug="acme")
    assert one.deleted == 1
    assert set(stale) & set(object_store.objects) == set(list(stale)[1:])
    assert (await export(ports, object_store)).deleted == 2
    assert not set(stale) & set(object_store.objects)
    assert set(theirs) <= set(object_store.objects)


async def test_a_catalog_of_others_is_left_alone_unless_it_is_adopted(office: Office) -> None:
    object_store = DictionaryObjectStore()
    await object_store.put({"tenants/other/agents/a/workspace/b": b"theirs", "tenants/x": b"y"})

    with pytest.raises(Conflict):
        await export(office.ports, object_store)
    assert set(object_store.objects) == {"tenants/other/agents/a/workspace/b", "tenants/x"}

    await export(office.ports, object_store, adopt=True)
    assert {CLAIM_KEY, "tenants/x"} <= set(object_store.objects)
    assert "tenants/other/agents/a/workspace/b" not in object_store.objects


async def test_a_tenant_that_is_not_there_is_missing_and_nothing_is_written(ports: Ports) -> None:
    object_store = DictionaryObjectStore()

    with pytest.raises(NotFound):
        await export(ports, object_store, tenant_slug="nobody")

    assert object_store.objects == {}


async def test_a_pin_whose_bytes_are_damaged_is_named_and_all_else_is_written(
    office: Office, tmp_path: File
) -> None:
    ports = office.ports
    await office.write(await office.own(), "notes/a.md", b"mine")
    overwrite_content(tmp_path, digest(b"be good"), flip_bit(b"be good"))
    object_store = DictionaryObjectStore()

    done = await export(ports, object_store)

    damaged = {
        version("GUARDRAILS.md", b"be good"),
        version("GUARDRAILS.md", b"be good", "defaults"),
        f"{AGENTS}/_catalog/defaults/workspace/GUARDRAILS.md",
    }
    assert {failure.key for failure in done.failures} == damaged
    assert all(digest(b"be good") in failure.reason for failure in done.failures)
    assert not damaged & set(object_store.objects)
    assert object_store.objects[f"{AGENTS}/marco/workspace/notes/a.md"] == b"mine"
    overwrite_content(tmp_path, digest(b"be good"), b"be good")
    healed = await export(ports, object_store)
    assert (healed.failures, healed.written) == ([], 3)


async def test_a_file_that_is_called_like_a_part_of_the_layout_is_named(office: Office) -> None:
    object_store = DictionaryObjectStore()
    await office.write(await office.own(), "manifest.json", b"mine")
    await office.write(await office.defaults, "_defaults_version", b"99")

    done = await export(office.ports, object_store)

    assert sorted(done.left_out) == [
        "acme/_catalog/defaults/_defaults_version",
        "acme/marco/manifest.json",
    ]
    assert done.failures == []
    marker = object_store.objects[f"{AGENTS}/_catalog/defaults/workspace/_defaults_version"]
    assert marker == str(VERSION).encode()
    told = json.loads(object_store.objects[f"{AGENTS}/marco/workspace/manifest.json"])
    assert told["version"] == 1


async def test_in_a_directory_a_file_bars_those_beneath_it_whichever_came_first(
    office: Office, tmp_path: File
) -> None:
    kept, fresh = DirectoryObjectStore(tmp_path / "kept"), DirectoryObjectStore(tmp_path / "fresh")
    await office.write(await office.own(), "memory/a/b.md", b"deep")
    await export(office.ports, kept)
    await office.insist(await office.own(), "memory", b"flat")

    for object_store in (kept, fresh):
        done = await export(office.ports, object_store)
        key = f"{AGENTS}/marco/workspace/memory"
        assert [failure.key for failure in done.failures] == [f"{key}/a/b.md"]
        assert await object_store.get(key) == b"flat"
    assert await _all(kept) == await _all(fresh)
    await files.delete(office.ports, await office.own(), Path("memory"), office.owner)
    assert (await export(office.ports, kept)).failures == []
    assert await kept.get(f"{AGENTS}/marco/workspace/memory/a/b.md") == b"deep"


async def test_a_name_that_is_too_long_for_a_directory_is_named_and_all_else_is_written(
    office: Office, tmp_path: File
) -> None:
    object_store = DirectoryObjectStore(tmp_path)
    await office.write(await office.own(), "x" * 255, b"fits")
    await office.write(await office.sales, "CAPABILITIES.md", b"able")

    assert (await export(office.ports, object_store)).failures == []

    plan: dict[str, Any] = {f"{AGENTS}/marco/workspace/{'x' * 256}": b"1", f"{AGENTS}/b": b"2"}
    refused = await object_store.put(plan)
    assert list(refused) == [f"{AGENTS}/marco/workspace/{'x' * 256}"]
    assert await object_store.get(f"{AGENTS}/b") == b"2"


async def _all(object_store: ObjectStore) -> dict[str, bytes | None]:
    return {key: await object_store.get(key) async for key, _ in object_store.list("")}


class Counted:
    """A port that counts how often each of its verbs is asked."""

    def __init__(self, port: Any) -> None:
        self._port = port
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        self.asked += 1
        return getattr(self._port, name)


async def test_many_agents_take_few_readings(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    office = await Office(ports, owner).open()
    for number in range(2 * catalog_export._BATCH_SIZE):
        await agents.create(ports, owner, NewAgent(f"a-{number}", "A", "sales"))
        await office.write(await office.own(f"a-{number}"), "notes/a.md", str(number).encode())
    trees, blobs = Counted(ports.trees), Counted(ports.blobs)
    told: list[tuple[str, int, int]] = []

    done = await export(
        dataclasses.replace(ports, trees=trees, blobs=blobs),
        DictionaryObjectStore(),
        on_progress=lambda *progress: told.append(progress),
    )

    assert done.written > 4 * catalog_export._BATCH_SIZE
    assert trees.asked <= 4
    assert blobs.asked <= 8
    assert told[0] == ("exporting agents", 0, 2 * catalog_export._BATCH_SIZE + 2)
    assert told[-1][1] == told[-1][2]
    assert len(told) <= 5


async def test_a_manifest_is_written_after_what_it_tells_of(office: Office) -> None:
    object_store = DictionaryObjectStore()
    for number in range(5):
        await office.write(await office.own(), f"notes/{number}.md", b"mine")

    await export(office.ports, object_store)

    own = [key for key in object_store.objects if key.startswith(f"{AGENTS}/marco/workspace/")]
    assert len(own) == 6
    assert own[-1] == f"{AGENTS}/marco/workspace/manifest.json"


async def test_projecting_writes_nothing_to_the_store(office: Office) -> None:
    ports = office.ports
    before = (await ports.events.latest_cursor(), await ports.records.revision())

    assert (await export(ports, DictionaryObjectStore())) != ExportResult()

    assert (await ports.events.latest_cursor(), await ports.records.revision()) == before
