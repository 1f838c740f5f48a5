"""Commits with checks that read the paths of whole scopes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import asyncpg

from carrel.adapters.postgres.commit_columns import CommitColumns
from carrel.adapters.postgres.database import STATEMENTS
from carrel.adapters.postgres.rows import Row, scope_columns
from carrel.core.identifiers import Path
from carrel.core.path_spelling import fold_path, path_prefixes
from carrel.core.store.commit import (
    Applied,
    Commit,
    ExpectationFailed,
    ExpectPathFree,
    ExpectPathsUnchanged,
    Outcome,
    PathOccupied,
)


async def apply_with_listing(connection: asyncpg.Connection, commit: Commit) -> Outcome:
    """Apply a commit, then read what its checks need under its locks; undo it if one fails."""
    columns = CommitColumns((commit,))
    if check := commit.unchanged_paths:
        # Before the commit's own writes, under its locks.
        await connection.execute(STATEMENTS["acquire_locks"], *columns.locks())
        if not await _are_unchanged(connection, check):
            return ExpectationFailed(check)
    savepoint = connection.transaction()
    await savepoint.start()
    answer = await connection.fetchrow(STATEMENTS["apply_commits"], *columns.arguments())
    [outcome] = columns.outcomes(cast(Row, answer))
    if isinstance(outcome, Applied):
        for path_check in commit.path_checks:
            if not path_check.reads_listing:
                continue
            if occupant := await _find_listed(connection, path_check):
                await savepoint.rollback()
                return PathOccupied(path_check, occupant)
    await savepoint.commit()
    return outcome


async def _are_unchanged(connection: asyncpg.Connection, check: ExpectPathsUnchanged) -> bool:
    rows = await connection.fetch(
        STATEMENTS["changed_paths"],
        *scope_columns(tuple(check.revisions)),
        list(check.revisions.values()),
    )
    return check.holds(text for [text] in rows)


def occupants_query(check: ExpectPathFree) -> Sequence[Any]:
    """Parameters of `occupying_paths`."""
    path = check.path
    return (
        *scope_columns(check.scopes),
        check.scopes[0].tenant,
        check.followers,
        path.text,
        [path.text, *(parent.text for parent in path.parents)],
        check.collides is not None,
        fold_path(path_prefixes(path.text)[0]),
    )


async def _find_listed(connection: asyncpg.Connection, check: ExpectPathFree) -> Path | None:
    rows = await connection.fetch(STATEMENTS["occupying_paths"], *occupants_query(check))
    return min(
        (occupant.path for occupant in check.find_occupants(cast(Sequence[Row], rows))),
        default=None,
    )
