"""An agent with git history enabled, and readers of its repository."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path as File
from typing import Any

from dulwich.objects import Commit
from dulwich.repo import Repo
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.git import history as git_history
from carrel.actions.git.projection import ProjectionResult
from carrel.actions.overlay import stacks
from carrel.adapters.git import GitDirectory
from carrel.core.access import Actor
from carrel.core.identifiers import Path, Scope
from carrel.core.store.commit import Applied, Write
from carrel.core.store.commit import Commit as StoreCommit
from carrel.core.store.entry import Entry
from carrel.ports import Ports

ENABLED = {"workspaceGit": {"enabled": True}}
SOUL, MEMORY = Path("SOUL.md"), Path("MEMORY.md")


class GitAgent:
    """A tenant with one agent that keeps its history in git."""

    def __init__(self, ports: Ports, owner: Actor, scope: Scope) -> None:
        self.ports, self.owner, self.scope = ports, owner, scope

    @classmethod
    async def of(cls, ports: Ports, slug: str = "acme") -> GitAgent:
        _, owner = await create_tenant(ports, slug)
        agent = await agents.create(ports, owner, NewAgent("marco", "Marco", config=ENABLED))
        return cls(ports, owner, (await stacks.agent_stack(ports, owner, agent.id))[0])

    @property
    def repository(self) -> File:
        assert isinstance(self.ports.repositories, GitDirectory)
        return self.ports.repositories.repository_path(self.scope)

    async def put(self, path: Path | str, text: str | bytes, **options: Any) -> None:
        stack = await stacks.agent_stack(self.ports, self.owner, "marco")
        at = Path(path) if isinstance(path, str) else path
        content = text.encode() if isinstance(text, str) else text
        await files.put(self.ports, stack, at, content, self.owner, WriteOptions(**options))

    async def delete(self, path: Path) -> None:
        stack = await stacks.agent_stack(self.ports, self.owner, "marco")
        await files.delete(self.ports, stack, path, self.owner)

    async def write(self, texts: Mapping[str, str | None], keep: int = 100) -> None:
        """Commit any files, also those that an agent may not write itself."""
        writes = [
            Write(self.scope, Path(path), None if text is None else await self._entry(text))
            for path, text in texts.items()
        ]
        now = self.ports.clock.now()
        [done] = await self.ports.trees.commit(
            [StoreCommit(tuple(writes), "per_1", "any", now, max_versions=keep)]
        )
        assert isinstance(done, Applied)

    async def _entry(self, text: str) -> Entry:
        [blob] = await self.ports.blobs.put([text.encode()])
        return Entry(blob)

    async def enable(self, enabled: bool) -> None:
        config = {"workspaceGit": {"enabled": enabled}}
        await agents.patch(self.ports, self.owner, "marco", {"config": config})

    async def refresh(self, **more: Any) -> ProjectionResult:
        return await git_history.refresh(self.ports, self.owner, "marco", **more)


def assert_sound(repository: File) -> None:
    """Check all objects with dulwich, and with git fsck if git is installed."""
    with Repo(str(repository)) as repo:
        for id in repo.object_store:
            repo.object_store[id].check()
        for commit in history(repository):
            assert all(parent in repo.object_store for parent in commit.parents)
    if git := shutil.which("git"):
        ask = [git, "-C", str(repository), "fsck", "--full", "--strict", "--no-dangling"]
        done = subprocess.run(ask, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr


def history(repository: File) -> list[Commit]:
    """All commits, oldest first."""
    with Repo(str(repository)) as repo:
        if not repo.refs.as_dict():
            return []
        commits = [entry.commit for entry in repo.get_walker(order="topo")]
    return commits[::-1]


def read_texts(repository: File, commit: Commit) -> dict[str, bytes]:
    with Repo(str(repository)) as repo:
        store = repo.object_store
        rows = list(store.iter_tree_contents(commit.tree))
        assert {row.mode for row in rows} <= {0o100644}
        return {row.path.decode(): store[row.sha].as_raw_string() for row in rows}


def refs(repository: File) -> dict[bytes, bytes]:
    with Repo(str(repository)) as repo:
        return {bytes(name): bytes(id) for name, id in repo.refs.as_dict().items()}


def all_bytes(repository: File) -> bytes:
    """All bytes of all objects."""
    with Repo(str(repository)) as repo:
        return b"\n".join(repo.object_store[id].as_raw_string() for id in repo.object_store)
