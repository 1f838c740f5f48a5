"""An agent's history as a git repository: brought up to date, told, marked and served.

It holds the files that the agent itself has, as they are stored: what it inherits is in none of
its commits, and what the tenant's vault knows is redacted again on the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from carrel.actions.agents import agents
from carrel.actions.git import checkpoints
from carrel.actions.git.projection import Projected, listed, project
from carrel.actions.overlay import stacks
from carrel.actions.progress import Watch, quiet
from carrel.core.access import Actor, Permission
from carrel.core.errors import Missing, NotProvided
from carrel.core.files.diff import unified
from carrel.core.git.log import Checkpoint, revision_of
from carrel.core.git.objects import Commit, read_commit
from carrel.core.identifiers import Scope
from carrel.core.retention import keeps_all
from carrel.ports import Repositories, Repository, World

MOST_COMMITS: Final = 100
DIFF_CHARS: Final = 60_000
_CUT: Final = "\n[truncated]\n"


@dataclass(frozen=True, slots=True)
class Line:
    """One commit of a history."""

    commit: Commit
    checkpoint: Checkpoint | None


@dataclass(frozen=True, slots=True)
class History:
    commits: tuple[Line, ...]
    """Newest first."""
    diff: str | None
    """What all of them changed together, where that was asked for."""


@dataclass(frozen=True, slots=True)
class Marked:
    """What became of a wish for a checkpoint."""

    oid: str
    """Of the commit that it marks; empty where there is none."""
    subject: str
    skipped: bool
    reason: str = ""


async def refresh(
    world: World, actor: Actor, name: str, *, anew: bool = False, watch: Watch = quiet
) -> Projected:
    """Bring an agent's repository up to date, or make it again from nothing: to the same ids.

    Raises Missing where there is no such agent, or none that keeps its history in git.
    """
    scope, repositories = await _found(world, actor, name)
    async with repositories.held(scope) as repository:
        return await project(world, repository, scope, anew=anew, watch=watch)


async def history(
    world: World, actor: Actor, name: str, *, limit: int = 10, include_diff: bool = False
) -> History:
    """The newest commits, 1 to 100 of them. Raises Missing."""
    scope, repositories = await _found(world, actor, name)
    most = min(max(limit, 1), MOST_COMMITS)
    async with repositories.held(scope) as repository:
        projected = await project(world, repository, scope)
        commits = await _walked(repository, projected.tip, most)
        diff = await _diff(repository, commits) if include_diff and commits else None
    marked = await checkpoints.marked(world, scope)
    lines = tuple(Line(one, marked.get(revision_of(one.message) or 0)) for one in commits)
    return History(lines, diff)


async def checkpoint(world: World, actor: Actor, name: str, note: str = "manual") -> Marked:
    """Mark where an agent's files are now, so that it can be found again. Raises Missing."""
    actor.must(Permission.WORKSPACE_WRITE)
    scope, repositories = await _found(world, actor, name)
    if (await world.trees.revisions([scope]))[0] == 0:
        return Marked("", "", skipped=True, reason="nothing has been written yet")
    found, new = await checkpoints.mark(world, actor, scope, note)
    async with repositories.held(scope) as repository:
        await project(world, repository, scope)
        tag = (await repository.refs()).get(f"refs/tags/{found.name}")
        oid = await _tagged(repository, tag)
    reason = "" if new else "nothing has been written since the last checkpoint"
    return Marked(oid, found.subject, skipped=not new, reason=reason)


async def advertised(world: World, actor: Actor, name: str) -> bytes:
    """What git is told before it fetches. Raises Missing."""
    await refresh(world, actor, name)
    scope, repositories = await _found(world, actor, name)
    return await repositories.advertised(scope)


async def packed(world: World, actor: Actor, name: str, request: bytes) -> AsyncIterator[bytes]:
    """What git fetches, maybe having been told of it elsewhere. Raises Missing, Malformed."""
    await refresh(world, actor, name)
    scope, repositories = await _found(world, actor, name)
    return await repositories.packed(scope, request)


async def _found(world: World, actor: Actor, name: str) -> tuple[Scope, Repositories]:
    actor.must(Permission.WORKSPACE_READ)
    scope = (await stacks.agent(world, actor, name))[0]
    if not keeps_all((await agents.get(world, actor, scope.name)).body):
        raise Missing(f"the agent {name} keeps no history in git")
    if world.repositories is None:
        raise NotProvided("no git is kept here")
    return scope, world.repositories


async def _walked(repository: Repository, tip: str | None, most: int) -> list[Commit]:
    found: list[Commit] = []
    while tip is not None and len(found) < most:
        [one] = await repository.read([tip])
        assert one
        found.append(read_commit(one))
        tip = next(iter(found[-1].parents), None)
    return found


async def _tagged(repository: Repository, tag: str | None) -> str:
    [found] = await repository.read([tag]) if tag else [None]
    return found.body.split(b"\n", 1)[0].removeprefix(b"object ").decode() if found else ""


async def _diff(repository: Repository, commits: list[Commit]) -> str:
    """From before the oldest to the newest, as much of it as anybody reads."""
    before: dict[str, str] = {}
    if parents := commits[-1].parents:
        [parent] = await repository.read(parents)
        assert parent
        before = await listed(repository, read_commit(parent).tree)
    after = await listed(repository, commits[0].tree)
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
    [found] = await repository.read([id]) if id else [None]
    return found.body if found else None
