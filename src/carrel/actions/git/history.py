"""An agent's history as a git repository: update, log, checkpoint and fetch.

It holds the agent's own files as stored; inherited files are in none of its commits. Secrets of
the tenant's vault are redacted again on the way.
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
from carrel.actions.progress import ProgressCallback, no_progress
from carrel.core.access import Actor, Permission
from carrel.core.agents.agent import agent_config
from carrel.core.agents.config import AgentConfig
from carrel.core.errors import CapabilityNotProvided, NotFound
from carrel.core.files.diff import unified_diff
from carrel.core.git.log import Checkpoint, GitCommit, parse_revision
from carrel.core.identifiers import Scope
from carrel.ports import Ports, Repositories, Repository

MAX_COMMITS: Final = 100
MAX_DIFF_CHARS: Final = 60_000
_TRUNCATED: Final = "\n[truncated]\n"


@dataclass(frozen=True, slots=True)
class GitLogEntry:
    """Commit of a history, with its checkpoint if any."""

    commit: GitCommit
    checkpoint: Checkpoint | None


@dataclass(frozen=True, slots=True)
class GitHistory:
    commits: tuple[GitLogEntry, ...]
    """Newest first."""
    diff: str | None
    """Combined diff of all listed commits, if requested."""


@dataclass(frozen=True, slots=True)
class CheckpointResult:
    """Result of a checkpoint request."""

    oid: str
    """Id of the commit it tags; empty if there is none."""
    subject: str
    skipped: bool
    reason: str = ""


async def refresh(
    ports: Ports,
    actor: Actor,
    name: str,
    *,
    rebuild: bool = False,
    on_progress: ProgressCallback = no_progress,
) -> ProjectionResult:
    """Update an agent's repository, or rebuild it with the same ids.

    Raises NotFound for an unknown agent, or one without git history.
    """
    scope, repositories = await _resolve_repository(ports, actor, name)
    async with repositories.lock(scope) as repository:
        return await project(ports, repository, scope, rebuild=rebuild, on_progress=on_progress)


async def load_history(
    ports: Ports, actor: Actor, name: str, *, limit: int = 10, include_diff: bool = False
) -> GitHistory:
    """Load the newest commits, 1 to 100. Raises NotFound."""
    scope, repositories = await _resolve_repository(ports, actor, name)
    max_commits = min(max(limit, 1), MAX_COMMITS)
    async with repositories.lock(scope) as repository:
        projected = await project(ports, repository, scope)
        commits = await _load_commits(repository, projected.tip, max_commits)
        diff = await _diff(repository, commits) if include_diff and commits else None
    checkpoints_by_revision = await checkpoints.load_checkpoints(ports, scope)
    entries = tuple(
        GitLogEntry(
            git_commit, checkpoints_by_revision.get(parse_revision(git_commit.message) or 0)
        )
        for git_commit in commits
    )
    return GitHistory(entries, diff)


async def checkpoint(
    ports: Ports, actor: Actor, name: str, note: str = "manual"
) -> CheckpointResult:
    """Tag the current revision of an agent's files. Raises NotFound."""
    actor.require(Permission.WORKSPACE_WRITE)
    scope, repositories = await _resolve_repository(ports, actor, name)
    if (await ports.trees.revisions([scope]))[0] == 0:
        return CheckpointResult("", "", skipped=True, reason="nothing has been written yet")
    record, is_new = await checkpoints.create_checkpoint(ports, actor, scope, note)
    async with repositories.lock(scope) as repository:
        await project(ports, repository, scope)
        tag = (await repository.list_refs()).get(f"refs/tags/{record.name}")
        oid = (await repository.find_tagged(tag) if tag else None) or ""
    reason = "" if is_new else "nothing has been written since the last checkpoint"
    return CheckpointResult(oid, record.subject, skipped=not is_new, reason=reason)


async def advertise_refs(ports: Ports, actor: Actor, name: str) -> bytes:
    """Return the ref advertisement for git fetch. Raises NotFound."""
    await refresh(ports, actor, name)
    scope, repositories = await _resolve_repository(ports, actor, name)
    return await repositories.advertise_refs(scope)


async def create_pack(
    ports: Ports, actor: Actor, name: str, request: bytes
) -> AsyncIterator[bytes]:
    """Return the pack for a git fetch request. Raises NotFound, ValidationError."""
    await refresh(ports, actor, name)
    scope, repositories = await _resolve_repository(ports, actor, name)
    return await repositories.upload_pack(scope, request)


def has_git(ports: Ports, config: AgentConfig) -> bool:
    """Whether an agent has a git history on this server."""
    return config.workspace_git.enabled and ports.repositories is not None


async def _resolve_repository(ports: Ports, actor: Actor, name: str) -> tuple[Scope, Repositories]:
    actor.require(Permission.WORKSPACE_READ)
    scope = (await stacks.agent_stack(ports, actor, name))[0]
    agent = await agents.get(ports, actor, scope.name)
    if not agent_config(agent).workspace_git.enabled:
        raise NotFound(f"agent {name} has no git history")
    if ports.repositories is None:
        raise CapabilityNotProvided("git history is not enabled on this server")
    return scope, ports.repositories


async def _load_commits(
    repository: Repository, tip: str | None, max_commits: int
) -> list[GitCommit]:
    commits: list[GitCommit] = []
    while tip is not None and len(commits) < max_commits:
        [commit] = await repository.find_commits([tip])
        assert commit
        commits.append(commit)
        tip = next(iter(commit.parents), None)
    return commits


async def _diff(repository: Repository, commits: list[GitCommit]) -> str:
    """Diff from before the oldest commit to the newest, at most MAX_DIFF_CHARS."""
    before: Mapping[str, str] = {}
    if parents := commits[-1].parents:
        [parent] = await repository.find_commits(parents)
        assert parent
        before = await repository.list_files(parent.tree)
    after = await repository.list_files(commits[0].tree)
    changed = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    text = ""
    for path in changed:
        old = await _load_blob(repository, before.get(path))
        new = await _load_blob(repository, after.get(path))
        text += await asyncio.to_thread(unified_diff, old, new, path)
        if len(text) > MAX_DIFF_CHARS:
            return text[:MAX_DIFF_CHARS] + _TRUNCATED
    return text


async def _load_blob(repository: Repository, id: str | None) -> bytes | None:
    return (await repository.find_blobs([id]))[0] if id else None
