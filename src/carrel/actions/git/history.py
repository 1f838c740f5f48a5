"""An agent's history as a git repository: brought up to date, told, marked and served.

It holds the files that the agent itself has, as they are stored: what it inherits is in none of
its commits, and what the tenant's vault knows is redacted again on the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final

from carrel.actions.agents import agents
from carrel.actions.git import checkpoints
from carrel.actions.git.projection import ProjectionResult, project
from carrel.actions.overlay import stacks
from carrel.actions.progress import Watch, no_progress
from carrel.core.access import Actor, Permission
from carrel.core.errors import CapabilityNotProvided, NotFound
from carrel.core.files.diff import unified
from carrel.core.git.log import Checkpoint, GitCommit, parse_revision
from carrel.core.identifiers import Scope
from carrel.core.retention import keeps_all
from carrel.ports import Ports, Repositories, Repository

MOST_COMMITS: Final = 100
DIFF_CHARS: Final = 60_000
_CUT: Final = "\n[truncated]\n"


@dataclass(frozen=True, slots=True)
class GitLogEntry:
    """One commit of a history."""

    commit: GitCommit
    checkpoint: Checkpoint | None


@dataclass(frozen=True, slots=True)
class GitHistory:
    commits: tuple[GitLogEntry, ...]
    """Newest first."""
    diff: str | None
    """What all of them changed together, where that was asked for."""


@dataclass(frozen=True, slots=True)
class CheckpointResult:
    """What became of a wish for a checkpoint."""

    oid: str
    """Of the commit that it marks; empty where there is none."""
    subject: str
    skipped: bool
    reason: str = ""


async def refresh(
    ports: Ports, actor: Actor, name: str, *, anew: bool = False, watch: Watch = no_progress
) -> ProjectionResult:
    """Bring an agent's repository up to date, or make it again from nothing: to the same ids.

    Raises Missing where there is no such agent, or none that keeps its history in git.
    """
    scope, repositories = await _found(ports, actor, name)
    async with repositories.held(scope) as repository:
        return await project(ports, repository, scope, anew=anew, watch=watch)


async def history(
    ports: Ports, actor: Actor, name: str, *, limit: int = 10, include_diff: bool = False
) -> GitHistory:
    """The newest commits, 1 to 100 of them. Raises Missing."""
    scope, repositories = await _found(ports, actor, name)
    most = min(max(limit, 1), MOST_COMMITS)
    async with repositories.held(scope) as repository:
        projected = await project(ports, repository, scope)
        commits = await _walked(repository, projected.tip, most)
        diff = await _diff(repository, commits) if include_diff and commits else None
    marked = await checkpoints.marked(ports, scope)
    lines = tuple(GitLogEntry(one, marked.get(parse_revision(one.message) or 0)) for one in commits)
    return GitHistory(lines, diff)


async def checkpoint(
    ports: Ports, actor: Actor, name: str, note: str = "manual"
) -> CheckpointResult:
    """Mark where an agent's files are now, so that it can be found again. Raises Missing."""
    actor.require(Permission.WORKSPACE_WRITE)
    scope, repositories = await _found(ports, actor, name)
    if (await ports.trees.revisions([scope]))[0] == 0:
        return CheckpointResult("", "", skipped=True, reason="nothing has been written yet")
    found, new = await checkpoints.mark(ports, actor, scope, note)
    async with repositories.held(scope) as repository:
        await project(ports, repository, scope)
        tag = (await repository.list_refs()).get(f"refs/tags/{found.name}")
        oid = (await repository.find_tagged(tag) if tag else None) or ""
    reason = "" if new else "nothing has been written since the last checkpoint"
    return CheckpointResult(oid, found.subject, skipped=not new, reason=reason)


async def advertised(ports: Ports, actor: Actor, name: str) -> bytes:
    """What git is told before it fetches. Raises Missing."""
    await refresh(ports, actor, name)
    scope, repositories = await _found(ports, actor, name)
    return await repositories.advertised(scope)


async def packed(ports: Ports, actor: Actor, name: str, request: bytes) -> AsyncIterator[bytes]:
    """What git fetches, maybe having been told of it elsewhere. Raises Missing, Malformed."""
    await refresh(ports, actor, name)
    scope, repositories = await _found(ports, actor, name)
    return await repositories.packed(scope, request)


async def _found(ports: Ports, actor: Actor, name: str) -> tuple[Scope, Repositories]:
    actor.require(Permission.WORKSPACE_READ)
    scope = (await stacks.agent_stack(ports, actor, name))[0]
    if not keeps_all((await agents.get(ports, actor, scope.name)).body):
        raise NotFound(f"the agent {name} keeps no history in git")
    if ports.repositories is None:
        raise CapabilityNotProvided("no git is kept here")
    return scope, ports.repositories


async def _walked(repository: Repository, tip: str | None, most: int) -> list[GitCommit]:
    found: list[GitCommit] = []
    while tip is not None and len(found) < most:
        [commit] = await repository.find_commits([tip])
        assert commit
        found.append(commit)
        tip = next(iter(commit.parents), None)
    return found


async def _diff(repository: Repository, commits: list[GitCommit]) -> str:
    """From before the oldest to the newest, as much of it as anybody reads."""
    before: Mapping[str, str] = {}
    if parents := commits[-1].parents:
        [parent] = await repository.find_commits(parents)
        assert parent
        before = await repository.list_files(parent.tree)
    after = await repository.list_files(commits[0].tree)
    changed = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    text = ""
    for path in changed:
        old = await _content(repository, before.get(path))
        new = await _content(repository, after.get(path))
        text += await asyncio.to_thread(unified, old, new, path)
        if len(text) > DIFF_CHARS:
            return text[:DIFF_CHARS] + _CUT
    return text


async def _content(repository: Repository, id: str | None) -> bytes | None:
    return (await repository.find_blobs([id]))[0] if id else None
