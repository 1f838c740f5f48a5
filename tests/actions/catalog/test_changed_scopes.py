"""The catalog follower lists only the prefixes that a change concerns."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from tests.actions.catalog.test_follower import NOTE, fresh_export, write_note
from tests.support.object_store import DictionaryObjectStore
from tests.support.random_edits import INITIAL_CHANGES, Simulation

from carrel.actions.accounts import people, secrets
from carrel.actions.catalog.follower import CatalogFollower
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.overlay import stacks
from carrel.core.identifiers import Digest, Path, digest
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

Prefixes = list[str]


class RecordingObjectStore(DictionaryObjectStore):
    """An object store that records the listed prefixes."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: Prefixes = []

    async def list(self, prefix: str) -> AsyncIterator[tuple[str, Digest | None]]:
        self.listed.append(prefix)
        async for item in super().list(prefix):
            yield item

    def take_listed(self) -> Prefixes:
        listed, self.listed = self.listed, []
        return sorted(listed)


@pytest.fixture
async def simulation(ports: Ports) -> Simulation:
    simulation = await Simulation(ports).open()
    for change in INITIAL_CHANGES:
        await simulation.happen(change)
    return simulation


async def test_only_the_prefixes_of_changed_scopes_are_listed(simulation: Simulation) -> None:
    object_store, ports, owner = RecordingObjectStore(), simulation.ports, simulation.owners[1]
    follower = CatalogFollower(ports, object_store)
    await follower.catch_up()
    object_store.take_listed()
    amy = await stacks.agent_stack(ports, owner, "amy")
    layers = {
        "amy/workspace/": amy[:1],
        "_catalog/sales/workspace/": await stacks.template_stack(ports, owner, "sales"),
        "_catalog/defaults/workspace/": await stacks.defaults_stack(ports, owner),
    }
    for prefix, stack in layers.items():
        await files.put(ports, stack, NOTE, prefix.encode(), owner, WriteOptions())
        assert (await follower.catch_up()).written > 0
        assert object_store.take_listed() == [f"tenants/acme-2/agents/{prefix}"]
        assert object_store.objects == await fresh_export(ports)
    for stack in layers.values():
        await files.delete(ports, stack, NOTE, owner, WriteOptions())
    assert (await follower.catch_up()).deleted == 3
    assert object_store.take_listed() == sorted(
        f"tenants/acme-2/agents/{prefix}" for prefix in layers
    )

    guard = layers["_catalog/sales/workspace/"]
    await files.put(ports, guard, Path("GUARDRAILS.md"), b"newer", owner, WriteOptions())
    await follower.catch_up()
    assert object_store.take_listed() == ["tenants/acme-2/agents/"]
    assert object_store.objects == await fresh_export(ports)


async def test_many_changed_scopes_are_exported_as_one_tenant(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.actions.catalog.follower._MAX_CHANGED_SCOPES", 1)
    object_store, ports, owner = RecordingObjectStore(), simulation.ports, simulation.owners[1]
    follower = CatalogFollower(ports, object_store)
    await follower.catch_up()
    object_store.take_listed()
    await write_note(ports, owner, b"x")
    await files.put(
        ports, await stacks.defaults_stack(ports, owner), NOTE, b"y", owner, WriteOptions()
    )
    await follower.catch_up()
    assert object_store.take_listed() == ["tenants/acme-2/agents/"]
    assert object_store.objects == await fresh_export(ports)


async def test_a_templates_managed_file_is_exported_for_all_its_followers(
    simulation: Simulation,
) -> None:
    object_store, ports, owner = RecordingObjectStore(), simulation.ports, simulation.owners[1]
    follower = CatalogFollower(ports, object_store)
    await follower.catch_up()
    sales = await stacks.template_stack(ports, owner, "sales")
    key = "tenants/acme-2/agents/amy/workspace/USER.md"
    assert key in object_store.objects
    text = b"# Your human, {{HUMAN_NAME}}, of {{TENANT_NAME}}\n"
    await files.put(ports, sales, Path("USER.md"), text, owner, WriteOptions())
    await follower.catch_up()

    amy = await stacks.agent_stack(ports, owner, "amy")
    served = await files.read_content(ports, await files.get_file(ports, amy, Path("USER.md")))
    assert object_store.objects[key] == served != text
    manifest = json.loads(object_store.objects["tenants/acme-2/agents/amy/workspace/manifest.json"])
    [row] = [row for row in manifest["files"] if row["path"] == "USER.md"]
    assert (row["etag"], row["size"]) == (digest(served), len(served))
    assert object_store.objects == await fresh_export(ports)


async def test_a_secret_in_a_profile_is_redacted_in_a_rendered_managed_file(
    simulation: Simulation,
) -> None:
    object_store, ports, owner = RecordingObjectStore(), simulation.ports, simulation.owners[1]
    await secrets.put(ports, owner, "title", "title-of-the-human")
    await people.patch(ports, owner, simulation.humans[1].id, {"title": "title-of-the-human"})
    text = b"{{HUMAN_TITLE}} of {{HUMAN_NAME}}"
    sales = await stacks.template_stack(ports, owner, "sales")
    await files.put(ports, sales, Path("USER.md"), text, owner, WriteOptions())
    await CatalogFollower(ports, object_store).catch_up()
    exported = object_store.objects["tenants/acme-2/agents/amy/workspace/USER.md"]
    assert b"title-of-the-human" not in exported
    amy = await stacks.agent_stack(ports, owner, "amy")
    served = await files.get_file(ports, amy, Path("USER.md"))
    assert exported == await files.read_content(ports, served)
    # the marker is a placeholder value, and escaped like any other
    assert exported.startswith(rb"\[REDACTED:title\] of ")
