"""Examining trees: what scopes say now, against everything they said, against the bytes kept."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind, TimestampMs
from carrel.core.maintenance.findings import FindingList
from carrel.core.maintenance.id_counts import IdCounts
from carrel.core.policy import Policy

Row = Sequence[Any]

SLACK: Final[TimestampMs] = 300_000
"""How far the clocks of two server processes may disagree."""
_USED: Final = 1


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """A tenant's policy, and when it last changed: before, others may have held."""

    policy: Policy = field(default_factory=Policy)
    since: TimestampMs | None = None


class ContentUsage:
    """Which bytes there are, by the id of their row, and which of them something refers to."""

    def __init__(self) -> None:
        self._rows = IdCounts()

    def add(self, id: int, digest: bytes, size: int, *, used: bool) -> None:
        self._rows[id] = _print(digest, size) | used

    def use(self, id: int) -> bool:
        """Note that something refers to these; False where there are none."""
        found = self._rows[id]
        if found:
            self._rows[id] = found | _USED
        return bool(found)

    def agree(self, id: int, digest: bytes | None, size: int | None) -> bool:
        return self._rows[id] & ~_USED == _print(digest, size)

    def unused(self) -> int:
        return sum(not number & _USED for _, number in self._rows.each())


def _print(digest: bytes | None, size: int | None) -> int:
    """Tells contents apart for as long as this process lives; never 0, the lowest bit free."""
    return (hash((digest, size)) & (1 << 61) - 1) << 2 | 2


class TreeCheck:
    """Fed in one order of keys: a scope, then its entries, each followed by its versions."""

    def __init__(
        self,
        findings: FindingList,
        contents: ContentUsage,
        keepings: Mapping[str, RetentionPolicy],
        held: Mapping[int, Iterable[int]],
    ) -> None:
        self._findings, self._contents = findings, contents
        self._keepings, self._held = keepings, held
        self._scope: Row | None = None
        self._last = self._keep = 0
        self._since: TimestampMs | None = None
        self._runs: Sequence[int] = ()
        self._files = self._size = 0
        self._path: str | None = None
        self._entry: Row | None = None
        self._version = self._revision = 0

    def scope(self, row: Row) -> None:
        self._end_scope()
        self._begin_scope(row)

    def entry(self, row: Row) -> None:
        if not self._known(row):
            self._findings.error(f"entry {row[1]} of scope {row[0]}", "the scope is not known")
            return
        self._begin_path(row[1], row)
        content, digest, size = row[5:8]
        if not _whole(content, digest, size):
            self._error("the entry is half a tombstone")
        if content is not None:
            self._files += 1
            self._size += size or 0
        try:
            parsed = Path(row[1]).text
        except ValidationError:
            parsed = None
        if parsed != row[1]:
            self._error("is not a path as Carrel would store it")

    def version(self, row: Row) -> None:
        _, path, version, revision = row[:4]
        if not self._known(row):
            self._findings.error(f"version {version} of {path} of scope {row[0]}", "no such scope")
            return
        if path != self._path:
            self._begin_path(path, None)
            self._error("has a history, but nothing says what it is now")
        if version > self._version + 1:
            self._gap(row)
        if revision < self._revision:
            self._error(f"version {version} has a lower revision than the one before it")
        if revision > self._last:
            self._error(f"version {version} is of a revision that the scope has not reached")
        self._refers(row)
        self._compare(row)
        self._version, self._revision = version, revision

    def finish(self) -> None:
        self._end_scope()

    def _known(self, row: Row) -> bool:
        return self._scope is not None and row[0] == self._scope[0]

    def _begin_scope(self, row: Row) -> None:
        self._scope, self._path, self._entry = row, None, None
        self._files = self._size = self._version = self._revision = 0
        id, tenant, kind, name, self._last = row[:5]
        keeping = self._keepings.get(tenant, RetentionPolicy())
        self._keep = keeping.policy.limits_of(Scope(tenant, ScopeKind(kind), name)).max_versions
        self._since = keeping.since
        self._runs = sorted(self._held.get(id, ()))

    def _end_scope(self) -> None:
        self._end_path()
        if self._scope is None:
            return
        files, size = self._scope[5:7]
        if (files, size) != (self._files, self._size):
            text = f"says {files} files of {size} bytes; there are {self._files} of {self._size}"
            self._findings.error(_name(self._scope), text)

    def _begin_path(self, path: str, entry: Row | None) -> None:
        self._end_path()
        self._path, self._entry = path, entry
        self._version = self._revision = 0

    def _end_path(self) -> None:
        if self._entry is not None and self._version < self._entry[2]:
            self._error(f"is at version {self._entry[2]}, of which the history knows nothing")

    def _compare(self, row: Row) -> None:
        if self._entry is None:
            return
        if row[2] > self._entry[2]:
            self._error(f"is at version {self._entry[2]}, though there is a version {row[2]}")
        elif row[2] == self._entry[2] and tuple(row[:10]) != tuple(self._entry[:10]):
            self._error("is not what its newest version says")

    def _refers(self, row: Row) -> None:
        version, content, digest, size, base = row[2], *row[5:9]
        if not _whole(content, digest, size):
            self._error(f"version {version} is half a tombstone")
        elif content is not None and not self._contents.use(content):
            self._error(f"the bytes of version {version} are gone")
        elif content is not None and not self._contents.agree(content, digest, size):
            self._error(f"the bytes of version {version} are others than it says")
        if base is not None and not self._contents.use(base):
            self._error(f"the bytes that version {version} was based on are gone")

    def _gap(self, row: Row) -> None:
        """Versions are missing before this one: may they be?

        Among the newest none may be, unless they went while an earlier policy held. Further back
        only those may be that no kept run sees. A missing one has lost its revision with it, but
        each took one of its own: where there is no room for all of them after the revision that a
        run stands at, the run saw one.
        """
        _, _, version, revision, at = row[:5]
        newest = self._entry[2] if self._entry else version
        young = self._since is None or at > self._since + SLACK
        first = max(self._version, newest - self._keep) + 1
        if first < version and young:
            self._error(f"of its versions, {_span(first, version - 1)} missing")
            return
        place = bisect_left(self._runs, revision)
        seen = self._runs[place - 1] if place else -1
        if seen >= self._revision and revision - 1 - seen < version - 1 - self._version:
            span = _span(self._version + 1, version - 1)
            self._error(f"of its versions, {span} missing, and a kept run stands among them")

    def _error(self, text: str) -> None:
        assert self._scope is not None
        self._findings.error(f"{_name(self._scope)} {self._path}", text)


def _whole(content: object, digest: object, size: object) -> bool:
    """Whether it is either all there or, for a tombstone, all absent."""
    return len({content is None, digest is None, size is None}) == 1


def _name(scope: Row) -> str:
    _, tenant, kind, name = scope[:4]
    return f"{kind} {name} of {tenant}"


def _span(first: int, last: int) -> str:
    return f"{first} is" if first == last else f"{first} to {last} are"
