"""Differences between a run's snapshot and the current workspace."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from carrel.actions.files import files, history
from carrel.actions.overlay.agent_layers import load_resolver
from carrel.actions.runs import snapshots
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.agent_resolution import AgentFileResolver
from carrel.core.overlay.compose import File, resolve
from carrel.core.runs import Run
from carrel.ports import Ports


@dataclass(frozen=True, slots=True)
class Difference:
    """Path with different content in the run's snapshot and in the workspace."""

    path: Path
    before: File | None
    after: File | None

    @property
    def kind(self) -> str:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


async def diff(ports: Ports, run: Run) -> tuple[Difference, ...]:
    """List paths whose content changed since the run started, by path.

    Raises NotFound if the run's snapshot was deleted.
    """
    frozen_files = (await snapshots.load_manifest(ports, run)).files
    stack, resolver = await _load_current(ports, run)
    current_files = snapshots.visible_files(
        run, await files.list_files(ports, stack, resolver=resolver)
    ).files
    paths = sorted({*frozen_files, *current_files})
    pairs = [Difference(path, frozen_files.get(path), current_files.get(path)) for path in paths]
    identical = await _find_identical(ports, pairs)
    return tuple(pair for pair in pairs if pair.path not in identical)


async def _find_identical(ports: Ports, pairs: Sequence[Difference]) -> Set[Path]:
    """Return the paths with equal rendered content.

    Files with equal source and different placeholder values are rendered to compare them.
    """
    same_source = [pair for pair in pairs if _content_key(pair.before) == _content_key(pair.after)]
    identical = {
        pair.path
        for pair in same_source
        if _placeholder_values(pair.before) == _placeholder_values(pair.after)
    }
    to_render = [pair for pair in same_source if pair.path not in identical]
    blobs = await ports.blobs.get([pair.before.blob for pair in to_render if pair.before])
    for pair in to_render:
        if pair.before and pair.after:
            stored = blobs[pair.before.blob.digest]
            if files.render_content(pair.before, stored) == files.render_content(
                pair.after, stored
            ):
                identical.add(pair.path)
    return identical


async def diff_file(ports: Ports, run: Run, path: Path) -> tuple[Difference | None, str]:
    """Return the difference at one path with a unified diff.

    Raises NotFound if neither the run nor the workspace has the path.
    """
    before = (await snapshots.find_files(ports, run, [path])).get(path)
    stack, resolver = await _load_current(ports, run)
    layers = await ports.trees.read(stack, (path,))
    after = resolve(path, layers) if resolver is None else resolver.resolve(path, layers)
    after = after if snapshots.can_see(run, path) else None
    await snapshots.verify_snapshot_kept(ports, run)
    if before is None and after is None:
        raise NotFound(f"neither run {run.id} nor its workspace has {path}")
    if await _find_identical(ports, [Difference(path, before, after)]):
        return None, ""
    blobs = await ports.blobs.get([file.blob for file in (before, after) if file])
    old, new = (
        files.render_content(file, blobs[file.blob.digest]) if file else None
        for file in (before, after)
    )
    return Difference(path, before, after), await history.diff_contents(old, new, path)


async def _load_current(ports: Ports, run: Run) -> tuple[Stack, AgentFileResolver | None]:
    """Return the current stack and file resolver; the run's for a deleted agent."""
    try:
        stack = await snapshots.current_stack(ports, run)
        return stack, await load_resolver(ports, stack)
    except NotFound:
        return tuple(
            layer.scope for layer in run.workspace_layers
        ), snapshots.render_context_of_run(run)


def _content_key(file: File | None) -> object:
    return file and (file.blob.digest, file.entry.type)


def _placeholder_values(file: File | None) -> object:
    return file and file.variables
