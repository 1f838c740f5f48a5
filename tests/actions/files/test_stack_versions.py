"""Version numbers of a stack: each leads to what was served under it, and writes raise them."""

from __future__ import annotations

from random import Random

import pytest
from tests.support.overlay_tenant import IDENTITY, RULES, SOUL, OverlayTenant
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents
from carrel.actions.files import files, history
from carrel.actions.files.files import WriteOptions
from carrel.actions.overlay import pin_reviews
from carrel.actions.overlay.stack_versions import StackVersion
from carrel.actions.runs import runs, snapshots
from carrel.actions.runs.run_request import RunRequest
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path, Stack, digest
from carrel.core.overlay.compose import File
from carrel.core.overlay.write_condition import WriteCondition
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


@pytest.fixture
def ports(anywhere: Ports) -> Ports:
    return anywhere


@pytest.fixture
async def tenant(ports: Ports) -> OverlayTenant:
    _, owner = await create_tenant(ports)
    return await OverlayTenant(ports, owner).open()


class History:
    """A path of an agent's stack, with everything that was served under each version."""

    def __init__(self, tenant: OverlayTenant, stack: Stack, path: Path, random: Random) -> None:
        self.tenant, self.stack, self.path, self.random = tenant, stack, path, random
        self.contents: dict[int, bytes] = {}

    async def step(self, layers: tuple[Stack, ...]) -> None:
        """Change a random layer and note what is served then."""
        layer = self.random.choice((self.stack, self.stack, *layers))
        text = self.random.choice((b"a", b"b", b"c"))
        before = await self.served()
        if self.random.random() < 0.7:
            result = await files.put(self.tenant.ports, layer, self.path, text, self.tenant.owner)
            if layer == self.stack:
                self.check_written(before, result.file)
        else:
            await self.delete(layer)
        if file := await self.served():
            stored_file, content = await files.read_version(
                self.tenant.ports, self.stack, self.path, file.version
            )
            assert (stored_file, content) == (file, await self.content(file))
            self.contents[file.version] = content

    def check_written(self, before: File | None, written: File) -> None:
        if before is None or before.blob != written.blob or before.source != written.source:
            assert written.version > (before.version if before else 0)

    async def delete(self, layer: Stack) -> None:
        try:
            await files.delete(self.tenant.ports, layer, self.path, self.tenant.owner)
        except NotFound:
            return

    async def served(self) -> File | None:
        listed = (await files.list_files(self.tenant.ports, self.stack)).files.get(self.path)
        try:
            file = await files.get_file(self.tenant.ports, self.stack, self.path)
        except NotFound:
            file = None
        assert file == listed
        return file

    async def content(self, file: File) -> bytes:
        return await files.read_content(self.tenant.ports, file, raw=True)

    async def check_shown(self) -> None:
        for number, content in self.contents.items():
            _, stored = await files.read_version(self.tenant.ports, self.stack, self.path, number)
            assert stored == content, number


@pytest.mark.parametrize("seed", range(6))
async def test_random_histories_serve_each_version_as_it_was_shown(
    tenant: OverlayTenant, seed: int
) -> None:
    random, stack = Random(seed), await tenant.agent_stack()
    lower = History(tenant, stack, Path("lower.md"), random)
    both = History(tenant, stack, Path("both.md"), random)
    for _ in range(25):
        await lower.step((tenant.sales,))
        await both.step((tenant.sales, tenant.defaults))

    await lower.check_shown()
    assert len(lower.contents) > 5


async def test_an_override_follows_the_inherited_version(tenant: OverlayTenant) -> None:
    ports, stack = tenant.ports, await tenant.agent_stack()
    for text in (b"two", b"three", b"four", b"five {{AGENT_NAME}}"):
        await tenant.write(tenant.sales, SOUL, text)
    inherited = await files.get_file(ports, stack, SOUL)
    assert (inherited.version, inherited.source_label) == (5, "template")

    written = await files.put(ports, stack, SOUL, b"mine", tenant.owner)
    assert written.file.version == 6
    file, content = await files.read_version(ports, stack, SOUL, 5)
    assert (file.etag, content) == (inherited.etag, b"five {{AGENT_NAME}}")
    assert await history.diff(ports, stack, SOUL, None, None) == (
        "--- a/SOUL.md\n+++ b/SOUL.md\n@@ -1 +1 @@\n-five {{AGENT_NAME}}\n"
        "\\ No newline at end of file\n+mine\n\\ No newline at end of file\n"
    )
    rows = (await history.list_versions(ports, stack, SOUL)).items
    assert [(row.number, str(row.layer.kind)) for row in rows] == [
        (6, "agent"),
        *((number, "template") for number in (5, 4, 3, 2, 1)),
    ]
    restored = await files.restore(ports, stack, SOUL, 4, tenant.owner)
    assert (restored.file.version, restored.content) == (7, b"four")
    with pytest.raises(NotFound):
        await files.read_version(ports, stack, SOUL, 8)


async def test_a_put_of_the_inherited_content_answers_a_greater_version(
    tenant: OverlayTenant,
) -> None:
    ports, stack = tenant.ports, await tenant.agent_stack()
    override = await files.put(ports, stack, SOUL, b"mine", tenant.owner)
    condition = WriteCondition(frozenset({override.file.etag}))

    reverted = await files.put(
        ports, stack, SOUL, b"{{AGENT_NAME}} is brisk", tenant.owner, WriteOptions(condition)
    )
    assert (reverted.file.source_label, override.file.version) == ("template", 2)
    assert reverted.file.version > 2
    assert reverted.file == await files.get_file(ports, stack, SOUL)


async def test_history_pages_through_inherited_and_own_versions(tenant: OverlayTenant) -> None:
    ports, stack = tenant.ports, await tenant.agent_stack()
    for text in (b"two", b"three", b"four"):
        await tenant.write(tenant.sales, SOUL, text)
    await tenant.write(stack, SOUL, b"mine")
    await files.delete(ports, stack, SOUL, tenant.owner)
    for text in (b"five", b"six", b"seven"):
        await tenant.write(tenant.sales, SOUL, text)
    versions = (await history.list_versions(ports, stack, SOUL)).items

    page_items: list[StackVersion] = []
    cursor = None
    while True:
        page = await history.list_versions(ports, stack, SOUL, before=cursor, limit=1)
        page_items += page.items
        if page.next is None:
            break
        cursor = int(page.next)

    assert page_items == list(versions)
    numbers = [row.number for row in versions]
    assert {1, 2, 3, 4, 5, 6, 10, 11, 12, 13} <= set(numbers)
    assert numbers == sorted(set(numbers), reverse=True)
    assert [row.number for row in versions if row.row.head.entry is None] == [6]


async def test_an_unreviewed_version_of_a_pinned_file_is_not_served(
    tenant: OverlayTenant,
) -> None:
    ports, stack = tenant.ports, await tenant.agent_stack()
    pinned = await files.get_file(ports, stack, RULES)
    assert (await files.read_version(ports, stack, RULES, pinned.version))[0] == pinned
    for text in (b"be better", b"be best"):
        await tenant.write(tenant.defaults, RULES, text)

    for number in (2, 3):
        with pytest.raises(NotFound):
            await files.read_version(ports, stack, RULES, number)
    accepted = await pin_reviews.accept(ports, tenant.owner, "marco", RULES, digest(b"be best"))
    assert accepted.version == 2
    file, content = await files.read_version(ports, stack, RULES, 2)
    assert (file.source_label, content) == ("template-pinned", b"be best")


async def test_a_rename_answers_a_version_above_the_inherited_one(tenant: OverlayTenant) -> None:
    stack = await tenant.agent_stack()
    await tenant.write(tenant.defaults, IDENTITY, b"- **Name:** Marco\n")
    before = await files.get_file(tenant.ports, stack, IDENTITY)

    await agents.patch(tenant.ports, tenant.owner, "marco", {"name": "Polo"})
    renamed = await files.get_file(tenant.ports, stack, IDENTITY)
    assert (renamed.source_label, renamed.version) == ("agent-override", before.version + 1)


async def test_a_run_shows_the_versions_that_the_agent_had(tenant: OverlayTenant) -> None:
    ports, stack = tenant.ports, await tenant.agent_stack()
    await tenant.write(stack, SOUL, b"mine")
    await files.delete(ports, stack, SOUL, tenant.owner)
    served = (await files.list_files(ports, stack)).files
    run = await runs.start(ports, tenant.owner, RunRequest(agent="marco"))
    await tenant.write(tenant.sales, SOUL, b"later")
    await tenant.write(stack, SOUL, b"mine again")

    frozen = (await snapshots.load_manifest(ports, run)).files
    assert {path: file.version for path, file in frozen.items()} == {
        path: file.version for path, file in served.items()
    }
    assert (await snapshots.read_file(ports, run, SOUL))[0].version == served[SOUL].version
