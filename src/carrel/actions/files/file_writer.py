"""Writes one file: plans, commits, and plans again on conflict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.files import write_checks
from carrel.actions.files.content_redaction import redact_content
from carrel.actions.overlay.agent_layers import AgentLayers, load_agent_layers
from carrel.actions.overlay.path_clashes import draft_path_check
from carrel.actions.overlay.stacks import load_workspace_revision
from carrel.actions.policy.tenant_rules import TenantRules, find_cached_rules, load_rules
from carrel.actions.retry import MAX_ATTEMPTS, retry_on_conflict
from carrel.core.access import Actor, CredentialKind
from carrel.core.agents.identity_name import IDENTITY_PATH
from carrel.core.errors import (
    Busy,
    Refusal,
)
from carrel.core.identifiers import Path, ScopeKind, Stack
from carrel.core.overlay import agent_writes, planned_writes
from carrel.core.overlay.agent_resolution import AgentFileResolver, file_from_version
from carrel.core.overlay.agent_writes import NewContent
from carrel.core.overlay.compose import File, Layers, resolve
from carrel.core.overlay.placeholders import render_bytes
from carrel.core.overlay.planned_writes import PlannedWrite, path_occupied_error
from carrel.core.overlay.review_events import requested_reviews
from carrel.core.overlay.write_condition import UNCONDITIONAL, WriteCondition
from carrel.core.redaction.redactor import RedactionResult
from carrel.core.store.blob import Blob
from carrel.core.store.commit import (
    Applied,
    Commit,
    ExpectationFailed,
    PathOccupied,
    QuotaExceeded,
)
from carrel.core.store.entry import MARKDOWN, Head
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import CollectionRevision, record_revision
from carrel.ports import Ports


class WriteResult(Struct, frozen=True, gc=False):
    """Written file with its stored content and what was redacted."""

    file: File
    content: bytes
    redacted: RedactionResult


class StagedContent(Struct, frozen=True, gc=False):
    """Content of a caller, redacted and stored in parts before the commit that refers to it."""

    blob: Blob
    replaced: tuple[str, ...]
    """Secret ids and pattern names that were replaced, sorted."""
    warned: tuple[str, ...]
    collection_revisions: tuple[CollectionRevision, ...]
    """Revisions of the rules under which it was redacted."""


class StagedWrite(Struct, frozen=True, gc=False):
    """Written file, without its content."""

    file: File
    content: StagedContent


class WriteOptions(Struct, frozen=True, gc=False):
    """Options of a write besides the content."""

    condition: WriteCondition = UNCONDITIONAL
    type: str | None = None
    reason: str = ""
    run: str | None = None
    idempotency_key: IdempotencyKey | None = None
    accept_template_update: bool = False
    """Override the file although it is pinned."""


StageAgain: TypeAlias = Callable[[TenantRules, StagedContent], Awaitable[StagedContent]]
"""Redacts staged content under other rules and stores the result."""
DEFAULT_OPTIONS: Final = WriteOptions()


class FileWriter(Struct, frozen=True, gc=False):
    """Writes one file: authorizes, redacts, plans, commits; retries on conflict.

    Uses cached rules when they are current.
    """

    ports: Ports
    stack: Stack
    path: Path
    actor: Actor
    options: WriteOptions

    async def put(self, content: bytes) -> WriteResult:
        await self._check_options()
        tenant = self.actor.tenant
        rules = find_cached_rules(self.ports, tenant) or await load_rules(self.ports, tenant)
        try:
            redacted = await self._check_and_redact(rules, content)
        except Refusal:
            redacted = None
        # Large content is stored before the commit, so it needs the current rules.
        if redacted is None or len(redacted.content) > self.ports.blobs.inline_max_bytes:
            rules = await load_rules(self.ports, tenant)
            redacted = await self._check_and_redact(rules, content)
        result = await self._try_put_redacted(rules, redacted, first=True)
        return result or await self._put_again(content)

    @retry_on_conflict(MAX_ATTEMPTS - 1)
    async def _put_again(self, content: bytes) -> WriteResult:
        rules = await load_rules(self.ports, self.actor.tenant)
        redacted = await self._check_and_redact(rules, content)
        result = await self._try_put_redacted(rules, redacted, first=False)
        if result is None:
            raise Busy.with_conflicts(str(self.path))
        return result

    async def check_before_upload(self) -> TenantRules:
        """Return the current rules if the file may be written, before its content is received.

        The condition is checked too, and again by the commit.
        """
        await self._check_options()
        rules = await load_rules(self.ports, self.actor.tenant)
        self._check_writable(rules)
        if self.options.condition != UNCONDITIONAL:
            await self._check_condition(rules)
        return rules

    async def _check_condition(self, rules: TenantRules) -> None:
        """Raise WorkspaceConflict if the current file does not meet the condition."""
        if agent_layers := await self._load_agent_layers(rules):
            layers = await self._read_layers(agent_layers.stack)
            current = agent_layers.resolver.resolve(self.path, layers)
        else:
            current = resolve(self.path, await self._read_layers(self.stack))
        self.options.condition.check(self.path, current)

    @retry_on_conflict()
    async def put_staged(self, staged: StagedContent, stage_again: StageAgain) -> StagedWrite:
        """Write content that was stored before; `stage_again` redacts it under newer rules."""
        await self._check_options()
        rules = await load_rules(self.ports, self.actor.tenant)
        self._check_writable(rules)
        if staged.collection_revisions != rules.collection_revisions:
            staged = await stage_again(rules, staged)
        rules.policy.limits_of(self.stack[0]).check_file_size(staged.blob.size)
        file = await self._try_put(rules, staged.blob, first=False)
        if file is None:
            raise Busy.with_conflicts(str(self.path))
        return StagedWrite(file, staged)

    @retry_on_conflict()
    async def delete(self) -> Head:
        await self._check_options()
        rules = await load_rules(self.ports, self.actor.tenant)
        write_checks.require_writable(self.actor, self.stack[0], self.path, rules)
        condition = self.options.condition
        agent_layers = await self._load_agent_layers(rules)
        if agent_layers is None:
            layers = await self._read_layers(self.stack)
            planned = planned_writes.plan_delete(layers, self.path, condition)
        else:
            resolver, layers = agent_layers.resolver, await self._read_layers(agent_layers.stack)
            planned = agent_writes.plan_agent_delete(layers, self.path, resolver, condition)
            if self._is_own_identity:
                layers_after = (replace(layers[0], heads={}), *layers[1:])
                await self._check_name_unchanged(resolver, layers, layers_after)
        head = await self._commit(rules, planned, f"delete {self.path.text}", agent_layers)
        if head is None:
            raise Busy.with_conflicts(str(self.path))
        return head

    async def _try_put_redacted(
        self, rules: TenantRules, redacted: RedactionResult, *, first: bool
    ) -> WriteResult | None:
        """Return the result, or None if it must be planned again."""
        [blob] = await self.ports.blobs.put((redacted.content,))
        file = await self._try_put(rules, blob, first=first)
        return None if file is None else WriteResult(file, redacted.content, redacted)

    async def _try_put(self, rules: TenantRules, blob: Blob, *, first: bool) -> File | None:
        """Return the written file, or None if it must be planned again."""
        stack, path, condition = self.stack, self.path, self.options.condition
        type, kind = self.options.type or MARKDOWN, stack[0].kind
        if agent_layers := await self._load_agent_layers(rules):
            new_content = NewContent(blob, type, self.options.accept_template_update)
            return await self._try_put_override(rules, new_content, agent_layers)
        check = await draft_path_check(self.ports, stack, path, rules.policy.classes)
        planned = None
        if first and len(stack) == 1:
            planned = planned_writes.plan_put_without_read(stack[0], path, blob, condition, type)
        if planned is None:
            planned = planned_writes.plan_put(
                await self._read_layers(stack), path, blob, condition, type
            )
        is_shared = kind is ScopeKind.TEMPLATE or kind is ScopeKind.DEFAULTS
        if is_shared:
            expects = (*planned.expects, *check.expects)
            planned = replace(planned, expects=expects, path_checks=check.path_checks)
        head = await self._commit(rules, planned, f"put {path.text}")
        if head is None:
            return None
        file = file_from_version(stack, None, head, stack[0])
        return replace(file, file_class=rules.policy.classes.class_of(path)) if is_shared else file

    async def _try_put_override(
        self, rules: TenantRules, new_content: NewContent, agent_layers: AgentLayers
    ) -> File | None:
        """Like `_try_put` for an agent's file; content equal to upstream is not stored."""
        resolver, layers = agent_layers.resolver, await self._read_layers(agent_layers.stack)
        planned = agent_writes.plan_agent_put(
            layers, self.path, new_content, resolver, self.options.condition
        )
        if self._is_own_identity:
            blob = new_content.blob
            after = (await self.ports.blobs.get([blob]))[blob.digest]
            rendered = render_bytes(after, resolver.variables)
            await self._check_name_unchanged(resolver, layers, rendered)
        if planned is not None:
            if planned.path_checks:
                check = await draft_path_check(
                    self.ports, agent_layers.stack, self.path, resolver.classes
                )
                checks = check.path_checks or planned.path_checks
                planned = replace(planned, path_checks=checks)
            head = await self._commit(rules, planned, f"put {self.path.text}", agent_layers)
            if head is None:
                return None
            layers = (replace(layers[0], heads={self.path: head}), *layers[1:])
        file = resolver.resolve(self.path, layers)
        assert file is not None
        return file

    @property
    def _is_own_identity(self) -> bool:
        """Whether an agent writes the file that has its name."""
        return self.actor.kind is CredentialKind.AGENT and self.path == IDENTITY_PATH

    async def _check_name_unchanged(
        self, resolver: AgentFileResolver, before: Layers, after: Layers | bytes
    ) -> None:
        """Raise Forbidden if an agent changes its own name."""
        await write_checks.check_name_unchanged(self.ports, self.actor, resolver, before, after)

    async def _read_layers(self, stack: Stack) -> Layers:
        return await self.ports.trees.read(stack, (self.path,))

    async def _load_agent_layers(self, rules: TenantRules) -> AgentLayers | None:
        """Load the agent's current stack and resolver; None for other workspaces.

        The resolver has the file classes that the commit expects.
        """
        scope = self.stack[0]
        if scope.kind is not ScopeKind.AGENT:
            return None
        loaded = await load_agent_layers(self.ports, scope.tenant, scope.name)
        return replace(loaded, resolver=replace(loaded.resolver, classes=rules.policy.classes))

    async def _check_options(self) -> None:
        """Raise ValidationError, NotFound or Conflict."""
        write_checks.check_media_type(self.options.type)
        if self.options.run is not None:
            await self._check_run(self.options.run)

    async def _check_and_redact(self, rules: TenantRules, content: bytes) -> RedactionResult:
        """Return the content to store.

        Raises Forbidden, WorkspaceTooLarge or ValidationError.
        """
        self._check_writable(rules)
        return await redact_content(rules, self.stack[0], content)

    def _check_writable(self, rules: TenantRules) -> None:
        """Check path and type. Raises Forbidden or ValidationError."""
        scope = self.stack[0]
        write_checks.require_writable(self.actor, scope, self.path, rules)
        write_checks.check_path(scope, self.path, rules)
        write_checks.check_type_secret(self.options.type, rules)

    async def _check_run(self, id: str) -> None:
        await write_checks.check_run(self.ports, self.actor, self.stack[0], id)

    async def _commit(
        self,
        rules: TenantRules,
        planned: PlannedWrite,
        reason: str,
        agent_layers: AgentLayers | None = None,
    ) -> Head | None:
        """Return the new head, or None if the write must be planned again."""
        scope, options = planned.write.scope, self.options
        limits = rules.policy.limits_of(scope)
        if options.reason:
            reason = rules.redactor.redact(options.reason.encode()).content.decode()
        collection_revisions = rules.collection_revisions
        if scope.is_shared_workspace:
            collection_revisions = (
                *collection_revisions,
                *await load_workspace_revision(self.ports, scope, (planned.write,)),
            )
        commit = Commit(
            writes=(planned.write,),
            author=self.actor.name,
            reason=reason,
            at=self.ports.clock.now(),
            expects=planned.expects,
            collection_revisions=collection_revisions,
            record_revisions=(record_revision(agent_layers.agent),) if agent_layers else (),
            path_checks=planned.path_checks,
            quotas=(limits.quota(scope),) if planned.write.entry else (),
            max_versions=limits.max_versions,
            run=options.run,
            action=write_checks.WRITE_ACTION,
            audit_subjects=write_checks.audit_subjects(scope, self.path, rules),
            events=requested_reviews(scope, (planned.write,), rules.policy.classes),
            idempotency_key=options.idempotency_key,
            key=self.actor.key_reference,
        )
        [outcome] = await self.ports.trees.commit((commit,))
        match outcome:
            case Applied():
                return outcome.heads[0]
            case PathOccupied(is_by_variant=True):
                return None
            case PathOccupied():
                raise path_occupied_error(outcome)
            case QuotaExceeded():
                raise write_checks.quota_error(outcome)
            case ExpectationFailed():
                return None
