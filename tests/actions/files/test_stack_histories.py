"""Random histories of an agent's files: reviews, moves, classes, pruning and runs included."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random

import pytest
from tests.support.overlay_tenant import IDENTITY, RULES, OverlayTenant
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents, templates
from carrel.actions.files import files, history
from carrel.actions.files.file_commit import commit_files
from carrel.actions.files.files import WriteOptions
from carrel.actions.overlay import pin_reviews, stacks
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import ClassRuleModel, LimitsModel, PolicyModel
from carrel.actions.runs import runs, snapshots
from carrel.actions.runs.run_request import RunRequest
from carrel.core.errors import Conflict, Forbidden, NotFound, ValidationError, WorkspaceConflict
from carrel.core.identifiers import Digest, Path, ScopeKind, Stack, digest
from carrel.core.overlay.compose import File
from carrel.core.overlay.file_changes import TRANSFERS, ChangeKind, FileChange
from carrel.core.overlay.file_classes import FileClass
from carrel.core.runs import Run
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
LIVE, CHANGING = Path("live.md"), Path("changing.md")
PATHS = (LIVE, CHANGING, RULES, IDENTITY)
CONTENTS = (b"- **Name:** a", b"- **Name:** {{AGENT_NAME}}", b"c")
KINDS = (ChangeKind.PUT, ChangeKind.DELETE, ChangeKind.MOVE, ChangeKind.COPY)
STEPS = 40


@pytest.fixture
def ports(anywhere: Ports) -> Ports:
    return anywhere


Frozen = dict[Path, tuple[int, str, bytes]]


class StackHistory:
    """An agent whose layers change at random, checked after every change."""

    def __init__(self, tenant: OverlayTenant, random: Random, max_versions: int) -> None:
        self.tenant, self.ports, self.owner = tenant, tenant.ports, tenant.owner
        self.random, self.limits = random, LimitsModel(max_versions=max_versions)
        self.is_pruned = max_versions < STEPS
        self.written: dict[tuple[Path, int], bytes] = {}
        """Contents of the agent's own versions."""
        self.frozen: list[tuple[Run, Frozen]] = []

    async def open(self) -> StackHistory:
        await templates.create(self.ports, self.owner, "care", "Care")
        care = await stacks.template_stack(self.ports, self.owner, "care")
        self.shared = (self.tenant.defaults, self.tenant.sales, care)
        await policies.put(self.ports, self.owner, PolicyModel(limits=self.limits))
        return self

    @property
    def path(self) -> Path:
        return self.random.choice(PATHS)

    async def stack(self) -> Stack:
        return await self.tenant.agent_stack()

    async def step(self) -> None:
        changes: list[Callable[[], Awaitable[None]]] = [
            *(self.edit_shared, self.edit_shared, self.edit_own, self.edit_own),
            *(self.delete_shared, self.delete_own, self.accept, self.roll_back),
            *(self.move, self.change_class, self.rename, self.start_run),
            *(self.commit_many, self.commit_many),
        ]
        before, revision = await self.served(), await self.revision()
        # A change that is not possible now leaves everything as it is.
        with suppress(NotFound, Forbidden, WorkspaceConflict, Conflict, ValidationError):
            await self.random.choice(changes)()
        await self.check_written(before, revision)
        await self.check_served()

    async def edit_shared(self) -> None:
        await self.tenant.write(
            self.random.choice(self.shared), self.path, self.random.choice(CONTENTS)
        )

    async def edit_own(self) -> None:
        path, text = self.path, self.random.choice(CONTENTS)
        await self.tenant.write(await self.stack(), path, text, accept_template_update=True)

    async def delete_shared(self) -> None:
        await files.delete(self.ports, self.random.choice(self.shared), self.path, self.owner)

    async def delete_own(self) -> None:
        options = WriteOptions(accept_template_update=True)
        await files.delete(self.ports, await self.stack(), self.path, self.owner, options)

    async def commit_many(self) -> None:
        """Move, copy, put and delete files of one layer in one commit."""
        stack = self.random.choice((await self.stack(), *self.shared))
        [tree] = await self.ports.trees.read(stack[:1], PATHS)
        own = [path for path in PATHS if tree.entry(path)]
        free = [path for path in PATHS if path not in own]
        self.random.shuffle(own)
        self.random.shuffle(free)
        changes = [
            FileChange(
                kind,
                free.pop() if kind in TRANSFERS else own.pop(),
                source=own.pop() if kind in TRANSFERS else None,
                content=self.random.choice(CONTENTS) if kind is ChangeKind.PUT else None,
                accept_template_update=True,
            )
            for kind in self.random.sample(KINDS, 2)
            if own and (free or kind not in TRANSFERS)
        ]
        if not changes:
            return
        await commit_files(self.ports, stack, self.owner, changes)

    async def accept(self) -> None:
        reviewed: Digest = digest(self.random.choice(CONTENTS))
        await pin_reviews.accept(self.ports, self.owner, "marco", RULES, reviewed)

    async def roll_back(self) -> None:
        await pin_reviews.roll_back(self.ports, self.owner, "marco", RULES)

    async def move(self) -> None:
        template = self.random.choice(("sales", "care", None))
        await agents.patch(self.ports, self.owner, "marco", {"template_id": template})

    async def change_class(self) -> None:
        file_class = self.random.choice(tuple(FileClass))
        rules = (ClassRuleModel(CHANGING.text, file_class),)
        policy = PolicyModel(limits=self.limits, classes=rules)
        before = (await self.served()).get(CHANGING)
        await policies.put(self.ports, self.owner, policy, "a test", confirm=True)
        after = (await self.served()).get(CHANGING)
        if file_class is FileClass.PINNED:
            assert (after and after.blob) == (before and before.blob)

    async def rename(self) -> None:
        name = self.random.choice(("Marco", "Polo"))
        await agents.patch(self.ports, self.owner, "marco", {"name": name})

    async def start_run(self) -> None:
        run = await runs.start(self.ports, self.owner, RunRequest(agent="marco"))
        self.frozen.append((run, await self.read_run(run)))

    async def read_run(self, run: Run) -> Frozen:
        manifest = await snapshots.load_manifest(self.ports, run)
        contents = await snapshots.read_contents(self.ports, run, manifest)
        return {
            path: (file.version, file.source.kind.value, contents.contents[path])
            for path, file in manifest.files.items()
        }

    async def revision(self) -> int:
        [revision, *_] = await self.ports.trees.revisions(await self.stack())
        return revision

    async def served(self) -> dict[Path, File]:
        return dict((await files.list_files(self.ports, await self.stack())).files)

    async def read(self, path: Path, number: int) -> tuple[File, bytes]:
        return await files.read_version(self.ports, await self.stack(), path, number)

    async def check_written(self, before: dict[Path, File], revision: int) -> None:
        """A write to the agent answers a version above the one it replaced."""
        for path, file in (await self.served()).items():
            if file.source.kind is not ScopeKind.AGENT or file.head.revision <= revision:
                continue
            replaced = before.get(path)
            assert file.version > (replaced.version if replaced else 0), path
            content = await files.read_content(self.ports, file, raw=True)
            assert self.written.setdefault((path, file.version), content) == content

    async def check_served(self) -> None:
        stack, served = await self.stack(), await self.served()
        for path in PATHS:
            file = served.get(path)
            if file is None:
                with pytest.raises(NotFound):
                    await files.get_file(self.ports, stack, path)
            else:
                assert file == await files.get_file(self.ports, stack, path)
                content = await files.read_content(self.ports, file, raw=True)
                assert await self.read(path, file.version) == (file, content)
                assert (await history.list_versions(self.ports, stack, path)).items[
                    0
                ].number == file.version
            await self.check_history(path)

    async def check_history(self, path: Path) -> None:
        """What history lists, `?version=` serves, under the same number."""
        try:
            rows = (await history.list_versions(self.ports, await self.stack(), path)).items
        except NotFound:
            return
        numbers = [row.number for row in rows]
        assert numbers == sorted(set(numbers), reverse=True)
        for row in rows:
            if row.row.head.entry is None:
                if row.layer.kind is not ScopeKind.AGENT:
                    continue  # another layer may have been served under this number
                with pytest.raises(NotFound):
                    await self.read(path, row.number)
                continue
            file, content = await self.read(path, row.number)
            assert (file.version, file.source) == (row.number, row.layer)
            assert digest(content) == row.row.head.entry.blob.digest

    async def check_end(self) -> None:
        for (path, number), content in self.written.items():
            try:
                assert (await self.read(path, number))[1] == content, (path, number)
            except NotFound:
                assert self.is_pruned, (path, number)
        for run, frozen in self.frozen:
            assert await self.read_run(run) == frozen


@pytest.mark.parametrize("max_versions", [100, 2])
@pytest.mark.parametrize("seed", range(5))
async def test_each_version_shown_is_served_under_its_number(
    ports: Ports, seed: int, max_versions: int
) -> None:
    _, owner = await create_tenant(ports)
    tenant = await OverlayTenant(ports, owner).open()
    stack_history = await StackHistory(tenant, Random(seed), max_versions).open()
    for _ in range(STEPS):
        await stack_history.step()
    await stack_history.check_end()
