"""Random moves of files: the history of each has every version, at whatever paths it was."""

from __future__ import annotations

from random import Random

import pytest
from tests.support.tenants import create_tenant

from carrel.actions.files import history
from carrel.actions.files.file_commit import commit_files
from carrel.actions.overlay import stacks
from carrel.actions.overlay.stack_versions import StackVersion
from carrel.core.access import Actor
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.file_changes import TRANSFERS, ChangeKind, FileChange
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
PATHS = tuple(map(Path, ("notes/a.md", "notes/b.md", "notes/c.md")))
STEPS = 25
PAGE = 3

FileVersions = list[tuple[Path, int]]
"""Paths and versions of one file."""


@pytest.fixture
def ports(anywhere: Ports) -> Ports:
    return anywhere


class MovedFiles:
    """Files of a workspace that are written, moved, copied and deleted at random."""

    def __init__(self, ports: Ports, owner: Actor, stack: Stack, random: Random) -> None:
        self.ports, self.owner, self.stack, self.random = ports, owner, stack, random
        self.files: dict[Path, FileVersions] = {}

    async def step(self) -> None:
        path, source = self.random.choice(PATHS), self.random.choice(PATHS)
        kind = self.random.choice((ChangeKind.DELETE, ChangeKind.COPY, *[ChangeKind.MOVE] * 4))
        if path != source and source in self.files and kind in TRANSFERS:
            change = FileChange(kind, path, source)
        elif path in self.files and kind is ChangeKind.DELETE:
            change = FileChange(kind, path)
        else:
            change = FileChange(ChangeKind.PUT, path, content=self.random.randbytes(4))
        result = await commit_files(self.ports, self.stack, self.owner, [change])
        self.apply(change, result.changes[0].version)

    def apply(self, change: FileChange, version: int) -> None:
        """Note what a change made of the files."""
        before = self.files.pop(change.path, [])
        if change.kind is ChangeKind.MOVE and change.source is not None:
            before = self.files.pop(change.source)
        if change.kind is not ChangeKind.DELETE:
            self.files[change.path] = [*before, (change.path, version)]

    async def check(self) -> None:
        for path, versions in self.files.items():
            rows = await self.load_history(path)
            id = rows[0].file_id
            listed = [(row.row.head.path, row.number) for row in rows if row.file_id == id]
            assert sorted(listed) == sorted(versions), path
            assert len({(row.row.head.path, row.number) for row in rows}) == len(rows)

    async def load_history(self, path: Path) -> list[StackVersion]:
        rows: list[StackVersion] = []
        cursor: str | None = None
        while True:
            page = await history.follow_versions(
                self.ports, self.stack, path, cursor=cursor, limit=PAGE
            )
            rows += page.items
            if (cursor := page.next) is None:
                return rows


@pytest.mark.parametrize("seed", range(5))
async def test_a_moved_file_has_every_version_in_its_history(ports: Ports, seed: int) -> None:
    _, owner = await create_tenant(ports)
    stack = await stacks.defaults_stack(ports, owner)
    moved_files = MovedFiles(ports, owner, stack, Random(seed))
    for _ in range(STEPS):
        await moved_files.step()
        await moved_files.check()
