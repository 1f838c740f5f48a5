"""Checks of commits that read the paths of whole scopes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.rows import scopes_to_json
from carrel.adapters.sqlite.writer_cache import ScopeState
from carrel.core.identifiers import Scope
from carrel.core.path_spelling import fold_path, path_prefixes
from carrel.core.store.commit import ExpectPathFree, ExpectPathsUnchanged, PathOccupant


def list_occupants(db: sqlite3.Connection, check: ExpectPathFree) -> Sequence[PathOccupant]:
    """Paths of the check's scopes and followers that do not leave its path free."""
    path = check.path
    parameters = (
        scopes_to_json(check.scopes),
        check.scopes[0].tenant,
        check.followers,
        path.text,
        json.dumps([path.text, *(parent.text for parent in path.parents)]),
        check.collides is not None,
        fold_path(path_prefixes(path.text)[0]),
    )
    return tuple(check.find_occupants(db.execute(STATEMENTS["occupying_paths"], parameters)))


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
