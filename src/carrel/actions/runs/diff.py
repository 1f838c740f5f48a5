"""What has changed in a workspace since a run began."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from carrel.actions.files import files, history
from carrel.actions.overlay.agent_layers import render_context_of
from carrel.actions.runs import runs
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.agent_files import RenderContext
from carrel.core.overlay.compose import File, resolve
from carrel.core.prompt.assembly import SHARED
from carrel.core.runs import Audience, Run
from carrel.ports import Ports


@dataclass(frozen=True, slots=True)
class Difference:
    """A path at which the workspace now shows something else than the run sees."""

    path: Path
    before: File | None
    after: File | None

    @property
    def kind(self) -> str:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


async def diff(ports: Ports, run: Run) -> tuple[Difference, ...]:
    """What has changed since, in order of path; a file written anew with the same content has not.

    Raises Missing where the run's snapshot was let go.
    """
    frozen = (await runs.manifest(ports, run)).files
    stack, render_context = await _now(ports, run)
    live = runs.visible(
        run, await files.list_files(ports, stack, render_context=render_context)
    ).files
    paths = sorted({*frozen, *live})
    pairs = [Difference(path, frozen.get(path), live.get(path)) for path in paths]
    same = await _reading_the_same(ports, pairs)
    return tuple(pair for pair in pairs if pair.path not in same)


async def _reading_the_same(ports: Ports, pairs: Sequence[Difference]) -> Set[Path]:
    """The paths at which both show the same; those of one text and other words are read to tell."""
    alike = [pair for pair in pairs if _stored(pair.before) == _stored(pair.after)]
    same = {pair.path for pair in alike if _words_of(pair.before) == _words_of(pair.after)}
    doubtful = [pair for pair in alike if pair.path not in same]
    blobs = await ports.blobs.get([pair.before.blob for pair in doubtful if pair.before])
    for pair in doubtful:
        if pair.before and pair.after:
            stored = blobs[pair.before.blob.digest]
            if files.render_content(pair.before, stored) == files.render_content(
                pair.after, stored
            ):
                same.add(pair.path)
    return same


async def difference(ports: Ports, run: Run, path: Path) -> tuple[Difference | None, str]:
    """What has changed at one path, with a unified diff. Raises Missing where it never was."""
    before = (await runs.find_files(ports, run, [path])).get(path)
    stack, render_context = await _now(ports, run)
    layers = await ports.trees.read(stack, (path,))
    after = (
        resolve(path, layers) if render_context is None else render_context.resolve(path, layers)
    )
    after = after if run.mode is Audience.MAIN or path in SHARED else None
    await runs.verify_snapshot_kept(ports, run)
    if before is None and after is None:
        raise NotFound(f"neither run {run.id} nor its workspace has {path}")
    if await _reading_the_same(ports, [Difference(path, before, after)]):
        return None, ""
    blobs = await ports.blobs.get([found.blob for found in (before, after) if found])
    old, new = (
        files.render_content(found, blobs[found.blob.digest]) if found else None
        for found in (before, after)
    )
    return Difference(path, before, after), await history.compared(old, new, path)


async def _now(ports: Ports, run: Run) -> tuple[Stack, RenderContext | None]:
    """The run's workspace as it is now; of an agent that is gone, the layers that it had."""
    try:
        stack = await runs.current_stack(ports, run)
        return stack, await render_context_of(ports, stack)
    except NotFound:
        return tuple(layer.scope for layer in run.own), runs.render_context_of_run(run)


def _stored(file: File | None) -> object:
    return file and (file.blob.digest, file.entry.type)


def _words_of(file: File | None) -> object:
    return file and file.variables
