"""One sync pass: scan both sides, decide per path, execute, save the state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from carrel.cli.dry_run import DRY_RUN_CONCURRENCY
from carrel.cli.sync.directory import STATE_FILE, SyncedDirectory, digest_of
from carrel.cli.sync.remote_commit import RemoteChange, commit_changes
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
from carrel_client import ChangedFile
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

ProgressCallback: TypeAlias = Callable[[str, int, int], None]

_FATAL_ERRORS: Final = (ServerUnreachable, ServerError, Unauthenticated, UnusableWorkspace)
_SAVE_EVERY: Final = 50
_NO_OPERATION: Final = frozenset({SyncAction.NOTHING, SyncAction.AWAIT_RESOLUTION})
_UPLOAD_ONLY_ACTIONS: Final = _NO_OPERATION | {
    SyncAction.UPLOAD,
    SyncAction.RECORD_SYNCED,
    SyncAction.DROP_RECORD,
}


@dataclass(slots=True)
class PassResult:
    """Paths by what was done, and problems."""

    up: list[str] = field(default_factory=list)
    down: list[str] = field(default_factory=list)
    removed_here: list[str] = field(default_factory=list)
    removed_there: list[str] = field(default_factory=list)
    redacted: list[str] = field(default_factory=list)
    """Uploaded files that the server stored with secrets redacted."""
    set_aside: dict[str, str] = field(default_factory=dict)
    """Local edits that the server refuses, with the names of their copies."""
    conflicts: dict[str, str] = field(default_factory=dict)
    """Paths that changed on both sides, with the copies of the server's content."""
    problems: dict[str, str] = field(default_factory=dict)
    unsettled: set[str] = field(default_factory=set)
    has_more: bool = False
    """Whether another pass may find more to do."""

    @property
    def ok(self) -> bool:
        return not (self.conflicts or self.problems or self.set_aside or self.has_more)

    def merge(self, later: PassResult) -> None:
        """Merge the result of a later pass."""
        for name in ("up", "down", "removed_here", "removed_there", "redacted"):
            getattr(self, name).extend(getattr(later, name))
        self.set_aside |= later.set_aside
        self.conflicts, self.problems = later.conflicts, later.problems
        self.unsettled, self.has_more = later.unsettled, later.has_more


@dataclass(slots=True)
class SyncPair:
    """A directory and an agent, with their sync state."""

    directory: SyncedDirectory
    scanner: DirectoryScanner
    agent: AgentWorkspace[AsyncDriver]
    state: SyncState
    is_dry_run: bool = False
    """Whether the client only asks what its requests would do; the state is not saved."""

    def save(self) -> None:
        if not self.is_dry_run:
            self.directory.write_state(self.state.encode())

    def check_in_place(self) -> None:
        """Raise UnusableWorkspace if the directory was moved or unmounted.

        Without this check, missing files would be taken for deletions.
        """
        has_state = self.is_dry_run or self.directory.read(STATE_FILE) is not None
        if not (has_state and self.directory.is_in_place()):
            raise UnusableWorkspace(
                f"{self.directory.path} is no longer the directory that was being synced"
            )


async def sync_once(
    pair: SyncPair, *, upload_only: bool = False, on_progress: ProgressCallback | None = None
) -> PassResult:
    """Run one sync pass. Conflicts are reported, not resolved.

    `upload_only` uploads new local files and changes nothing else. Raises CarrelError if the server
    cannot be reached, OSError if the directory cannot be read.
    """
    pair.check_in_place()
    rows = {row.path: row for row in await pair.agent.list(raw=True)}
    files = pair.state.files
    copies = {path: last.copy for path, last in files.items() if last.copy}
    scan = pair.scanner.scan(files, copies)
    pair.check_in_place()
    sync_pass = _SyncPass(
        pair, rows, scan, PassResult(problems=scan.problems, unsettled=scan.unsettled)
    )
    sync_pass.recognize_uploads()
    steps = sync_pass.decide_actions()
    pending = [(path, step) for path, step in steps.items() if step not in _NO_OPERATION]
    sync_pass.record_uploads(steps)
    try:
        committed = await sync_pass.commit_remote_changes(dict(pending), upload_only)
        pending = [item for item in pending if item[0] not in committed]
        concurrency = DRY_RUN_CONCURRENCY if pair.is_dry_run else 1
        for start in range(0, len(pending), concurrency):
            group = pending[start : start + concurrency]
            await asyncio.gather(*[sync_pass.run_step(*item, upload_only) for item in group])
            number = start + len(group)
            if number % _SAVE_EVERY == 0:
                pair.save()
            if on_progress is not None:
                on_progress("syncing", number, len(pending))
        if not (scan.unsettled or pair.state.is_complete):
            pair.state.is_complete = True
            pair.save()
    finally:
        if pending:
            pair.save()
    return sync_pass.outcome


@dataclass(slots=True)
class _SyncPass:
    pair: SyncPair
    rows: dict[str, FileRow]
    scan: ScanResult
    outcome: PassResult

    def recognize_uploads(self) -> None:
        """Recognize uploads of the last pass whose response was lost."""
        for path, sent in self.pair.state.sending.items():
            remote = self._remote_at(path)
            if remote is not None and remote.digest == sent:
                self.pair.state.files[path] = LastSynced(sent, sent, remote.is_own)

    def record_uploads(self, steps: dict[str, SyncAction]) -> None:
        state, files = self.pair.state, self.scan.files
        before, uploads = (
            state.sending,
            (path for path, step in steps.items() if step is SyncAction.UPLOAD),
        )
        state.sending = {path: files[path].digest for path in uploads}
        if state.sending or before:
            self.pair.save()

    def decide_actions(self) -> dict[str, SyncAction]:
        last_synced, files = self.pair.state.files, self.scan.files
        own_paths = {path for path, row in self.rows.items() if _remote_file(row).is_own}
        for path in filter(is_ignored, own_paths):
            self.outcome.problems[path] = "files with this name are not synced"
        paths = {
            path for path in last_synced.keys() | files.keys() | own_paths if not is_ignored(path)
        }
        collisions = colliding_paths(paths, last_synced)
        for path, other in collisions.items():
            self.outcome.problems[path] = f"some file systems do not distinguish it from {other}"
        determined = [path for path in paths - collisions.keys() if self.scan.is_determined(path)]
        return {path: self._decide_action(path) for path in sorted(determined)}

    def _decide_action(self, path: str) -> SyncAction:
        last, local = self.pair.state.files.get(path), self.scan.files.get(path)
        copy = last.copy if last else None
        local_digest = local.digest if local else None
        step = decide_action(
            last, local_digest, self._remote_at(path), copy_exists=copy in self.scan.copies
        )
        if step is SyncAction.AWAIT_RESOLUTION and copy:
            self.outcome.conflicts[path] = copy
        return step

    def _remote_at(self, path: str) -> RemoteFile | None:
        row = self.rows.get(path)
        return None if row is None else _remote_file(row)

    async def commit_remote_changes(
        self, steps: dict[str, SyncAction], upload_only: bool
    ) -> frozenset[str]:
        """Upload and delete on the server in as few commits as possible.

        Returns the paths that were changed; the others are tried one at a time.
        """
        before = self.pair.state.files
        changes = []
        for path, step in steps.items():
            if upload_only and (step is not SyncAction.UPLOAD or path in before):
                continue
            if step is SyncAction.DELETE_REMOTE:
                changes.append(RemoteChange(path, None, self.rows[path]))
            elif step is SyncAction.UPLOAD:
                local = self.scan.files[path]
                content = self.pair.directory.read(local.name)
                if content is not None and digest_of(content) == local.digest:
                    changes.append(RemoteChange(path, content, self.rows.get(path)))
        committed: set[str] = set()

        def record(change: RemoteChange, changed: ChangedFile) -> None:
            committed.add(change.path)
            self._record_committed(change, changed)

        await commit_changes(self.pair.agent, changes, record)
        return frozenset(committed)

    def _record_committed(self, change: RemoteChange, changed: ChangedFile) -> None:
        path, row = change.path, change.row
        before = self.pair.state.files.get(path)
        after = None
        if change.content is None:
            self.outcome.removed_there.append(path)
        else:
            local_digest = self.scan.files[path].digest
            self._record_upload(path, local_digest, changed.etag, changed.sha256 or "")
            is_own = (changed.source or "").startswith("agent-override")
            is_protected = row is not None and row.file_class != "live"
            after = LastSynced(local_digest, changed.sha256 or "", is_own or is_protected)
        self._record_step(path, before, after)

    def _record_upload(self, path: str, local_digest: str, etag: str | None, sha256: str) -> None:
        row = self.rows.get(path)
        if row is None or etag != row.etag:  # Else it is what the layers below have already.
            self.outcome.up.append(path)
        if sha256 != local_digest:
            self.outcome.redacted.append(path)

    def _record_step(self, path: str, before: LastSynced | None, after: LastSynced | None) -> None:
        if after is None:
            self.pair.state.files.pop(path, None)
        else:
            self.pair.state.files[path] = after
        self._clear_copy(before, after)
        self.outcome.has_more = True

    async def run_step(self, path: str, step: SyncAction, upload_only: bool) -> None:
        if upload_only and (
            step not in _UPLOAD_ONLY_ACTIONS
            or (step is SyncAction.UPLOAD and path in self.pair.state.files)
        ):
            self.report_skipped(path, step)
            return
        async with self._record_problems(path):
            before = self.pair.state.files.get(path)
            after = await self._execute(path, step, self.scan.files.get(path))
            self._record_step(path, before, after)

    def report_skipped(self, path: str, step: SyncAction) -> None:
        row = self.rows.get(path)
        if step is SyncAction.MOVE_LOCAL_ASIDE and row is not None:
            self.outcome.problems[path] = f"not uploaded: the file is {row.file_class}"
        elif step is SyncAction.START_CONFLICT:
            message = "not uploaded: the server has different content; resolve it with carrel sync"
            self.outcome.problems[path] = message

    @asynccontextmanager
    async def _record_problems(self, path: str) -> AsyncIterator[None]:
        """Record errors of one path as its problem. Fatal errors are raised."""
        try:
            yield
        except _FATAL_ERRORS:
            raise
        except (WorkspaceConflict, _ChangedSinceScan):
            self.outcome.has_more = True
        except CarrelError as problem:
            self.outcome.problems[path] = str(problem)
        except OSError as problem:
            self.outcome.problems[path] = problem.strerror or str(problem)

    async def _execute(
        self, path: str, step: SyncAction, local: ScannedFile | None
    ) -> LastSynced | None:
        """Execute an action and return the path's new sync state."""
        remote = self._remote_at(path)
        match step:
            case SyncAction.UPLOAD if local:
                return await self._upload(path, local)
            case SyncAction.DOWNLOAD if remote:
                return await self._download(path, local)
            case SyncAction.DELETE_LOCAL if local:
                self._remove_local(path, local)
            case SyncAction.DELETE_REMOTE:
                await self._remove_remote(path)
            case SyncAction.MOVE_LOCAL_ASIDE if local:
                return await self._set_aside(path, local, remote)
            case SyncAction.START_CONFLICT if local:
                return await self._record_conflict(path, local)
            case SyncAction.RECORD_SYNCED if local and remote:
                return LastSynced(local.digest, remote.digest, remote.is_own)
        return None

    async def _upload(self, path: str, local: ScannedFile) -> LastSynced:
        content = self.pair.directory.read(local.name)
        if content is None or digest_of(content) != local.digest:
            raise _ChangedSinceScan
        row = self.rows.get(path)
        conditions: dict[str, Any] = {"if_none_match": "*"}
        if row is not None:
            conditions = {"if_match": row.etag, "content_type": row.content_type}
        file = await self.pair.agent.put(path, content, **conditions)
        self._record_upload(path, local.digest, file.etag, file.sha256)
        return LastSynced(local.digest, file.sha256, _remote_file(file).is_own)

    async def _download(self, path: str, local: ScannedFile | None) -> LastSynced:
        file = await self._fetch(path)
        name, expected_digest = (local.name, local.digest) if local else (path, None)
        if not self.pair.directory.put(name, file.data, expected_digest):
            raise _ChangedSinceScan
        self.outcome.down.append(path)
        return LastSynced(file.sha256, file.sha256, _remote_file(file).is_own)

    async def _fetch(self, path: str) -> File:
        """Fetch the file version that the decision was based on. Verifies its digest."""
        try:
            file = await self.pair.agent.get(path, raw=True)
        except NotFound:
            raise _ChangedSinceScan from None
        if file.sha256 != self.rows[path].sha256:
            raise _ChangedSinceScan
        if digest_of(file.data) != file.sha256:
            raise InvalidResponse("the content does not match its digest")
        return file

    def _remove_local(self, path: str, local: ScannedFile) -> None:
        if not self.pair.directory.remove(local.name, local.digest):
            raise _ChangedSinceScan
        self.outcome.removed_here.append(path)

    async def _remove_remote(self, path: str) -> None:
        try:
            await self.pair.agent.delete(path, if_match=self.rows[path].etag)
        except NotFound:
            raise _ChangedSinceScan from None
        self.outcome.removed_there.append(path)

    async def _set_aside(
        self, path: str, local: ScannedFile, remote: RemoteFile | None
    ) -> LastSynced | None:
        content = self.pair.directory.read(local.name)
        if content is None or digest_of(content) != local.digest:
            raise _ChangedSinceScan
        copy = self.pair.directory.write_copy(local.name, content)
        self.outcome.set_aside[path] = copy
        if remote is not None and remote.is_own:
            return await self._download(path, local)
        self._remove_local(path, local)
        return None

    async def _record_conflict(self, path: str, local: ScannedFile) -> LastSynced:
        file = await self._fetch(path)
        copy = self.pair.directory.write_copy(local.name, file.data)
        self.outcome.conflicts[path] = copy
        return LastSynced(None, file.sha256, copy=copy)

    def _clear_copy(self, before: LastSynced | None, after: LastSynced | None) -> None:
        """Remove an obsolete conflict copy unless it was edited."""
        copy = before.copy if before else None
        if before and copy and copy != (after.copy if after else None) and is_ignored(copy):
            self.pair.directory.remove(copy, before.there)


class _ChangedSinceScan(Exception):
    """A file changed after the scan. The next pass decides again."""


def _remote_file(row: FileRow) -> RemoteFile:
    is_protected = row.file_class != "live"
    is_own = is_protected or row.source.startswith("agent-override")
    return RemoteFile(row.sha256, is_own=is_own, read_only=is_protected)
