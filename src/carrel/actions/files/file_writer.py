"""Writing one file: deciding, committing, and deciding again where somebody else was quicker."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.overlay.agent_layers import render_context_of
from carrel.actions.overlay.stacks import is_described, standing
from carrel.actions.policy.tenant_rules import TenantRules, cached_rules, load_rules
from carrel.core.access import Actor, CredentialKind, may_write
from carrel.core.agents.identity_name import IDENTITY, names_in
from carrel.core.errors import (
    Busy,
    Forbidden,
    NotFound,
    Refusal,
    ValidationError,
    WorkspaceTooLarge,
)
from carrel.core.errors import Conflict as Taken
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay import agent_files, edit
from carrel.core.overlay.agent_files import NewContent, RenderContext
from carrel.core.overlay.compose import File, Layers, file_etag
from carrel.core.overlay.edit import (
    UNCONDITIONAL,
    PlannedWrite,
    WriteCondition,
    path_occupied_error,
)
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.placeholders import render_bytes
from carrel.core.redaction.redactor import RedactionResult
from carrel.core.runs import RunStatus
from carrel.core.store.record import RecordType
from carrel.core.store.tree import (
    MARKDOWN,
    Applied,
    Commit,
    ExpectationFailed,
    Head,
    IdempotencyKey,
    PathOccupied,
    QuotaExceeded,
)
from carrel.ports import Ports

_ATTEMPTS: Final = 10
_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,64}/[A-Za-z0-9!#$&^_.+-]{1,64}(;[ -~]{0,96})?")


class WriteResult(Struct, frozen=True, gc=False):
    """A file as it was stored, which is what its sender is shown."""

    file: File
    content: bytes
    redacted: RedactionResult


class WriteOptions(Struct, frozen=True, gc=False):
    """What a writer may say beside the content."""

    condition: WriteCondition = UNCONDITIONAL
    type: str | None = None
    reason: str = ""
    run: str | None = None
    idempotency_key: IdempotencyKey | None = None
    accept_template_update: bool = False
    """The writer knows that the file is pinned, and wants an override all the same."""


PLAIN: Final = WriteOptions()


class FileWriter(Struct, frozen=True, gc=False):
    """One writer at one path.

    Most of what is asked on the way is known already, and then nothing is awaited for it.
    """

    ports: Ports
    stack: Stack
    path: Path
    actor: Actor
    intent: WriteOptions

    async def put(self, content: bytes) -> WriteResult:
        if self.intent.type is not None and not _TYPE.fullmatch(self.intent.type):
            raise ValidationError("contentType is not a media type")
        if self.intent.run is not None:
            await self._check_run(self.intent.run)
        tenant = self.actor.tenant
        rules = cached_rules(self.ports, tenant) or await load_rules(self.ports, tenant)
        for attempt in range(_ATTEMPTS):
            try:
                redacted = self._check_and_redact(rules, content)
            except Refusal:
                redacted = None
            # Bytes that go out before the commit do so under the rules of the moment.
            if redacted is None or len(redacted.content) > self.ports.blobs.inline:
                rules = await load_rules(self.ports, tenant)
                redacted = self._check_and_redact(rules, content)
            written = await self._put(rules, redacted, first=not attempt)
            if written is not None:
                return written
            rules = await load_rules(self.ports, tenant)
        raise Busy(f"{self.path} is being written by many others")

    async def delete(self) -> Head:
        if self.intent.run is not None:
            await self._check_run(self.intent.run)
        for _ in range(_ATTEMPTS):
            rules = await load_rules(self.ports, self.actor.tenant)
            self._may_write(rules)
            layers, condition = await self._read(), self.intent.condition
            render_context = (
                await self._render_context(rules) if self.stack[0].kind is ScopeKind.AGENT else None
            )
            if render_context is None:
                decided = edit.delete(layers, self.path, condition)
            else:
                decided = agent_files.delete(layers, self.path, render_context, condition)
                bare = (replace(layers[0], heads={}), *layers[1:])
                await self._check_name_unchanged(
                    render_context, layers, await self._rendered(render_context, bare)
                )
            head = await self._commit(rules, decided, f"delete {self.path.text}")
            if head is not None:
                return head
        raise Busy(f"{self.path} is being written by many others")

    async def _put(
        self, rules: TenantRules, redacted: RedactionResult, *, first: bool
    ) -> WriteResult | None:
        """What was written, or None when it must be decided again."""
        stack, path, condition = self.stack, self.path, self.intent.condition
        type, kind = self.intent.type or MARKDOWN, stack[0].kind
        [blob] = await self.ports.blobs.put((redacted.content,))
        if (
            kind is ScopeKind.AGENT
            and (render_context := await self._render_context(rules)) is not None
        ):
            wanted = NewContent(blob, type, self.intent.accept_template_update)
            return await self._put_override(rules, redacted, wanted, render_context)
        decided = None
        if first and len(stack) == 1:
            decided = edit.put_without_read(stack[0], path, blob, condition, type)
        if decided is None:
            decided = edit.put(await self._read(), path, blob, condition, type)
        head = await self._commit(rules, decided, f"put {path.text}")
        if head is None:
            return None
        file = file_from_head(stack, head)
        if kind is ScopeKind.TEMPLATE or kind is ScopeKind.DEFAULTS:
            file = replace(file, file_class=rules.policy.classes.class_of(path))
        return WriteResult(file, redacted.content, redacted)

    async def _put_override(
        self,
        rules: TenantRules,
        redacted: RedactionResult,
        wanted: NewContent,
        render_context: RenderContext,
    ) -> WriteResult | None:
        """The same for an agent's own file, which may end in having none of its own."""
        layers = await self._read()
        decided = agent_files.put(layers, self.path, wanted, render_context, self.intent.condition)
        await self._check_name_unchanged(
            render_context, layers, render_bytes(redacted.content, render_context.variables)
        )
        if decided is not None:
            head = await self._commit(rules, decided, f"put {self.path.text}")
            if head is None:
                return None
            layers = (replace(layers[0], heads={self.path: head}), *layers[1:])
        shown = render_context.resolve(self.path, layers)
        assert shown is not None
        return WriteResult(shown, redacted.content, redacted)

    async def _check_name_unchanged(
        self, render_context: RenderContext, layers: Layers, after: bytes
    ) -> None:
        """What an agent is called is for people to say. Raises Forbidden."""
        if self.actor.kind is not CredentialKind.AGENT or self.path != IDENTITY:
            return
        if names_in(await self._rendered(render_context, layers)) != names_in(after):
            raise Forbidden("an agent may change its IDENTITY.md, but not its name")

    async def _rendered(self, render_context: RenderContext, layers: Layers) -> bytes:
        shown = render_context.resolve(self.path, layers)
        if shown is None:
            return b""
        content = (await self.ports.blobs.get([shown.blob]))[shown.blob.digest]
        return content if shown.variables is None else render_bytes(content, shown.variables)

    async def _read(self) -> Layers:
        return await self.ports.trees.read(self.stack, (self.path,))

    async def _render_context(self, rules: TenantRules) -> RenderContext | None:
        """With the classes that the commit will insist on."""
        render_context = await render_context_of(self.ports, self.stack)
        return (
            None
            if render_context is None
            else replace(render_context, classes=rules.policy.classes)
        )

    def _check_and_redact(self, rules: TenantRules, content: bytes) -> RedactionResult:
        """What may be stored of it. Raises Forbidden, TooLarge or Malformed."""
        self._may_write(rules)
        rules.policy.limits_of(self.stack[0]).admit(len(content))
        if rules.redactor.finds_in(self.path.text):
            raise ValidationError("the path holds a secret")
        if self.intent.type is not None and rules.redactor.finds_in(self.intent.type):
            raise ValidationError("contentType holds a secret")
        return rules.redactor.redact(content)

    def _may_write(self, rules: TenantRules) -> None:
        own = self.stack[0]
        if own.kind is not ScopeKind.WORKSPACE:
            rules.policy.classes.check_path(self.path)
        if own.kind is not ScopeKind.AGENT:
            return
        may_write(self.actor, own, self.path, rules.policy.agent_writable)
        pinned = rules.policy.classes.class_of(self.path) is FileClass.PINNED
        if self.actor.kind is CredentialKind.AGENT and pinned:
            raise Forbidden(f"{self.path} is pinned: no agent overrides its own guardrails")

    async def _commit(self, rules: TenantRules, decided: PlannedWrite, reason: str) -> Head | None:
        """The head that the edit became, or None when it must be decided again."""
        scope, intent = decided.write.scope, self.intent
        limits = rules.policy.limits_of(scope)
        if intent.reason:
            reason = rules.redactor.redact(intent.reason.encode()).content.decode()
        collection_revisions = rules.shelves
        if is_described(scope):
            collection_revisions = (*collection_revisions, *await standing(self.ports, scope))
        commit = Commit(
            writes=(decided.write,),
            author=self.actor.name,
            reason=reason,
            at=self.ports.clock.now(),
            expects=decided.expects,
            collection_revisions=collection_revisions,
            path_checks=decided.rooms,
            quotas=(limits.quota(scope),) if decided.write.entry else (),
            max_versions=limits.max_versions,
            run=intent.run,
            audit_subjects=() if scope.kind is not ScopeKind.AGENT else self._audit_subjects(rules),
            idempotency_key=intent.idempotency_key,
        )
        [outcome] = await self.ports.trees.commit((commit,))
        match outcome:
            case Applied():
                return outcome.heads[0]
            case PathOccupied():
                raise path_occupied_error(outcome)
            case QuotaExceeded():
                raise quota_error(outcome)
            case ExpectationFailed():
                return None

    def _audit_subjects(self, rules: TenantRules) -> tuple[str, ...]:
        """What the audit names: overriding a guardrail and taking that back is for it to tell."""
        own = self.stack[0]
        if (
            own.kind is not ScopeKind.AGENT
            or rules.policy.classes.class_of(self.path) is not FileClass.PINNED
        ):
            return ()
        return (f"{RecordType.AGENT}/{own.name}",)

    async def _check_run(self, id: str) -> None:
        """A write may name the run it belongs to: one of this workspace that has not ended.

        In a workspace that agents share it is one of an agent.
        """
        [run] = await self.ports.runs.get(self.actor.tenant, [id])
        own = self.stack[0]
        shared = own.kind is ScopeKind.WORKSPACE and own.name.startswith("ws_")
        if run is None or not (run.scope == own or (shared and run.scope.kind is ScopeKind.AGENT)):
            raise NotFound(f"there is no run {id}")
        if run.status is not RunStatus.RUNNING:
            raise Taken(f"the run has {run.status}", status=run.status)


def quota_error(full: QuotaExceeded) -> WorkspaceTooLarge:
    if full.files > full.quota.files:
        limit = full.quota.files
        return WorkspaceTooLarge(f"the workspace may have {limit} files", maxFiles=limit)
    limit = full.quota.size or 0
    return WorkspaceTooLarge(f"the workspace may have {limit} bytes", maxBytes=limit)


def file_from_head(stack: Stack, head: Head, scope: Scope | None = None) -> File:
    """One version of what the nearest layer says, by itself; its tag tells who said it for that."""
    assert head.entry
    tag = file_etag(head.version, scope or stack[0], alone=len(stack) == 1)
    return File(head, head.entry, stack[0], 0, tag)
