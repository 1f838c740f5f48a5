"""Bringing back what a command left in its directory: one commit, whoever worked there too."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.files.file_writer import quota_error
from carrel.actions.overlay.stacks import standing
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.sandbox.workspace_files import WorkspaceFiles
from carrel.core.errors import Busy, IdempotencyInFlight, WorkspaceTooLarge
from carrel.core.files import file_kinds
from carrel.core.identifiers import Path
from carrel.core.sandbox.write_back import (
    MOST_CHANGED,
    MOST_NAMED,
    CommandChanges,
    MergePlan,
    PathConflict,
    decide,
    exceeds_quota,
    named,
    short_id,
    warnings,
)
from carrel.core.store.idempotency import (
    Claimed,
    Committed,
    Completed,
    InProgress,
    KeyMismatch,
    StoredResponse,
)
from carrel.core.store.record import CollectionRevision
from carrel.core.store.tree import (
    Applied,
    Commit,
    Entry,
    Head,
    IdempotencyKey,
    Outcome,
    Quota,
    QuotaExceeded,
    Tree,
)
from carrel.ports.sandbox import CommandResult, FileKind, InputFile

_ATTEMPTS: Final = 25
_LEASE: Final = 60_000
_DONE: Final = 200
_CONTEXT: Final = "returned"
_LONGEST_WHY: Final = 400
"""Characters of a command that the history tells."""
_HEAVY: Final = 1024 * 1024
"""Bytes from which on a content is looked through in a thread."""


class CommandInputs(Struct, frozen=True):
    """A workspace as a command found it."""

    tree: Tree

    @property
    def files(self) -> Mapping[Path, InputFile]:
        return {
            path: InputFile(FileKind(file_kinds.form_of(head.entry.type)), head.entry.blob)
            for path, head in self.tree.heads.items()
            if head.entry
        }


async def load_inputs(bench: WorkspaceFiles) -> CommandInputs:
    [tree] = await bench.ports.trees.read((bench.scope,))
    return CommandInputs(tree)


async def commit_changes(
    bench: WorkspaceFiles, start: CommandInputs, ran: CommandResult, id: str, reason: str
) -> Sequence[str]:
    """Keep what it changed, whole or not at all; what the caller is to know of it.

    ``id`` tells this command from others. Where the caller has a name for its call, doing it again
    does nothing and tells the same. Raises TooLarge, which names what is too much, Busy and
    InFlight.
    """
    if ran.discard_reason is not None:
        raise WorkspaceTooLarge(ran.discard_reason)
    if not ran.changed and not ran.deleted:
        return ()
    if bench.name is None:
        return await _WriteBack(bench, start, ran, id, reason).kept()
    key = IdempotencyKey(bench.actor.tenant, f"hands/{bench.workspace}", bench.name)
    ports, now = bench.ports, bench.ports.clock.now()
    match await ports.idempotency.claim(key, "returned", now, now - _LEASE):
        case Completed(receipt):
            told = ports.vault.open(receipt.sealed, _CONTEXT)
            return msgspec.json.decode(told, type=tuple[str, ...])
        case Committed():
            return ()
        case InProgress() | KeyMismatch():
            raise IdempotencyInFlight("the changes of this call are being kept already")
        case Claimed():
            return await _first(_WriteBack(bench, start, ran, id, reason, key), key)


async def _first(back: _WriteBack, key: IdempotencyKey) -> Sequence[str]:
    ports = back.bench.ports
    try:
        told = await back.kept()
    except Exception:
        await ports.idempotency.release(key)
        raise
    sealed = ports.vault.seal(msgspec.json.encode(told), _CONTEXT)
    await ports.idempotency.complete(key, StoredResponse(_DONE, sealed))
    return told


class _WriteBack(Struct):
    """One command's changes on their way."""

    bench: WorkspaceFiles
    start: CommandInputs
    ran: CommandResult
    id: str
    why: str
    key: IdempotencyKey | None = None
    rules: TenantRules | None = None
    """Those that the contents were taken in under."""
    brought: CommandChanges | None = None
    left: frozenset[Path] | None = None
    """What is still to be written, where the rest has been: that may be another's by now."""
    notes: list[str] = []
    met: dict[Path, PathConflict] = {}

    async def kept(self) -> Sequence[str]:
        ports = self.bench.ports
        for _ in range(_ATTEMPTS):
            rules, brought = await self._taken_in()
            brought = self._rest(brought)
            [fresh] = await ports.trees.read((self.bench.scope,))
            decision = decide(brought, fresh, short_id(self.id))
            self._refuse(self._overfull(rules, decision, fresh))
            collection_revisions = (*rules.shelves, *await standing(ports, self.bench.scope))
            outcomes = await ports.trees.commit(
                self._commits(rules, decision, collection_revisions)
            )
            self._learn(decision, outcomes)
            if all(isinstance(outcome, Applied) for outcome in outcomes):
                return (*self.notes, *await self._warnings())
            self._refuse(next((one for one in outcomes if isinstance(one, QuotaExceeded)), None))
        raise Busy("many others are writing in this workspace")

    def _overfull(
        self, rules: TenantRules, decision: MergePlan, fresh: Tree
    ) -> QuotaExceeded | None:
        """Two commits are looked at together, since the store looks at each by itself."""
        limits = rules.policy.limits_of(self.bench.scope)
        quota = limits.quota(self.bench.scope)
        return exceeds_quota(decision, fresh, quota) if decision.later else None

    def _refuse(self, full: QuotaExceeded | None) -> None:
        """Raises TooLarge where there is something to refuse."""
        if full is not None:
            problem = quota_error(full)
            paths = named(sorted(self.ran.changed))
            raise WorkspaceTooLarge(f"{problem}; changed were {paths}", **problem.details)

    def _rest(self, brought: CommandChanges) -> CommandChanges:
        if self.left is None:
            return brought
        rest = {path: entry for path, entry in brought.changed.items() if path in self.left}
        return CommandChanges(brought.base, rest, frozenset())

    async def _taken_in(self) -> tuple[TenantRules, CommandChanges]:
        """The contents under the rules of the moment, one after the other. Raises TooLarge."""
        rules = await load_rules(self.bench.ports, self.bench.actor.tenant)
        if self.brought is not None and self.rules and self.rules.shelves == rules.shelves:
            return rules, self.brought
        self._admit(rules)
        self.notes.clear()
        entries: dict[Path, Entry] = {}
        for path in sorted(self.ran.changed):
            if rules.redactor.finds_in(path.text):
                self.notes.append("[warning: a file whose name holds a secret was not kept]")
                continue
            try:
                entries[path] = await self._entry(rules, path)
            except FileNotFoundError:
                self.notes.append(f"[warning: {path} was changed while it was read: not kept yet]")
        heads = self.start.tree.heads
        base = {path: head.version for path, head in heads.items()}
        self.rules, self.brought = rules, CommandChanges(base, entries, self.ran.deleted)
        return rules, self.brought

    def _admit(self, rules: TenantRules) -> None:
        changed = self.ran.changed
        many = len(changed) + len(self.ran.deleted)
        if many > MOST_CHANGED:
            paths = named(sorted({*changed, *self.ran.deleted}))
            raise WorkspaceTooLarge(f"{many} paths changed, and {MOST_CHANGED} may: {paths}")
        largest = rules.policy.limits_of(self.bench.scope).max_file_bytes
        large = sorted(path for path in changed if changed[path].size > largest)
        if large:
            raise WorkspaceTooLarge(
                f"a file may have {largest} bytes, and more have {named(large)}"
            )
        self._refuse(self._overweight(rules))

    def _overweight(self, rules: TenantRules) -> QuotaExceeded | None:
        """Whether all of it is too much whatever else is there: then none of it is even read."""
        quota = rules.policy.limits_of(self.bench.scope).quota(self.bench.scope)
        coming = sum(changed.size for changed in self.ran.changed.values())
        heads = self.start.tree.heads.values()
        there = sum(head.entry.blob.size for head in heads if head.entry)
        heavy = quota.size is not None and coming > max(quota.size, there)
        return QuotaExceeded(quota, len(self.ran.changed), coming) if heavy else None

    async def _entry(self, rules: TenantRules, path: Path) -> Entry:
        content = await self.ran.content(path)
        largest = rules.policy.limits_of(self.bench.scope).max_file_bytes
        if len(content) > largest:  # which it was not, when it was looked at
            raise WorkspaceTooLarge(f"a file may have {largest} bytes, and more have {path}")
        if len(content) > _HEAVY:
            redacted = await asyncio.to_thread(rules.redactor.redact, content)
        else:
            redacted = rules.redactor.redact(content)
        if redacted.replaced:
            self.notes.append(f"[redacted in {path}: {', '.join(redacted.replaced)}]")
        was = self.start.tree.entry(path)
        form = self.ran.changed[path].form
        type = file_kinds.type_for(form, path, redacted.content, was.type if was else None)
        [blob] = await self.bench.ports.blobs.put([redacted.content])
        return Entry(blob, None, type)

    def _commits(
        self,
        rules: TenantRules,
        decision: MergePlan,
        collection_revisions: tuple[CollectionRevision, ...],
    ) -> list[Commit]:
        """One; and where a file takes a directory's place, or the reverse, a second at once.

        The store applies both in one transaction. The first leaves room for the second, so that
        neither is refused for its size alone.
        """
        limits = rules.policy.limits_of(self.bench.scope)
        quota = limits.quota(self.bench.scope)
        coming = sum(write.entry.blob.size for write in decision.later if write.entry)
        most = None if quota.size is None else max(0, quota.size - coming)
        first = Commit(
            decision.writes,
            self.bench.actor.name,
            rules.redact_text(self.why)[:_LONGEST_WHY],  # of half a secret nobody could tell
            self.bench.ports.clock.now(),
            expects=decision.expects,
            collection_revisions=collection_revisions,
            path_checks=decision.rooms,
            quotas=(Quota(quota.scope, max(0, quota.files - len(decision.later)), most),),
            max_versions=limits.max_versions,
            run=self.bench.run,
            idempotency_key=None if decision.later else self.key,
        )
        if not decision.later:
            return [first] if decision.writes else []
        more = {"expects": (), "path_checks": decision.later_rooms, "quotas": (quota,)}
        return [first, replace(first, writes=decision.later, idempotency_key=self.key, **more)]

    def _learn(self, decision: MergePlan, outcomes: Sequence[Outcome]) -> None:
        """Remember whom it met, where that has come true."""
        if outcomes and not isinstance(outcomes[0], Applied):
            return
        self.left = frozenset(write.path for write in decision.later)
        ours: dict[Path, Head] = {}
        for outcome in outcomes:
            if isinstance(outcome, Applied):
                ours |= {head.path: head for head in outcome.heads}
        for one in decision.meetings:
            if one.version is not None:
                self.met[one.path] = one
            elif one.path in ours:
                self.met[one.path] = replace(one, version=ours[one.path].version - 1)

    async def _warnings(self) -> Sequence[str]:
        met = [self.met[path] for path in sorted(self.met)]
        asks = [(self.bench.scope, one.other, one.version or 0) for one in met[:MOST_NAMED]]
        found = await self.bench.ports.trees.versions(asks) if asks else ()
        whose = {(one.head.path, one.head.version): one.by for one in found if one}
        return tuple(warnings(met, whose))
