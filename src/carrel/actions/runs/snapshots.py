"""Reads of a run's snapshot: its manifest, files and variables.

The trees are read at the revisions of `Run.snapshot`. A replay is a run with the snapshot and the
variables of another (`_plan_replay` in `runs.py`), so it reads the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.core.access import Actor
from carrel.core.errors import Conflict, NotFound
from carrel.core.identifiers import Path, ScopeKind, Stack
from carrel.core.overlay.agent_resolution import AgentFileResolver
from carrel.core.overlay.compose import File, Workspace, compose, resolve
from carrel.core.prompt.assembly import MEMORY
from carrel.core.runs import Run
from carrel.core.sessions.shared_session_visibility import is_visible
from carrel.core.store.tree import Tree
from carrel.ports import Ports

SNAPSHOT_DELETED: Final = "its snapshot was deleted, or its agent was"


async def current_stack(ports: Ports, run: Run) -> Stack:
    """Return the current stack of the run's workspace.

    Not checked against the caller, who must be allowed to see the run.
    """
    if run.scope.kind is ScopeKind.AGENT:
        return await stacks.agent_stack(ports, Actor(run.tenant, run.author), run.scope.name)
    return (run.scope,)


def require_snapshot(run: Run, refusal: type[NotFound] | type[Conflict] = NotFound) -> None:
    if not run.snapshot_kept:
        raise refusal(f"run {run.id} has no files: {SNAPSHOT_DELETED}")


async def verify_snapshot_kept(ports: Ports, run: Run) -> None:
    """Raise NotFound if the snapshot was deleted while it was read."""
    [reloaded] = await ports.runs.get(run.tenant, [run.id])
    if reloaded is None:
        raise NotFound(f"no such run: {run.id}")
    require_snapshot(reloaded)


async def load_manifest(ports: Ports, run: Run, prefix: str = "") -> Workspace:
    """List the files of a run's snapshot below a prefix. Raises NotFound if it was deleted."""
    require_snapshot(run)
    layers, resolver = (
        await ports.trees.read(run.workspace_layers, prefix=prefix),
        render_context_of_run(run),
    )
    workspace = compose(layers) if resolver is None else resolver.compose(layers)
    await verify_snapshot_kept(ports, run)
    return visible_files(run, workspace)


def visible_files(run: Run, workspace: Workspace) -> Workspace:
    """Return the files the run may see; a shared run sees only the allow-listed ones."""
    return Workspace({path: file for path, file in workspace.files.items() if can_see(run, path)})


def can_see(run: Run, path: Path) -> bool:
    """Return whether the run may see a path of its own workspace."""
    return is_visible(path, run.mode, is_shared_workspace=run.scope.is_shared_workspace)


async def read_file(ports: Ports, run: Run, path: Path) -> tuple[File, bytes]:
    """Read a file from a run's snapshot. Raises NotFound."""
    run_file = await find_file(ports, run, path)
    content = await files.read_content(ports, run_file)
    await verify_snapshot_kept(ports, run)
    return run_file, content


async def find_file(ports: Ports, run: Run, path: Path) -> File:
    """Find a file of a run's snapshot, without its content. Raises NotFound.

    Who then reads the content calls `verify_snapshot_kept` after that.
    """
    run_file = (await find_files(ports, run, [path])).get(path)
    if run_file is None:
        raise NotFound(f"run {run.id} has no file {path}")
    return run_file


async def read_contents(
    ports: Ports, run: Run, workspace: Workspace, *, raw: bool = False
) -> files.FileContents:
    """Read contents of a run's files in one batch; collects errors per path."""
    contents_by_path = await files.read_contents(ports, workspace, raw=raw)
    await verify_snapshot_kept(ports, run)
    return contents_by_path


async def find_files(ports: Ports, run: Run, paths: Collection[Path]) -> Mapping[Path, File]:
    """Resolve paths in a run's snapshot without content; omits missing ones."""
    require_snapshot(run)
    allowed_paths = [path for path in paths if can_see(run, path)]
    layers, resolver = (
        await ports.trees.read(run.workspace_layers, allowed_paths),
        render_context_of_run(run),
    )
    resolved = (
        (
            path,
            resolve(path, layers) if resolver is None else resolver.resolve(path, layers),
        )
        for path in allowed_paths
    )
    return {path: file for path, file in resolved if file}


async def load_workspace_memories(ports: Ports, run: Run) -> Mapping[str, File]:
    """Load MEMORY.md of each attached workspace from the snapshot, by workspace id."""
    is_allowed = is_visible(MEMORY, run.mode, is_shared_workspace=True)
    if not is_allowed or not run.attached_layers:
        return {}
    require_snapshot(run)
    return workspace_memories(await ports.trees.read(run.attached_layers, [MEMORY]))


def workspace_memories(trees: Sequence[Tree]) -> Mapping[str, File]:
    """Return MEMORY.md of each workspace tree, by workspace id."""
    resolved = ((tree.scope.name, resolve(MEMORY, (tree,))) for tree in trees)
    return {workspace: file for workspace, file in resolved if file}


def render_context_of_run(run: Run) -> AgentFileResolver | None:
    """Return the file resolver frozen with an agent's run; None for other workspaces."""
    return (
        AgentFileResolver.from_run_variables(run.variables)
        if run.scope.kind is ScopeKind.AGENT
        else None
    )
