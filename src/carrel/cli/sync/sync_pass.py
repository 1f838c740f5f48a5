"""One pass over both sides: look, decide path by path, do it, note it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from carrel.cli.sync.directory import STATE, SyncedDirectory, digest_of
from carrel.cli.sync.scan import DirectoryScanner, ScannedFile, ScanResult
from carrel.cli.sync.sync_state import SyncState
from carrel.core.files.directory_sync import (
    LastSynced,
    RemoteFile,
    SyncAction,
    colliding_paths,
    decide_action,
    is_ignored,
)
from carrel_client.drivers import AsyncDriver
from carrel_client.errors import (
    CarrelError,
    InvalidResponse,
    NotFound,
    ServerError,
    ServerUnreachable,
    Unauthenticated,
    UnusableWorkspace,
    WorkspaceConflict,
)
from carrel_client.file_models import File, FileRow
from carrel_client.workspaces import AgentWorkspace

Watch: TypeAlias = Callable[[str, int, int], None]

_ENDS_ALL: Final = (ServerUnreachable, ServerError, Unauthenticated, UnusableWorkspace)
_SAVE_EVERY: Final = 50
_QUIET: Final = frozenset({SyncAction.NOTHING, SyncAction.AWAIT_RESOLUTION})
_TAKEN: Final = _QUIET | {SyncAction.UPLOAD, SyncAction.RECORD_SYNCED, SyncAction.DROP_RECORD}


@dataclass(slots=True)
class PassResult:
    """What was done, by path, and what could not be."""

    up: list[str] = field(default_factory=list)
    down: list[str] = field(default_factory=list)
    removed_here: list[str] = field(default_factory=list)
    removed_there: list[str] = field(default_factory=list)
    redacted: list[str] = field(default_factory=list)
    """Went up, and the server keeps them without their secrets."""
    kept: dict[str, str] = field(default_factory=dict)
    """Edits here that the server does not take, and where they are now."""
    conflicts: dict[str, str] = field(default_factory=dict)
    """Where both have changed, and the copy with the server's text."""
    problems: dict[str, str] = field(default_factory=dict)
    unsettled: set[str] = field(default_factory=set)
    moved: bool = False
    """Whether another pass may find something else to do."""

    @property
    def ok(self) -> bool:
        return not (self.conflicts or self.problems or self.kept or self.moved)

    def then(self, later: PassResult) -> None:
        """Go on with what a later pass did."""
        for name in ("up", "down", "removed_here", "removed_there", "redacted"):
            getattr(self, name).extend(getattr(later, name))
        self.kept |= later.kept
        self.conflicts, self.problems = later.conflicts, later.problems
        self.unsettled, self.moved = later.unsettled, later.moved


@dataclass(slots=True)
class SyncPair:
    """A directory, an agent, and what is known of both."""

    folder: SyncedDirectory
    eyes: DirectoryScanner
    agent: AgentWorkspace[AsyncDriver]
    note: SyncState

    def save(self) -> None:
        self.folder.note(self.note.encoded())

    def must_be_there(self) -> None:
        """Where a disk was taken away, all files being gone means nothing. Raises Unfit."""
        if not self.folder.is_in_place() or self.folder.read(STATE) is None:
            raise UnusableWorkspace(
                f"{self.folder.path} is not the directory any more that was being synced"
            )


async def sync_once(
    sides: SyncPair, *, taking: bool = False, watch: Watch | None = None
) -> PassResult:
    """Make both sides the same, as far as nobody has to choose.

    ``taking`` only takes up what is new here. Raises CarrelError where the server cannot be asked,
    and OSError where the directory cannot be looked at.
    """
    sides.must_be_there()
    rows = {row.path: row for row in await sides.agent.list(raw=True)}
    files = sides.note.files
    copies = {path: known.copy for path, known in files.items() if known.copy}
    look = sides.eyes.look(files, copies)
    sides.must_be_there()
    work = _SyncPass(
        sides, rows, look, PassResult(problems=look.problems, unsettled=look.unsettled)
    )
    work.recognise_own()
    steps = work.decided()
    todo = [(path, step) for path, step in steps.items() if step not in _QUIET]
    work.announce(steps)
    try:
        for number, (path, step) in enumerate(todo, 1):
            await work.do(path, step, taking)
            if number % _SAVE_EVERY == 0:
                sides.save()
            if watch is not None:
                watch("syncing", number, len(todo))
        if not (look.unsettled or sides.note.whole):
            sides.note.whole = True
            sides.save()
    finally:
        if todo:
            sides.save()
    return work.outcome


async def planned(sides: SyncPair, *, is_new: bool) -> PassResult:
    """What taking up would do, without doing it; of an agent that is not there yet, everything."""
    rows = {} if is_new else {row.path: row for row in await sides.agent.list(raw=True)}
    look = sides.eyes.look(())
    work = _SyncPass(sides, rows, look, PassResult(problems=look.problems))
    for path, step in work.decided().items():
        if step is SyncAction.UPLOAD:
            work.outcome.up.append(path)
        work.left_alone(path, step)
    return work.outcome


@dataclass(slots=True)
class _SyncPass:
    sides: SyncPair
    rows: dict[str, FileRow]
    look: ScanResult
    outcome: PassResult

    def recognise_own(self) -> None:
        """What went up last time may be there although no answer came."""
        for path, sent in self.sides.note.sending.items():
            there = self._there(path)
            if there is not None and there.digest == sent:
                self.sides.note.files[path] = LastSynced(sent, sent, there.is_own)

    def announce(self, steps: dict[str, SyncAction]) -> None:
        note, files = self.sides.note, self.look.files
        before, ups = (
            note.sending,
            (path for path, step in steps.items() if step is SyncAction.UPLOAD),
        )
        note.sending = {path: files[path].digest for path in ups}
        if note.sending or before:
            self.sides.save()

    def decided(self) -> dict[str, SyncAction]:
        known, files = self.sides.note.files, self.look.files
        own = {path for path, row in self.rows.items() if _there(row).is_own}
        for path in filter(is_ignored, own):
            self.outcome.problems[path] = "files of such a name are not synced"
        paths = {path for path in known.keys() | files.keys() | own if not is_ignored(path)}
        clashes = colliding_paths(paths, known)
        for path, other in clashes.items():
            self.outcome.problems[path] = f"some disks take it for the same file as {other}"
        chosen = [path for path in paths - clashes.keys() if self.look.tells_of(path)]
        return {path: self._decided(path) for path in sorted(chosen)}

    def _decided(self, path: str) -> SyncAction:
        known, found = self.sides.note.files.get(path), self.look.files.get(path)
        copy = known.copy if known else None
        here = found.digest if found else None
        step = decide_action(known, here, self._there(path), copy_exists=copy in self.look.copies)
        if step is SyncAction.AWAIT_RESOLUTION and copy:
            self.outcome.conflicts[path] = copy
        return step

    def _there(self, path: str) -> RemoteFile | None:
        row = self.rows.get(path)
        return None if row is None else _there(row)

    async def do(self, path: str, step: SyncAction, taking: bool) -> None:
        if taking and (
            step not in _TAKEN or (step is SyncAction.UPLOAD and path in self.sides.note.files)
        ):
            self.left_alone(path, step)
            return
        async with self._told(path):
            before = self.sides.note.files.get(path)
            after = await self._done(path, step, self.look.files.get(path))
            if after is None:
                self.sides.note.files.pop(path, None)
            else:
                self.sides.note.files[path] = after
            self._clear_copy(before, after)
            self.outcome.moved = True

    def left_alone(self, path: str, step: SyncAction) -> None:
        row = self.rows.get(path)
        if step is SyncAction.MOVE_LOCAL_ASIDE and row is not None:
            self.outcome.problems[path] = f"it is {row.file_class}: it was not taken"
        elif step is SyncAction.START_CONFLICT:
            told = "the server has another text, which stays; carrel sync lets you choose"
            self.outcome.problems[path] = told

    @asynccontextmanager
    async def _told(self, path: str) -> AsyncIterator[None]:
        """What goes wrong at one path is said of that path; what ends everything is raised."""
        try:
            yield
        except _ENDS_ALL:
            raise
        except (WorkspaceConflict, _ChangedSinceScan):
            self.outcome.moved = True
        except CarrelError as problem:
            self.outcome.problems[path] = str(problem)
        except OSError as problem:
            self.outcome.problems[path] = problem.strerror or str(problem)

    async def _done(
        self, path: str, step: SyncAction, found: ScannedFile | None
    ) -> LastSynced | None:
        """What is known of the path afterwards."""
        there = self._there(path)
        match step:
            case SyncAction.UPLOAD if found:
                return await self._up(path, found)
            case SyncAction.DOWNLOAD if there:
                return await self._down(path, found)
            case SyncAction.DELETE_LOCAL if found:
                self._remove(path, found)
            case SyncAction.DELETE_REMOTE:
                await self._remove_there(path)
            case SyncAction.MOVE_LOCAL_ASIDE if found:
                return await self._aside(path, found, there)
            case SyncAction.START_CONFLICT if found:
                return await self._dispute(path, found)
            case SyncAction.RECORD_SYNCED if found and there:
                return LastSynced(found.digest, there.digest, there.is_own)
        return None

    async def _up(self, path: str, found: ScannedFile) -> LastSynced:
        content = self.sides.folder.read(found.name)
        if content is None or digest_of(content) != found.digest:
            raise _ChangedSinceScan
        row = self.rows.get(path)
        seen: dict[str, Any] = {"if_none_match": "*"}
        if row is not None:
            seen = {"if_match": row.etag, "content_type": row.content_type}
        file = await self.sides.agent.put(path, content, **seen)
        self.outcome.up.append(path)
        if file.sha256 != found.digest:
            self.outcome.redacted.append(path)
        return LastSynced(found.digest, file.sha256, _there(file).is_own)

    async def _down(self, path: str, found: ScannedFile | None) -> LastSynced:
        file = await self._fetched(path)
        name, was = (found.name, found.digest) if found else (path, None)
        if not self.sides.folder.put(name, file.content.encode(), was):
            raise _ChangedSinceScan
        self.outcome.down.append(path)
        return LastSynced(file.sha256, file.sha256, _there(file).is_own)

    async def _fetched(self, path: str) -> File:
        """The file that was decided about, to the byte."""
        try:
            file = await self.sides.agent.get(path, raw=True)
        except NotFound:
            raise _ChangedSinceScan from None
        if file.sha256 != self.rows[path].sha256:
            raise _ChangedSinceScan
        if digest_of(file.content.encode()) != file.sha256:
            raise InvalidResponse("its content is not what its digest says")
        return file

    def _remove(self, path: str, found: ScannedFile) -> None:
        if not self.sides.folder.remove(found.name, found.digest):
            raise _ChangedSinceScan
        self.outcome.removed_here.append(path)

    async def _remove_there(self, path: str) -> None:
        try:
            await self.sides.agent.delete(path, if_match=self.rows[path].etag)
        except NotFound:
            raise _ChangedSinceScan from None
        self.outcome.removed_there.append(path)

    async def _aside(
        self, path: str, found: ScannedFile, there: RemoteFile | None
    ) -> LastSynced | None:
        content = self.sides.folder.read(found.name)
        if content is None or digest_of(content) != found.digest:
            raise _ChangedSinceScan
        copy = self.sides.folder.copy(found.name, content)
        self.outcome.kept[path] = copy
        if there is not None and there.is_own:
            return await self._down(path, found)
        self._remove(path, found)
        return None

    async def _dispute(self, path: str, found: ScannedFile) -> LastSynced:
        file = await self._fetched(path)
        copy = self.sides.folder.copy(found.name, file.content.encode())
        self.outcome.conflicts[path] = copy
        return LastSynced(None, file.sha256, copy=copy)

    def _clear_copy(self, before: LastSynced | None, after: LastSynced | None) -> None:
        """A copy that nobody waits for goes, if nobody has worked in it."""
        copy = before.copy if before else None
        if before and copy and copy != (after.copy if after else None) and is_ignored(copy):
            self.sides.folder.remove(copy, before.there)


class _ChangedSinceScan(Exception):
    """Something is not as it was when it was looked at: the next pass decides again."""


def _there(row: FileRow) -> RemoteFile:
    held = row.file_class != "live"
    return RemoteFile(
        row.sha256, is_own=held or row.source.startswith("agent-override"), read_only=held
    )
