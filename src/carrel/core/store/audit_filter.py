"""What an audit entry is found by: author, key, action, records and time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from carrel.core.identifiers import TimestampMs
from carrel.core.store.commit import Commit

END_OF_TIME: Final = 2**62
_MAX_ACTION_LENGTH: Final = 60
_MAX_OBJECTS: Final = 100
"""Records of one entry that it is found by."""


class AuditFilter(Struct, frozen=True):
    """Conditions that all entries of a listing meet."""

    author: str = ""
    """Id of the author or of the key."""
    action: str = ""
    object: str = ""
    """A record as `type/id`, or all records of a `type`."""
    start: TimestampMs = 0
    end: TimestampMs = END_OF_TIME
    """Exclusive."""

    @property
    def keys(self) -> list[str]:
        """Index keys that an entry has, the most selective first."""
        keys = [_object_key(self.object)] if self.object else []
        keys += [f"who:{self.author}"] if self.author else []
        return keys + ([f"action:{self.action}"] if self.action else [])


EVERY_ENTRY: Final = AuditFilter()


def audit_action(commit: Commit) -> str:
    """Name of what a commit does, without names of records."""
    action = commit.action or commit.reason.partition(":")[0].partition(",")[0]
    return action[:_MAX_ACTION_LENGTH]


def audit_keys(commit: Commit, subjects: Sequence[str]) -> list[str]:
    """Index keys of the audit entry of a commit with these subjects."""
    types = [subject.partition("/")[0] for subject in subjects]
    keys = [f"who:{commit.author}", f"action:{audit_action(commit)}"]
    keys += [f"who:{commit.key.id}"] if commit.key and commit.key.id else []
    keys += [_object_key(name) for name in (*types, *subjects[:_MAX_OBJECTS])]
    return list(dict.fromkeys(keys))


def _object_key(name: str) -> str:
    """Index key of a record or a type; a digest, since ids of sessions and paths are texts."""
    return f"object:{hashlib.sha256(name.encode()).hexdigest()[:32]}"
