"""Commits the files a sandbox command changed, merging with concurrent writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.files.write_checks import quota_error
from carrel.actions.idempotency import IdempotentOperation, json_codec, run_once
from carrel.actions.overlay.stacks import load_workspace_revision
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.retry import retry_on_conflict
from carrel.actions.sandbox.command_inputs import CommandInputs, root_change
from carrel.actions.sandbox.storable_result import StorableResult
from carrel.actions.sandbox.workspace_files import WorkspaceFiles
from carrel.core.errors import Busy, IdempotencyInFlight, WorkspaceTooLarge
from carrel.core.files import file_kinds
from carrel.core.identifiers import Path
from carrel.core.redaction.part_redaction import PartRedactor
from carrel.core.sandbox.workspace_directories import count_empty_directories
from carrel.core.sandbox.write_back import (
    MAX_CHANGED_FILES,
    MAX_LISTED_PATHS,
    CommandChanges,
    CommittedFile,
    MergePlan,
    PathConflict,
    check_quota,
    check_sizes,
    committed_files,
    conflict_warnings,
    format_paths,
    plan_merge,
    short_id,
)
from carrel.core.store.commit import Applied, Commit, Outcome, Quota, QuotaExceeded
from carrel.core.store.entry import Entry, FileAttributes, Head
from carrel.core.store.idempotency import Committed, IdempotencyKey
from carrel.core.store.record import CollectionRevision
from carrel.core.store.tree import Tree
from carrel.ports.blobs import THREAD_THRESHOLD_BYTES
from carrel.ports.sandbox import ChangedFile, CommandResult

_MAX_ATTEMPTS: Final = 25
_MAX_TIME_NS: Final = 2**63 - 1
_MAX_REASON_CHARS: Final = 400
"""Characters of a command stored in the commit reason."""


class WriteBackResult(Struct, frozen=True):
    """What a command's commit changed, and messages for the caller."""

    notes: tuple[str, ...] = ()
    changed: tuple[CommittedFile, ...] = ()


_CODEC: Final = json_codec(WriteBackResult)


async def commit_changes(
    workspace: WorkspaceFiles, start: CommandInputs, result: CommandResult, id: str, reason: str
) -> WriteBackResult:
    """Commit all changes of a command or none, except those of the skills that it was given.

    `id` identifies the command. If the call has a name, a repeated call changes nothing and returns
    the same result. Raises WorkspaceTooLarge naming the excess, Busy and IdempotencyInFlight.
    """
    result = StorableResult(result, start)
    if result.discard_reason is not None:
        raise WorkspaceTooLarge(result.discard_reason)
    if not (result.changed or result.deleted or result.directories or result.root):
        return WriteBackResult()
    if workspace.name is None:
        return await _WriteBack(workspace, start, result, id, reason).commit()
    key = IdempotencyKey(
        workspace.actor.tenant, f"write-back/{workspace.workspace}", workspace.name
    )
    in_progress = IdempotencyInFlight("the changes of this call are already being committed")
    operation: IdempotentOperation[WriteBackResult] = IdempotentOperation(
        key=key,
        fingerprint="returned",
        codec=_CODEC,
        mismatch=in_progress,
        in_progress=in_progress,
        rebuild=_empty_result,
        stores_rebuilt=False,
        polls=False,
    )
    write_back = _WriteBack(workspace, start, result, id, reason, key)
    return await run_once(workspace.ports, operation, write_back.commit)


async def _empty_result(_: Committed) -> WriteBackResult:
    return WriteBackResult()


def _within_size(parts: Iterator[bytes], path: Path, max_bytes: int) -> Iterator[bytes]:
    """Yield the parts. Raises WorkspaceTooLarge if the file grew, or redaction adds too much."""
    size = 0
    for part in parts:
        size += len(part)
        if size > max_bytes:
            raise WorkspaceTooLarge(f"a file may have {max_bytes} bytes; larger: {path}")
        yield part


def _stored_attributes(changed: ChangedFile | FileAttributes) -> FileAttributes:
    """Attributes with a time that fits into 64 bits."""
    mtime_ns = changed.mtime_ns
    if mtime_ns is not None:
        mtime_ns = min(max(mtime_ns, -_MAX_TIME_NS), _MAX_TIME_NS)
    return FileAttributes(changed.mode, mtime_ns)


class _WriteBack(Struct):
    """State of committing one command's changes."""

    workspace: WorkspaceFiles
    start: CommandInputs
    result: CommandResult
    id: str
    reason: str
    key: IdempotencyKey | None = None
    rules: TenantRules | None = None
    """Rules under which the contents were loaded."""
    changes: CommandChanges | None = None
    remaining: frozenset[Path] | None = None
    """Paths still to write after a partial commit; the others may have changed since."""
    notes: list[str] = []
    conflicts: dict[Path, PathConflict] = {}
    heads: dict[Path, Head] = {}
    """New heads by path."""

    @retry_on_conflict(_MAX_ATTEMPTS)
    async def commit(self) -> WriteBackResult:
        ports = self.workspace.ports
        rules, changes = await self._load_changes()
        changes = self._remaining_changes(changes)
        [current_tree] = await ports.trees.read((self.workspace.scope,))
        plan = plan_merge(changes, current_tree, short_id(self.id))
        self._raise_if_exceeded(self._check_quota(rules, plan, current_tree))
        writes = (*plan.writes, *plan.deferred_writes)
        collection_revisions = (
            *rules.collection_revisions,
            *await load_workspace_revision(ports, self.workspace.scope, writes),
        )
        commits = self._build_commits(rules, plan, collection_revisions, current_tree)
        outcomes = await ports.trees.commit(commits)
        self._record_conflicts(plan, outcomes)
        if all(isinstance(outcome, Applied) for outcome in outcomes):
            notes = (*self.notes, *await self._load_warnings())
            heads = (self.heads[path] for path in sorted(self.heads))
            return WriteBackResult(notes, tuple(committed_files(heads, self.start.tree)))
        self._raise_if_exceeded(
            next((exceeded for exceeded in outcomes if isinstance(exceeded, QuotaExceeded)), None)
        )
        raise Busy.with_conflicts()

    def _check_quota(
        self, rules: TenantRules, plan: MergePlan, current_tree: Tree
    ) -> QuotaExceeded | None:
        """Check both commits together, since the store checks each by itself."""
        limits = rules.policy.limits_of(self.workspace.scope)
        quota = limits.quota(self.workspace.scope)
        return check_quota(plan, current_tree, quota) if plan.deferred_writes else None

    def _raise_if_exceeded(self, exceeded: QuotaExceeded | None) -> None:
        """Raise WorkspaceTooLarge if a quota is exceeded."""
        if exceeded is not None:
            problem = quota_error(exceeded)
            paths = format_paths(sorted(self.result.changed))
            raise WorkspaceTooLarge(f"{problem}; changed paths: {paths}", **problem.details)

    def _remaining_changes(self, changes: CommandChanges) -> CommandChanges:
        if self.remaining is None:
            return changes
        remaining_entries = {
            path: entry for path, entry in changes.changed.items() if path in self.remaining
        }
        return replace(changes, changed=remaining_entries, deleted=frozenset(), directories={})

    async def _load_changes(self) -> tuple[TenantRules, CommandChanges]:
        """Load and redact the contents under the current rules. Raises WorkspaceTooLarge."""
        rules = await load_rules(self.workspace.ports, self.workspace.actor.tenant)
        if (
            self.changes is not None
            and self.rules
            and self.rules.collection_revisions == rules.collection_revisions
        ):
            return rules, self.changes
        await self._check_limits(rules)
        self.notes[:] = self._withheld_notes()
        entries: dict[Path, Entry] = {}
        for path in sorted(filter(self.workspace.can_see, self.result.changed)):
            if rules.redactor.find_in_text(path.text):
                self.notes.append("[warning: a file whose name contains a secret was not saved]")
                continue
            try:
                entries[path] = await self._build_entry(rules, path)
            except FileNotFoundError:
                self.notes.append(f"[warning: {path} changed while it was read; not saved yet]")
        tree = self.start.tree
        base = {
            path: head.version for path, head in (*tree.heads.items(), *tree.directories.items())
        }
        reported = self.result.directories
        known_directories = {} if reported is None else self.start.directories
        directories = {
            path: _stored_attributes(attributes)
            for path, attributes in (reported or {}).items()
            if self.workspace.can_see(path) and not rules.redactor.find_in_text(path.text)
        }
        deleted = frozenset(filter(self.workspace.can_see, self.result.deleted))
        touched = frozenset(path for path in entries if self.result.changed[path].blob)
        self.rules, self.changes = (
            rules,
            CommandChanges(base, entries, deleted, directories, touched, known_directories),
        )
        return rules, self.changes

    def _withheld_notes(self) -> Sequence[str]:
        """Return a note on changed files that the session may not write."""
        withheld = sorted(path for path in self.result.changed if not self.workspace.can_see(path))
        if not withheld:
            return ()
        return (
            f"[warning: not available in a shared session, not saved: {format_paths(withheld)}]",
        )

    async def _check_limits(self, rules: TenantRules) -> None:
        """Raise WorkspaceTooLarge for what exceeds a limit, before a byte is read."""
        changed = self.result.changed
        reported = self.result.directories or {}
        path_count = len(changed) + len(self.result.deleted) + len(reported)
        if path_count > MAX_CHANGED_FILES:
            paths = format_paths(sorted({*changed, *self.result.deleted}))
            raise WorkspaceTooLarge(
                f"{path_count} paths changed; the limit is {MAX_CHANGED_FILES}: {paths}"
            )
        max_file_bytes = rules.policy.limits_of(self.workspace.scope).max_file_bytes
        oversized = sorted(path for path in changed if changed[path].size > max_file_bytes)
        if oversized:
            raise WorkspaceTooLarge(
                f"a file may have {max_file_bytes} bytes; larger: {format_paths(oversized)}"
            )
        quota = rules.policy.limits_of(self.workspace.scope).quota(self.workspace.scope)
        [current_tree] = await self.workspace.ports.trees.read((self.workspace.scope,))
        existing = current_tree.directories
        changed_directories = {*existing, *reported} - self.result.deleted
        directories = count_empty_directories(current_tree, changed_directories)
        if directories > max(quota.max_files, count_empty_directories(current_tree, existing)):
            raise WorkspaceTooLarge(
                f"a workspace may have {quota.max_files} empty directories; it would have"
                f" {directories}"
            )
        sizes = {path: file.size for path, file in changed.items()}
        self._raise_if_exceeded(
            check_sizes(current_tree, {**dict.fromkeys(self.result.deleted), **sizes}, quota)
        )

    async def _build_entry(self, rules: TenantRules, path: Path) -> Entry:
        """Redact and store a changed file, a large one in parts; a touched one is stored."""
        max_file_bytes = rules.policy.limits_of(self.workspace.scope).max_file_bytes
        changed, blobs = self.result.changed[path], self.workspace.ports.blobs
        attributes = _stored_attributes(changed) if changed.mtime_ns or changed.mode else None
        old_entry = self.start.tree.entry(path)
        if changed.blob is not None and old_entry is not None:
            type = file_kinds.typed_as(changed.kind, old_entry.type)
            return Entry(old_entry.blob, None, type, attributes)
        redactor, detector = PartRedactor(rules.redactor), file_kinds.TextDetector()

        def redact(parts: Iterator[bytes]) -> Iterator[bytes]:
            limited = _within_size(parts, path, max_file_bytes)
            for part in _within_size(redactor.redact(limited), path, max_file_bytes):
                detector.feed(part)
                yield part

        if changed.size > THREAD_THRESHOLD_BYTES:
            blob = await blobs.put_parts(redact(self.result.read_parts(path)))
        else:
            content = b"".join(redact(iter([await self.result.content(path)])))
            [blob] = await blobs.put([content])
        if redactor.replaced:
            self.notes.append(f"[redacted in {path}: {', '.join(redactor.replaced)}]")
        old_type = old_entry.type if old_entry else None
        type = file_kinds.detected_entry_type(changed.kind, path, detector, old_type)
        return Entry(blob, None, type, attributes)

    def _build_commits(
        self,
        rules: TenantRules,
        plan: MergePlan,
        collection_revisions: tuple[CollectionRevision, ...],
        current_tree: Tree,
    ) -> list[Commit]:
        """Build one commit, or two if a file replaces a directory or the reverse.

        The store applies both in one transaction. The first reserves quota for the second, so that
        neither is refused for its size alone.
        """
        limits = rules.policy.limits_of(self.workspace.scope)
        quota = limits.quota(self.workspace.scope)
        later_bytes = sum(write.entry.blob.size for write in plan.deferred_writes if write.entry)
        max_bytes = None if quota.max_bytes is None else max(0, quota.max_bytes - later_bytes)
        first = Commit(
            plan.writes,
            self.workspace.actor.name,
            rules.redact_text(self.reason)[
                :_MAX_REASON_CHARS
            ],  # redact first: half a secret would not be recognised
            self.workspace.ports.clock.now(),
            expects=plan.expects,
            collection_revisions=collection_revisions,
            changes=root_change(self.start, self.result, current_tree),
            path_checks=plan.path_checks,
            quotas=(
                Quota(quota.scope, max(0, quota.max_files - len(plan.deferred_writes)), max_bytes),
            ),
            max_versions=limits.max_versions,
            run=self.workspace.run,
            idempotency_key=None if plan.deferred_writes else self.key,
        )
        if not plan.deferred_writes:
            return [first] if first.writes or first.changes else []
        overrides = {
            "expects": (),
            "changes": (),
            "path_checks": plan.deferred_path_checks,
            "quotas": (quota,),
        }
        return [
            first,
            replace(first, writes=plan.deferred_writes, idempotency_key=self.key, **overrides),
        ]

    def _record_conflicts(self, plan: MergePlan, outcomes: Sequence[Outcome]) -> None:
        """Record the conflicts of an applied commit."""
        if outcomes and not isinstance(outcomes[0], Applied):
            return
        self.remaining = frozenset(write.path for write in plan.deferred_writes)
        written_heads: dict[Path, Head] = {}
        for outcome in outcomes:
            if isinstance(outcome, Applied):
                written_heads |= {head.path: head for head in outcome.heads}
        self.heads |= written_heads
        for conflict in plan.conflicts:
            if conflict.version is not None:
                self.conflicts[conflict.path] = conflict
            elif conflict.path in written_heads:
                self.conflicts[conflict.path] = replace(
                    conflict, version=written_heads[conflict.path].version - 1
                )

    async def _load_warnings(self) -> Sequence[str]:
        conflicts = [self.conflicts[path] for path in sorted(self.conflicts)]
        version_keys = [
            (self.workspace.scope, item.other_path, item.version or 0)
            for item in conflicts[:MAX_LISTED_PATHS]
        ]
        versions = await self.workspace.ports.trees.versions(version_keys) if version_keys else ()
        authors = {(item.head.path, item.head.version): item.author for item in versions if item}
        return tuple(conflict_warnings(conflicts, authors))
