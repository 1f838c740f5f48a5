"""Commits many file changes together: all are applied, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.files import write_checks
from carrel.actions.files.change_contents import ChangeContents, load_contents
from carrel.actions.files.change_expansion import ExpandedChanges, expand_changes
from carrel.actions.files.commit_failures import draft_checks, find_failures
from carrel.actions.files.commit_results import CommitResult, results_of_heads
from carrel.actions.overlay.agent_layers import AgentLayers, load_agent_layers
from carrel.actions.overlay.path_clashes import draft_path_checks
from carrel.actions.overlay.stacks import load_workspace_revision
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.records import FileDrafts
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor, Permission
from carrel.core.agents.identity_name import IDENTITY_PATH
from carrel.core.errors import Busy, Refusal, WorkspaceTooLarge
from carrel.core.identifiers import Path, ScopeKind, Stack
from carrel.core.overlay.commit_plan import CommitContext, CommitPlan, plan_commit
from carrel.core.overlay.file_changes import (
    TRANSFERS,
    ChangeKind,
    FailedChange,
    FileChange,
    check_requested,
    commit_refusal,
)
from carrel.core.overlay.placeholders import render_bytes
from carrel.core.overlay.planned_writes import path_occupied_error
from carrel.core.overlay.review_events import requested_reviews
from carrel.core.sandbox.workspace_directories import count_empty_directories
from carrel.core.store.commit import (
    Applied,
    Commit,
    ExpectationFailed,
    PathOccupied,
    QuotaExceeded,
)
from carrel.core.store.entry import Head
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import record_revision
from carrel.ports import Ports


class CommitOptions(Struct, frozen=True):
    """Provenance of a commit."""

    reason: str = ""
    run: str | None = None
    idempotency_key: IdempotencyKey | None = None
    max_files: int | None = None
    """Limit of files below that of the policy."""


DEFAULT_OPTIONS = CommitOptions()

_SHARED_KINDS = frozenset({ScopeKind.TEMPLATE, ScopeKind.DEFAULTS})

_WITH_CONTENT = frozenset({ChangeKind.PUT, ChangeKind.MOVE, ChangeKind.COPY})


def require_access(actor: Actor, changes: Sequence[FileChange]) -> None:
    """Raise Forbidden if the changes need a permission beside that to write.

    A move or copy shows what it reads.
    """
    if any(change.kind in TRANSFERS for change in changes):
        actor.require(Permission.WORKSPACE_READ)


async def commit_files(
    ports: Ports,
    stack: Stack,
    actor: Actor,
    changes: Sequence[FileChange],
    options: CommitOptions = DEFAULT_OPTIONS,
) -> CommitResult:
    """Apply all changes to the nearest layer in one transaction, or none.

    They obey the rules of single writes, and are evaluated together: no path may be changed twice.
    The refusal names every change that failed. Raises the refusals of `files.put` and
    `files.delete`.
    """
    requested = [replace(change, index=index) for index, change in enumerate(changes)]
    check_requested(requested)
    await write_checks.check_run(ports, actor, stack[0], options.run)
    return await _FileCommitter(ports, stack, actor, options).commit(requested)


class _FileCommitter(Struct, frozen=True):
    ports: Ports
    stack: Stack
    actor: Actor
    options: CommitOptions

    @retry_on_conflict()
    async def commit(self, requested: Sequence[FileChange]) -> CommitResult:
        rules = await load_rules(self.ports, self.actor.tenant)
        self._require_writable(requested, rules)
        agent_layers = await self._load_agent_layers(rules)
        resolver = agent_layers.resolver if agent_layers else None
        stack = agent_layers.stack if agent_layers else self.stack
        expanded = await expand_changes(self.ports, stack, resolver, requested)
        if expanded.changes is not requested:
            self._require_writable(expanded.changes, rules)
        drafts, invalid = await self._check_paths(stack, expanded, rules)
        is_shared = stack[0].kind in _SHARED_KINDS
        context = CommitContext(expanded.layers, resolver)
        failures = [*expanded.failures, *invalid]
        failed = {id(failure.change) for failure in failures}
        valid = [change for change in expanded.changes if id(change) not in failed]
        contents = await load_contents(self.ports, rules, context, valid)
        plan = plan_commit(context, contents.changes)
        failures += contents.failures
        if failures or plan.failures:
            others = await find_failures(self.ports, context, contents.changes, drafts)
            raise commit_refusal([*failures, *others])
        await self._check_identity(context, contents)
        await self._check_directory_count(rules, contents.changes)
        plan = _with_drafts(plan, drafts, is_shared=is_shared)
        heads = await self._commit(rules, plan, agent_layers)
        if heads is None:
            occupied = await find_failures(self.ports, context, contents.changes, drafts)
            raise commit_refusal(occupied) if occupied else Busy.with_conflicts()
        classes = rules.policy.classes if is_shared else None
        return results_of_heads(context, classes, contents, heads)

    def _require_writable(self, changes: Sequence[FileChange], rules: TenantRules) -> None:
        """Check permission for every path that is written, before any state is read."""
        if self.stack[0].kind is not ScopeKind.AGENT:
            return
        failures = []
        for change in changes:
            try:
                for path in change.written_paths:
                    write_checks.require_writable(self.actor, self.stack[0], path, rules)
            except Refusal as refusal:
                failures.append(FailedChange(change, refusal))
        if failures:
            raise commit_refusal(failures)

    async def _check_paths(
        self, stack: Stack, expanded: ExpandedChanges, rules: TenantRules
    ) -> tuple[Mapping[Path, FileDrafts], Sequence[FailedChange]]:
        """Check the paths that get a content, and media types."""
        scope, failures = stack[0], []
        creating = [
            change
            for change in expanded.changes
            if change.kind in _WITH_CONTENT or change.kind is ChangeKind.MAKE_DIRECTORY
        ]
        with_secrets = rules.find_texts_with_secrets([change.path.text for change in creating])
        for change in creating:
            try:
                write_checks.check_path_class(scope, change.path, rules)
                if change.path.text in with_secrets:
                    write_checks.check_path_secret(change.path, rules)
                if change.type is not None:
                    write_checks.check_media_type(change.type)
                    write_checks.check_type_secret(change.type, rules)
            except Refusal as refusal:
                failures.append(FailedChange(change, refusal))
        by_path = {change.path: change for change in creating}
        checked = await draft_path_checks(self.ports, stack, list(by_path), rules.policy.classes)
        failures += [FailedChange(by_path[path], e) for path, e in checked.refusals.items()]
        return checked.drafts, failures

    async def _load_agent_layers(self, rules: TenantRules) -> AgentLayers | None:
        """Load an agent's current stack and resolver, with the classes that the commit expects."""
        scope = self.stack[0]
        if scope.kind is not ScopeKind.AGENT:
            return None
        loaded = await load_agent_layers(self.ports, scope.tenant, scope.name)
        return replace(loaded, resolver=replace(loaded.resolver, classes=rules.policy.classes))

    async def _check_identity(self, context: CommitContext, contents: ChangeContents) -> None:
        """Raise Forbidden if an agent changes its own name."""
        resolver = context.resolver
        written = {path for change in contents.changes for path in change.written_paths}
        if resolver is None or IDENTITY_PATH not in written:
            return
        nearest, *lower = context.layers
        after = (replace(nearest, heads={}), *lower)
        content = contents.identity
        await write_checks.check_name_unchanged(
            self.ports,
            self.actor,
            resolver,
            context.layers,
            after if content is None else render_bytes(content, resolver.variables),
        )

    async def _check_directory_count(
        self, rules: TenantRules, changes: Sequence[FileChange]
    ) -> None:
        """Raise WorkspaceTooLarge if there would be more directories than files are allowed."""
        new_paths = {change.path for change in changes if change.kind is ChangeKind.MAKE_DIRECTORY}
        if not new_paths:
            return
        limit = rules.policy.limits_of(self.stack[0]).max_files
        [tree] = await self.ports.trees.read((self.stack[0],))
        removed = {path for change in changes for path in change.written_paths}
        count = count_empty_directories(tree, new_paths | tree.directories.keys() - removed)
        if count > max(limit, count_empty_directories(tree, tree.directories)):
            raise WorkspaceTooLarge(
                f"the workspace may have {limit} empty directories", maxDirectories=limit
            )

    async def _commit(
        self, rules: TenantRules, plan: CommitPlan, agent_layers: AgentLayers | None
    ) -> Mapping[Path, Head] | None:
        """Return the new heads by path, None if a new path is not free.

        Raises Busy if the changes must be planned again.
        """
        if not plan.writes:
            return {}
        commit = await self._build_commit(rules, plan, agent_layers)
        [outcome] = await self.ports.trees.commit([commit])
        match outcome:
            case Applied():
                return {head.path: head for head in outcome.heads}
            case PathOccupied(is_by_variant=True):
                raise path_occupied_error(outcome)
            case PathOccupied():
                return None
            case QuotaExceeded():
                raise write_checks.quota_error(outcome)
            case ExpectationFailed():
                raise Busy.with_conflicts()

    async def _build_commit(
        self, rules: TenantRules, plan: CommitPlan, agent_layers: AgentLayers | None
    ) -> Commit:
        scope, options = self.stack[0], self.options
        limits = rules.policy.limits_of(scope)
        quota = limits.quota(scope)
        if options.max_files is not None:
            quota = replace(quota, max_files=min(quota.max_files, options.max_files))
        reason = rules.redact_text(options.reason) or f"change {len(plan.writes)} files"
        subjects = (write_checks.audit_subjects(scope, w.path, rules) for w in plan.writes)
        return Commit(
            writes=plan.writes,
            author=self.actor.name,
            reason=reason,
            at=self.ports.clock.now(),
            expects=plan.expects,
            collection_revisions=(
                *rules.collection_revisions,
                *await load_workspace_revision(self.ports, scope, plan.writes),
            ),
            record_revisions=(record_revision(agent_layers.agent),) if agent_layers else (),
            path_checks=plan.path_checks,
            quotas=(quota,) if any(write.entry for write in plan.writes) else (),
            max_versions=limits.max_versions,
            run=options.run,
            action=write_checks.WRITE_ACTION,
            audit_subjects=tuple(dict.fromkeys(name for names in subjects for name in names)),
            events=requested_reviews(scope, plan.writes, rules.policy.classes),
            idempotency_key=options.idempotency_key,
            key=self.actor.key_reference,
        )


def _with_drafts(
    plan: CommitPlan, drafts: Mapping[Path, FileDrafts], *, is_shared: bool
) -> CommitPlan:
    """The plan with what the store must check once more for new paths."""
    expects = [expect for path in drafts for expect in drafts[path].expects] if is_shared else ()
    return replace(plan, path_checks=draft_checks(plan, drafts), expects=(*plan.expects, *expects))
