"""Finds every change of a refused commit that cannot be applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from carrel.actions.records import NO_DRAFTS, FileDrafts
from carrel.core.identifiers import Path, Scope
from carrel.core.overlay.commit_plan import CommitContext, CommitPlan, plan_commit
from carrel.core.overlay.file_changes import ChangeKind, FailedChange, FileChange
from carrel.core.overlay.path_clashes import find_occupied
from carrel.core.overlay.planned_writes import path_occupied_error
from carrel.core.store.commit import ExpectPathFree
from carrel.ports import Ports


async def find_failures(
    ports: Ports,
    context: CommitContext,
    changes: Sequence[FileChange],
    drafts: Mapping[Path, FileDrafts],
) -> Sequence[FailedChange]:
    """Changes that cannot be applied, those that the store would refuse included."""
    failures: list[FailedChange] = []
    while True:
        failed = {id(failure.change) for failure in failures}
        remaining = [change for change in changes if id(change) not in failed]
        plan = plan_commit(context, remaining)
        if not plan.failures:
            break
        failures += plan.failures
    return [*failures, *await _find_occupied(ports, context.scope, changes, plan, drafts)]


async def _find_occupied(
    ports: Ports,
    scope: Scope,
    changes: Sequence[FileChange],
    plan: CommitPlan,
    drafts: Mapping[Path, FileDrafts],
) -> Sequence[FailedChange]:
    """Changes whose path is not free for a file."""
    checks = draft_checks(plan, drafts)
    if not checks:
        return ()
    scopes = dict.fromkeys(scope for check in checks for scope in check.scopes)
    deleted = {(scope, path) for path in _deleted_paths(changes)}
    by_path = {change.path: change for change in changes}
    return [
        FailedChange(by_path[occupied.check.path], path_occupied_error(occupied))
        for occupied in find_occupied(checks, await ports.trees.read(tuple(scopes)), deleted)
    ]


def _deleted_paths(changes: Sequence[FileChange]) -> Iterator[Path]:
    for change in changes:
        if change.kind in {ChangeKind.DELETE, ChangeKind.REMOVE_DIRECTORY}:
            yield change.path
        elif change.kind is ChangeKind.MOVE and change.source is not None:
            yield change.source


def draft_checks(plan: CommitPlan, drafts: Mapping[Path, FileDrafts]) -> tuple[ExpectPathFree, ...]:
    """What the store must check once more for the new paths of a plan."""
    return tuple(
        check
        for planned in plan.path_checks
        for check in drafts.get(planned.path, NO_DRAFTS).path_checks or (planned,)
    )
