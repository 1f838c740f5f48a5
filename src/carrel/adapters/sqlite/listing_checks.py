"""Checks of commits that read the paths of whole scopes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.writer_cache import ScopeState
from carrel.core.identifiers import Path, Scope
from carrel.core.store.commit import ExpectPathFree, ExpectPathsUnchanged


def find_listed_occupant(
    db: sqlite3.Connection, check: ExpectPathFree, scope_ids: Sequence[int]
) -> Path | None:
    """First path of the check's scopes and followers that does not leave its path free."""
    parameters = (
        json.dumps(scope_ids),
        check.scopes[0].tenant,
        check.followers,
        check.known_variants is not None,
        check.path.text,
        json.dumps([parent.text for parent in check.path.parents]),
    )
    rows = db.execute(STATEMENTS["listed_paths"], parameters)
    return check.find_occupant(text for [text] in rows)


def are_paths_unchanged(
    db: sqlite3.Connection, check: ExpectPathsUnchanged, states: Mapping[Scope, ScopeState]
) -> bool:
    """Whether the check holds, given the current states of its scopes."""
    changed = [
        (states[scope].id, revision)
        for scope, revision in check.revisions.items()
        if states[scope].revision > revision
    ]
    return check.holds(
        text for [text] in db.execute(STATEMENTS["changed_paths"], (json.dumps(changed),))
    )
