"""Compares two workspaces, layers, runs or versions, path by path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from carrel.actions.files import files, history
from carrel.actions.overlay import stacks
from carrel.actions.overlay.agent_layers import load_classes, load_resolver
from carrel.actions.runs import runs, snapshots
from carrel.core.access import Actor, Permission
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.template import template_from_record
from carrel.core.comparison import (
    ComparedKind,
    ComparisonReference,
    ComparisonStatus,
    parse_reference,
)
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay.compose import File, compose
from carrel.core.runs import SnapshotLayer
from carrel.core.store.record import RecordType
from carrel.ports import Ports

MAX_DIFFS: Final = 50
"""Diffs of one page."""
MAX_DIFF_CHARS: Final = 256 * 1024
"""Longer diffs are cut."""
_MAX_PAGE_CHARS: Final = 1024 * 1024
"""A page ends after diffs of this size."""
_MAX_DIFFED_BYTES: Final = 1024 * 1024
"""Larger files have no diff."""
_READ_BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """Files of one side."""

    reference: ComparisonReference
    id: str
    """Id of the agent, template, workspace or run."""
    name: str
    files: Mapping[Path, File]
    pruned_paths: Set[Path] = frozenset()
    """Paths whose versions of that time were pruned."""


@dataclass(frozen=True, slots=True)
class ComparedPath:
    path: Path
    status: ComparisonStatus
    left: File | None
    right: File | None
    diff: str | None = None
    """Unified diff, if requested; None if a file is too large."""
    diff_truncated: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    left: ComparedSide
    right: ComparedSide
    items: tuple[ComparedPath, ...]
    counts: Mapping[ComparisonStatus, int]
    """Number of paths of each status, on all pages."""
    next: str | None


@dataclass(frozen=True, slots=True)
class ComparisonRequest:
    left: str
    right: str
    prefix: str = ""
    statuses: Set[ComparisonStatus] = frozenset(ComparisonStatus)
    raw: bool = False
    """Compare the texts before placeholders are replaced."""
    diff: bool = False
    after: str = ""
    """Last path of the page before."""
    limit: int = 100


async def compare(ports: Ports, actor: Actor, request: ComparisonRequest) -> Comparison:
    """Compare two sides that the caller may open.

    Raises ValidationError, NotFound and Forbidden.
    """
    actor.require(Permission.WORKSPACE_READ)
    references = parse_reference(request.left), parse_reference(request.right)
    left, right = _narrowed(*references)
    left_side = await _load_side(ports, actor, left, request.prefix)
    right_side = await _load_side(ports, actor, right, request.prefix)
    pairs = _pairs(left_side, right_side)
    statuses = await _find_statuses(ports, left_side, right_side, pairs, raw=request.raw)
    rows = [
        ComparedPath(path, statuses[path], *pair)
        for path, pair in pairs.items()
        if statuses[path] in request.statuses and path.text > request.after
    ]
    limit = min(request.limit, MAX_DIFFS) if request.diff else request.limit
    page = rows[:limit]
    if request.diff:
        page = await _with_diffs(ports, page, raw=request.raw)
    following = page[-1].path.text if page and len(page) < len(rows) else None
    return Comparison(left_side, right_side, tuple(page), Counter(statuses.values()), following)


def _narrowed(
    left: ComparisonReference, right: ComparisonReference
) -> tuple[ComparisonReference, ComparisonReference]:
    """Narrow a side without a path to the path of the other."""
    if left.path is None and right.path is not None:
        return _at_path(left, right.path), right
    if right.path is None and left.path is not None:
        return left, _at_path(right, left.path)
    return left, right


def _at_path(reference: ComparisonReference, path: Path) -> ComparisonReference:
    return ComparisonReference(reference.kind, reference.name, path, at=reference.at)


def _pairs(
    left: ComparedSide, right: ComparedSide
) -> Mapping[Path, tuple[File | None, File | None]]:
    """Files to compare by path; two single files may have different paths."""
    left_path, right_path = left.reference.path, right.reference.path
    if left_path is not None and right_path is not None:
        return {left_path: (left.files.get(left_path), right.files.get(right_path))}
    paths = sorted({*left.files, *right.files, *left.pruned_paths, *right.pruned_paths})
    return {path: (left.files.get(path), right.files.get(path)) for path in paths}


async def _load_side(
    ports: Ports, actor: Actor, reference: ComparisonReference, prefix: str
) -> ComparedSide:
    if reference.kind is ComparedKind.RUN:
        return await _load_run(ports, actor, reference, prefix)
    stack, name = await _load_stack(ports, actor, reference)
    if reference.version is not None and reference.path is not None:
        file = await files.find_version(ports, stack, reference.path, reference.version)
        return ComparedSide(reference, stack[0].name, name, {reference.path: file})
    if stack[0].kind is ScopeKind.TEMPLATE:
        stack = await stacks.load_related_scopes(ports, stack)
    return await _load_layers(ports, reference, stack, name, prefix)


async def _load_run(
    ports: Ports, actor: Actor, reference: ComparisonReference, prefix: str
) -> ComparedSide:
    actor.require(Permission.RUNS_READ)
    run = await runs.get(ports, actor, reference.name)
    name = run.workflow_id
    if reference.path is not None:
        files_at_path = await snapshots.find_files(ports, run, [reference.path])
        await snapshots.verify_snapshot_kept(ports, run)
        return ComparedSide(reference, run.id, name, files_at_path)
    workspace = await snapshots.load_manifest(ports, run, prefix)
    return ComparedSide(reference, run.id, name, workspace.files)


async def _load_stack(
    ports: Ports, actor: Actor, reference: ComparisonReference
) -> tuple[Stack, str]:
    """Load the stack of a side and its name, if the caller may open all of it."""
    match reference.kind:
        case ComparedKind.AGENT:
            stack = await stacks.agent_stack(ports, actor, reference.name)
        case ComparedKind.TEMPLATE:
            stack = await stacks.template_stack(ports, actor, reference.name)
        case ComparedKind.WORKSPACE:
            stack = await stacks.workspace_stack(ports, actor, reference.name)
            return stack, reference.name
        case _:
            return await stacks.defaults_stack(ports, actor), ""
    is_agent = reference.kind is ComparedKind.AGENT
    record_type = RecordType.AGENT if is_agent else RecordType.TEMPLATE
    [record] = await ports.records.get(actor.tenant, record_type, [stack[0].name])
    if record is None:
        return stack, reference.name
    return stack, (agent_from_record if is_agent else template_from_record)(record).name


async def _load_layers(
    ports: Ports, reference: ComparisonReference, stack: Stack, name: str, prefix: str
) -> ComparedSide:
    resolver, classes = await load_resolver(ports, stack), await load_classes(ports, stack[:1])
    layers: Sequence[Scope | SnapshotLayer] = stack
    pruned_paths: Set[Path] = frozenset()
    if reference.at is not None:
        moments = await ports.trees.moments(stack, reference.at)
        layers = [
            SnapshotLayer(scope, moment.revision)
            for scope, moment in zip(stack, moments, strict=True)
        ]
        pruned_paths = frozenset(path for moment in moments for path in moment.pruned_paths)
    paths = None if reference.path is None else (reference.path,)
    trees = await ports.trees.read(layers, paths, prefix=prefix)
    workspace = compose(trees, classes) if resolver is None else resolver.compose(trees)
    listed = {path: file for path, file in workspace.files.items() if path not in pruned_paths}
    pruned_paths = frozenset(
        path
        for path in pruned_paths
        if path.text.startswith(prefix) and reference.path in {None, path}
    )
    return ComparedSide(reference, stack[0].name, name, listed, pruned_paths)


async def _find_statuses(
    ports: Ports,
    left: ComparedSide,
    right: ComparedSide,
    pairs: Mapping[Path, tuple[File | None, File | None]],
    *,
    raw: bool,
) -> Mapping[Path, ComparisonStatus]:
    pruned_paths = {*left.pruned_paths, *right.pruned_paths}
    statuses: dict[Path, ComparisonStatus] = {}
    to_render: list[tuple[Path, File, File]] = []
    for path, (before, after) in pairs.items():
        if path in pruned_paths:
            statuses[path] = ComparisonStatus.UNKNOWN
        elif before is None or after is None:
            is_left = after is None
            statuses[path] = ComparisonStatus.ONLY_LEFT if is_left else ComparisonStatus.ONLY_RIGHT
        elif _is_decided(before, after, raw=raw):
            is_same = before.blob.digest == after.blob.digest
            statuses[path] = ComparisonStatus.SAME if is_same else ComparisonStatus.CHANGED
        else:
            to_render.append((path, before, after))
    for start in range(0, len(to_render), _READ_BATCH):
        batch = to_render[start : start + _READ_BATCH]
        identical = await _find_identical(ports, batch)
        for path, _, _ in batch:
            is_same = path in identical
            statuses[path] = ComparisonStatus.SAME if is_same else ComparisonStatus.CHANGED
    return statuses


def _is_decided(before: File, after: File, *, raw: bool) -> bool:
    """Whether digests alone tell if both are the same as they are served."""
    if raw or (before.variables is None and after.variables is None):
        return True
    return before.blob.digest == after.blob.digest and before.variables == after.variables


async def _find_identical(ports: Ports, batch: Sequence[tuple[Path, File, File]]) -> Set[Path]:
    blobs = await ports.blobs.get([file.blob for _, *pair in batch for file in pair])
    return {
        path
        for path, before, after in batch
        if files.render_content(before, blobs[before.blob.digest])
        == files.render_content(after, blobs[after.blob.digest])
    }


async def _with_diffs(
    ports: Ports, rows: Sequence[ComparedPath], *, raw: bool
) -> list[ComparedPath]:
    """Add diffs to the first rows, up to the size of a page."""
    page: list[ComparedPath] = []
    size = 0
    for row in rows:
        if page and size >= _MAX_PAGE_CHARS:
            break
        page.append(await _with_diff(ports, row, raw=raw))
        size += len(page[-1].diff or "")
    return page


async def _with_diff(ports: Ports, row: ComparedPath, *, raw: bool) -> ComparedPath:
    sides = (row.left, row.right)
    present = [file for file in sides if file]
    if row.status in {ComparisonStatus.SAME, ComparisonStatus.UNKNOWN}:
        return ComparedPath(row.path, row.status, *sides, diff="")
    if any(file.blob.size > _MAX_DIFFED_BYTES for file in present):
        return row
    blobs = await ports.blobs.get([file.blob for file in present])
    before, after = (
        None
        if file is None
        else blobs[file.blob.digest]
        if raw
        else files.render_content(file, blobs[file.blob.digest])
        for file in sides
    )
    text = await history.diff_contents(before, after, row.path)
    is_long = len(text) > MAX_DIFF_CHARS
    return ComparedPath(
        *(row.path, row.status, *sides), diff=text[:MAX_DIFF_CHARS], diff_truncated=is_long
    )
