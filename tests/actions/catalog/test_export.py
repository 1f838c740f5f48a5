"""Catalog export: complete, incremental, confined to its keys, failures named."""

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
from carrel.actions.overlay import pin_reviews, stacks
from carrel.adapters.filesystem.object_directory import DirectoryObjectStore
from carrel.core.access import Actor
from carrel.core.errors import Conflict, NotFound
from carrel.core.identifiers import Path, Stack, digest
from carrel.core.store.commit import Applied, Commit, Write
from carrel.core.store.entry import Entry
from carrel.defaults import VERSION
from carrel.ports import ObjectStore, Ports

pytestmark = pytest.mark.anyio

AGENTS = "tenants/acme/agents"
RULES = Path("GUARDRAILS.md")


class ExportTenant:
    """A tenant with a template and two agents, one of them without a template."""

    def __init__(self, ports: Ports, owner: Actor) -> None:
        self.ports, self.owner = ports, owner

    async def open(self) -> ExportTenant:
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
        options = WriteOptions(accept_template_update=True)
        await files.put(self.ports, stack, Path(path), text, self.owner, options)

    async def write_unchecked(self, stack: Stack, path: str, text: bytes) -> None:
        """Write without a path check, as older versions did."""
        [blob] = await self.ports.blobs.put([text])
        write = Write(stack[0], Path(path), Entry(blob))
        [outcome] = await self.ports.trees.commit([Commit((write,), "ada", "reason", 0)])
        assert isinstance(outcome, Applied)


@pytest.fixture
async def tenant(ports: Ports) -> ExportTenant:
    _, owner = await create_tenant(ports)
    return await ExportTenant(ports, owner).open()


def version(path: str, content: bytes, template: str = "sales") -> str:
    return f"{AGENTS}/_catalog/{template}/workspace-versions/{path}@{digest(content)}"


async def test_the_catalog_has_every_layer_where_the_layout_puts_it(
    tenant: ExportTenant,
) -> None:
    object_store = DictionaryObjectStore()
    await tenant.write(await tenant.own(), "notes/a.md", b"mine")
    await tenant.write(await tenant.own(), "GUARDRAILS.md", b"be yourself")

    done = await export(tenant.ports, object_store)

    exported = object_store.objects
    assert exported[f"{AGENTS}/marco/workspace/notes/a.md"] == b"mine"
    assert exported[f"{AGENTS}/marco/workspace/GUARDRAILS.md"] == b"be yourself"
    assert exported[f"{AGENTS}/_catalog/sales/workspace/SOUL.md"] == b"brisk"
    assert exported[f"{AGENTS}/_catalog/defaults/workspace/TONE.md"] == b"calm"
    assert exported[version("GUARDRAILS.md", b"be good")] == b"be good"
    assert exported[version("GUARDRAILS.md", b"be good", "defaults")] == b"be good"
    assert f"{AGENTS}/loner/workspace/GUARDRAILS.md" not in exported
    manifest = json.loads(exported[f"{AGENTS}/marco/workspace/manifest.json"])
    assert {file["path"] for file in manifest["files"]} == {"notes/a.md", "GUARDRAILS.md"}
    assert (done.tenants, done.written, done.failures) == (1, len(exported) - 1, [])


async def test_a_changed_template_leaves_its_agents_pins_readable(tenant: ExportTenant) -> None:
    """A pin stays exported under its digest after the template has a newer version."""
    object_store = DictionaryObjectStore()
    await tenant.write(await tenant.sales, "GUARDRAILS.md", b"be better")

    await export(tenant.ports, object_store)

    assert object_store.objects[version("GUARDRAILS.md", b"be good")] == b"be good"
    assert object_store.objects[version("GUARDRAILS.md", b"be better")] == b"be better"
    await pin_reviews.accept(tenant.ports, tenant.owner, "marco", RULES, digest(b"be better"))
    await export(tenant.ports, object_store)
    assert version("GUARDRAILS.md", b"be good") not in object_store.objects


async def test_unchanged_objects_are_not_rewritten_and_stale_ones_are_deleted(
    tenant: ExportTenant,
) -> None:
    object_store = DictionaryObjectStore()
    await tenant.write(await tenant.own(), "notes/a.md", b"mine")
    first = await export(tenant.ports, object_store)
    before, object_store.written = dict(object_store.objects), 0

    again = await export(tenant.ports, object_store)

    assert (again.written, again.deleted, object_store.written) == (0, 0, 0)
    assert again.unchanged == first.written
    assert object_store.objects == before
    await files.delete(tenant.ports, await tenant.own(), Path("notes/a.md"), tenant.owner)
    await agents.patch(tenant.ports, tenant.owner, "loner", {"slug": "hermit"})
    done = await export(tenant.ports, object_store)
    assert not [key for key in object_store.objects if "notes/a.md" in key or "/loner/" in key]
    assert f"{AGENTS}/hermit/workspace/manifest.json" in object_store.objects
    assert (done.written, done.deleted, object_store.written) == (2, 2, 2)


async def test_only_objects_of_the_layout_and_of_the_tenant_are_deleted(
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
        "tenants/removed/agents/gone/workspace/a.md": b"",
    }
    await object_store.put({**theirs, **stale})

    result = await export(ports, object_store, tenant_slug="acme")
    assert result.deleted == 1
    assert set(stale) & set(object_store.objects) == set(list(stale)[1:])
    assert (await export(ports, object_store)).deleted == 2
    assert not set(stale) & set(object_store.objects)
    assert set(theirs) <= set(object_store.objects)


async def test_a_foreign_catalog_is_refused_unless_it_is_adopted(tenant: ExportTenant) -> None:
    object_store = DictionaryObjectStore()
    await object_store.put({"tenants/other/agents/a/workspace/b": b"theirs", "tenants/x": b"y"})

    with pytest.raises(Conflict):
        await export(tenant.ports, object_store)
    assert set(object_store.objects) == {"tenants/other/agents/a/workspace/b", "tenants/x"}

    await export(tenant.ports, object_store, adopt=True)
    assert {CLAIM_KEY, "tenants/x"} <= set(object_store.objects)
    assert "tenants/other/agents/a/workspace/b" not in object_store.objects


async def test_an_unknown_tenant_is_not_found_and_nothing_is_written(ports: Ports) -> None:
    object_store = DictionaryObjectStore()

    with pytest.raises(NotFound):
        await export(ports, object_store, tenant_slug="missing")

    assert object_store.objects == {}


async def test_a_damaged_pin_is_reported_and_everything_else_is_written(
    tenant: ExportTenant, tmp_path: File
) -> None:
    ports = tenant.ports
    await tenant.write(await tenant.own(), "notes/a.md", b"mine")
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


async def test_a_file_with_a_reserved_name_is_reported(tenant: ExportTenant) -> None:
    object_store = DictionaryObjectStore()
    await tenant.write(await tenant.own(), "manifest.json", b"mine")
    await tenant.write(await tenant.defaults, "_defaults_version", b"99")

    done = await export(tenant.ports, object_store)

    assert sorted(done.left_out) == [
        "acme/_catalog/defaults/_defaults_version",
        "acme/marco/manifest.json",
    ]
    assert done.failures == []
    marker = object_store.objects[f"{AGENTS}/_catalog/defaults/workspace/_defaults_version"]
    assert marker == str(VERSION).encode()
    manifest = json.loads(object_store.objects[f"{AGENTS}/marco/workspace/manifest.json"])
    assert manifest["version"] == 1


async def test_in_a_directory_a_file_blocks_the_files_below_it_in_any_order(
    tenant: ExportTenant, tmp_path: File
) -> None:
    existing, fresh = (
        DirectoryObjectStore(tmp_path / "existing"),
        DirectoryObjectStore(tmp_path / "fresh"),
    )
    await tenant.write(await tenant.own(), "memory/a/b.md", b"deep")
    await export(tenant.ports, existing)
    await tenant.write_unchecked(await tenant.own(), "memory", b"flat")

    for object_store in (existing, fresh):
        done = await export(tenant.ports, object_store)
        key = f"{AGENTS}/marco/workspace/memory"
        assert [failure.key for failure in done.failures] == [f"{key}/a/b.md"]
        assert await object_store.get(key) == b"flat"
    assert await _read_all(existing) == await _read_all(fresh)
    await files.delete(tenant.ports, await tenant.own(), Path("memory"), tenant.owner)
    assert (await export(tenant.ports, existing)).failures == []
    assert await existing.get(f"{AGENTS}/marco/workspace/memory/a/b.md") == b"deep"


async def test_a_name_too_long_for_a_directory_is_reported_and_everything_else_is_written(
    tenant: ExportTenant, tmp_path: File
) -> None:
    object_store = DirectoryObjectStore(tmp_path)
    await tenant.write(await tenant.own(), "x" * 255, b"fits")
    await tenant.write(await tenant.sales, "CAPABILITIES.md", b"able")

    assert (await export(tenant.ports, object_store)).failures == []

    plan: dict[str, Any] = {f"{AGENTS}/marco/workspace/{'x' * 256}": b"1", f"{AGENTS}/b": b"2"}
    refused = await object_store.put(plan)
    assert list(refused) == [f"{AGENTS}/marco/workspace/{'x' * 256}"]
    assert await object_store.get(f"{AGENTS}/b") == b"2"


async def _read_all(object_store: ObjectStore) -> dict[str, bytes | None]:
    return {key: await object_store.get(key) async for key, _ in object_store.list("")}


class CountingPort:
    """A port that counts the uses of its methods."""

    def __init__(self, port: Any) -> None:
        self._port = port
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        self.calls += 1
        return getattr(self._port, name)


async def test_many_agents_are_exported_with_few_reads(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    tenant = await ExportTenant(ports, owner).open()
    for number in range(2 * catalog_export._BATCH_SIZE):
        await agents.create(ports, owner, NewAgent(f"a-{number}", "A", "sales"))
        await tenant.write(await tenant.own(f"a-{number}"), "notes/a.md", str(number).encode())
    trees, blobs = CountingPort(ports.trees), CountingPort(ports.blobs)
    progress_calls: list[tuple[str, int, int]] = []

    done = await export(
        dataclasses.replace(ports, trees=trees, blobs=blobs),
        DictionaryObjectStore(),
        on_progress=lambda *progress: progress_calls.append(progress),
    )

    assert done.written > 4 * catalog_export._BATCH_SIZE
    assert trees.calls <= 4
    assert blobs.calls <= 8
    assert progress_calls[0] == ("exporting agents", 0, 2 * catalog_export._BATCH_SIZE + 2)
    assert progress_calls[-1][1] == progress_calls[-1][2]
    assert len(progress_calls) <= 5


async def test_a_manifest_is_written_after_its_files(tenant: ExportTenant) -> None:
    object_store = DictionaryObjectStore()
    for number in range(5):
        await tenant.write(await tenant.own(), f"notes/{number}.md", b"mine")

    await export(tenant.ports, object_store)

    own = [key for key in object_store.objects if key.startswith(f"{AGENTS}/marco/workspace/")]
    assert len(own) == 6
    assert own[-1] == f"{AGENTS}/marco/workspace/manifest.json"


async def test_an_export_writes_nothing_to_the_store(tenant: ExportTenant) -> None:
    ports = tenant.ports
    before = (await ports.events.latest_cursor(), await ports.records.revision())

    assert (await export(ports, DictionaryObjectStore())) != ExportResult()

    assert (await ports.events.latest_cursor(), await ports.records.revision()) == before
