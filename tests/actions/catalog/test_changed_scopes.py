"""Of a catalog that is kept up to date, no more is gone through than what a change concerns."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
from tests.actions.catalog.test_follower import NOTE, fresh, note
from tests.support.object_store import DictionaryObjectStore
from tests.support.random_edits import INITIAL_CHANGES, RandomTenants

from carrel.actions.accounts import people, secrets
from carrel.actions.catalog.follower import CatalogFollower
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.overlay import stacks
from carrel.core.identifiers import Digest, Path, digest
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

Looks = list[str]


class Watched(DictionaryObjectStore):
    """A place that tells what of it was looked through."""

    def __init__(self) -> None:
        super().__init__()
        self.looks: Looks = []

    async def list(self, prefix: str) -> AsyncIterator[tuple[str, Digest | None]]:
        self.looks.append(prefix)
        async for found in super().list(prefix):
            yield found

    def looked(self) -> Looks:
        looks, self.looks = self.looks, []
        return sorted(looks)


@pytest.fixture
async def town(ports: Ports) -> RandomTenants:
    town = await RandomTenants(ports).open()
    for change in INITIAL_CHANGES:
        await town.happen(change)
    return town


async def test_only_the_files_of_what_changed_are_looked_through(town: RandomTenants) -> None:
    object_store, ports, owner = Watched(), town.ports, town.owners[1]
    follower = CatalogFollower(ports, object_store)
    await follower.catch_up()
    object_store.looked()
    amy = await stacks.agent_stack(ports, owner, "amy")
    layers = {
        "amy/workspace/": amy[:1],
        "_catalog/sales/workspace/": await stacks.template_stack(ports, owner, "sales"),
        "_catalog/defaults/workspace/": await stacks.defaults_stack(ports, owner),
    }
    for prefix, stack in layers.items():
        await files.put(ports, stack, NOTE, prefix.encode(), owner, WriteOptions())
        assert (await follower.catch_up()).written > 0
        assert object_store.looked() == [f"tenants/acme-2/agents/{prefix}"]
        assert object_store.objects == await fresh(ports)
    for stack in layers.values():
        await files.delete(ports, stack, NOTE, owner, WriteOptions())
    assert (await follower.catch_up()).deleted == 3
    assert object_store.looked() == sorted(f"tenants/acme-2/agents/{prefix}" for prefix in layers)

    guard = layers["_catalog/sales/workspace/"]
    await files.put(ports, guard, Path("GUARDRAILS.md"), b"newer", owner, WriteOptions())
    await follower.catch_up()
    assert object_store.looked() == ["tenants/acme-2/agents/"]
    assert object_store.objects == await fresh(ports)


async def test_many_changes_are_done_as_one(
    town: RandomTenants, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.actions.catalog.follower._MAX_CHANGED_SCOPES", 1)
    object_store, ports, owner = Watched(), town.ports, town.owners[1]
    follower = CatalogFollower(ports, object_store)
    await follower.catch_up()
    object_store.looked()
    await note(ports, owner, b"x")
    await files.put(
        ports, await stacks.defaults_stack(ports, owner), NOTE, b"y", owner, WriteOptions()
    )
    await follower.catch_up()
    assert object_store.looked() == ["tenants/acme-2/agents/"]
    assert object_store.objects == await fresh(ports)


async def test_a_template_s_managed_file_is_at_once_that_of_all_who_follow(
    town: RandomTenants,
) -> None:
    object_store, ports, owner = Watched(), town.ports, town.owners[1]
    follower = CatalogFollower(ports, object_store)
    await follower.catch_up()
    sales = await stacks.template_stack(ports, owner, "sales")
    key = "tenants/acme-2/agents/amy/workspace/USER.md"
    assert key in object_store.objects
    text = b"# Your human, {{HUMAN_NAME}}, of {{TENANT_NAME}}\n"
    await files.put(ports, sales, Path("USER.md"), text, owner, WriteOptions())
    await follower.catch_up()

    amy = await stacks.agent_stack(ports, owner, "amy")
    shown = await files.read_content(ports, await files.get_file(ports, amy, Path("USER.md")))
    assert object_store.objects[key] == shown != text
    manifest = json.loads(object_store.objects["tenants/acme-2/agents/amy/workspace/manifest.json"])
    [row] = [row for row in manifest["files"] if row["path"] == "USER.md"]
    assert (row["etag"], row["size"]) == (digest(shown), len(shown))
    assert object_store.objects == await fresh(ports)


async def test_a_secret_in_a_profile_is_redacted_in_a_managed_file_that_is_filled_in(
    town: RandomTenants,
) -> None:
    object_store, ports, owner = Watched(), town.ports, town.owners[1]
    await secrets.put(ports, owner, "title", "title-of-the-human")
    await people.patch(ports, owner, town.humans[1].id, {"title": "title-of-the-human"})
    text = b"{{HUMAN_TITLE}} of {{HUMAN_NAME}}"
    sales = await stacks.template_stack(ports, owner, "sales")
    await files.put(ports, sales, Path("USER.md"), text, owner, WriteOptions())
    await CatalogFollower(ports, object_store).catch_up()
    told = object_store.objects["tenants/acme-2/agents/amy/workspace/USER.md"]
    assert b"title-of-the-human" not in told
    assert b"[REDACTED:title]" in told
