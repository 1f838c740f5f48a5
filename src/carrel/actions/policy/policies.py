"""A tenant's policy: as it is stored and shown, and changing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from carrel.actions.records import (
    FileDrafts,
    collection_revisions,
    commit_changes,
    iter_records,
    retry_while_busy,
)
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_change, agent_fields
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay import agent_files
from carrel.core.overlay import pins as overlay_pins
from carrel.core.overlay.edit import PlannedWrite
from carrel.core.overlay.file_classes import (
    LONGEST_PATTERN,
    MOST_RULES,
    ClassRule,
    FileClass,
    FileClassRules,
    checked_pattern,
)
from carrel.core.overlay.layers import stack_of
from carrel.core.overlay.pin_sets import pinset_of
from carrel.core.policy import AGENT_WRITABLE, SHARED, Limits, Policy
from carrel.core.redaction.redactor import SecretPatternMode
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.core.store.tree import Write
from carrel.core.text_validation import single_line
from carrel.ports import Ports

POLICY_ID = "policy"
GIB = 2**30
Count = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
Size = Annotated[int, msgspec.Meta(ge=1, le=GIB)]
Text = Annotated[int, msgspec.Meta(ge=1, le=4 * 2**20)]
"""A file that comes as JSON: escaped it is six times as long, and a body is held in memory."""


Pattern = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_PATTERN)]


class LimitsModel(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    max_file_bytes: Size = Limits().max_file_bytes
    max_files: Count = Limits().max_files
    max_versions: Count = Limits().max_versions
    max_bytes: Annotated[int, msgspec.Meta(ge=1, le=1024 * GIB)] | None = None


_SHARED = LimitsModel(
    SHARED.max_file_bytes, SHARED.max_files, SHARED.max_versions, SHARED.max_bytes
)


class ClassRuleModel(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """Paths that fit a pattern are of a class; the first rule that fits decides."""

    pattern: Pattern
    file_class: FileClass = msgspec.field(name="class")


class PolicyModel(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    limits: LimitsModel = LimitsModel()
    shared_limits: LimitsModel = _SHARED
    redaction: SecretPatternMode = SecretPatternMode.REDACT
    run_retention_days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] | None = None
    classes: Annotated[tuple[ClassRuleModel, ...], msgspec.Meta(max_length=MOST_RULES)] = ()
    agent_writable: Annotated[tuple[Pattern, ...], msgspec.Meta(max_length=MOST_RULES)] = (
        AGENT_WRITABLE
    )


def form_of(record: Record | None) -> PolicyModel:
    return msgspec.convert(record.body, PolicyModel) if record else PolicyModel()


def policy_of(record: Record | None) -> Policy:
    form = form_of(record)
    return Policy(
        limits=_limits(form.limits),
        shared_limits=_limits(form.shared_limits),
        redaction=form.redaction,
        run_retention_days=form.run_retention_days,
        classes=classes_of_form(form),
        agent_writable=form.agent_writable,
    )


def classes_of_form(form: PolicyModel) -> FileClassRules:
    return FileClassRules(tuple(ClassRule(rule.pattern, rule.file_class) for rule in form.classes))


def _limits(form: LimitsModel) -> Limits:
    return Limits(form.max_file_bytes, form.max_files, form.max_versions, form.max_bytes)


async def get(ports: Ports, actor: Actor) -> PolicyModel:
    [record] = await ports.records.get(actor.tenant, RecordType.POLICY, [POLICY_ID])
    return form_of(record)


def check(form: PolicyModel) -> None:
    """Raises Malformed for a pattern that no path could fit."""
    for pattern in (*form.agent_writable, *(rule.pattern for rule in form.classes)):
        checked_pattern(pattern)


async def put(ports: Ports, actor: Actor, form: PolicyModel, why: str = "") -> PolicyModel:
    """Replace the policy. What becomes pinned by it is held for every agent in the same commit.

    Raises Malformed, for a loosening without a reason too.
    """
    check(form)

    async def attempt() -> PolicyModel:
        rests = await collection_revisions(
            ports, actor.tenant, (RecordType.AGENT, RecordType.TEMPLATE, RecordType.POLICY)
        )
        [was] = await ports.records.get(actor.tenant, RecordType.POLICY, [POLICY_ID])
        before, after = policy_of(was).classes, classes_of_form(form)
        changes, drafts, loosened = await _consequences(ports, actor.tenant, before, after)
        if not why and (loosened or await loosens(ports, actor.tenant, before, after)):
            raise ValidationError("making a pinned file live needs a reason")
        change = RecordChange(actor.tenant, RecordType.POLICY, POLICY_ID, msgspec.to_builtins(form))
        reason = f"change the policy: {single_line(why, 'reason')}" if why else "change the policy"
        changes = [change, *changes]
        await commit_changes(
            ports, actor.name, reason, changes, collection_revisions=rests, drafts=drafts
        )
        return form

    return await retry_while_busy(attempt)


async def _consequences(
    ports: Ports, tenant: str, before: FileClassRules, after: FileClassRules
) -> tuple[Sequence[RecordChange], FileDrafts, bool]:
    """A pin for every agent of every file that was free and is pinned from now on.

    And the other way round: what becomes live and has nothing to follow stays with the agent. Says
    whether any agent has a file that is pinned no longer.
    """
    if before == after:
        return (), FileDrafts(), False
    loosened = False
    agents = [agent async for agent in iter_records(ports, tenant, RecordType.AGENT)]
    stacks = [stack_of(agent) for agent in agents]
    scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
    trees = dict(zip(scopes, await ports.trees.read(scopes), strict=True)) if scopes else {}
    changes: list[RecordChange] = []
    edits: list[PlannedWrite] = []
    writes: dict[tuple[Scope, Path], Write] = {}
    for agent, stack in zip(agents, stacks, strict=True):
        layers = [trees[scope] for scope in stack]
        paths = sorted({path for tree in layers for path in tree.heads})
        tightened = before.tightened(after, paths)
        edits += [edit for path in tightened if (edit := overlay_pins.pin(layers, path))]
        freed = [
            path
            for path in after.tightened(before, paths)
            if agent_files.held_head(path, layers)[1]
        ]
        edits += [edit for path in freed if (edit := overlay_pins.unpin(layers, path))]
        loosened = loosened or bool(freed)
        if forgotten := overlay_pins.resurfacing_pins(layers, tightened):
            said = {path: layers[1].entry(path) for path in layers[1].heads}
            kept = {path: pin for path, pin in said.items() if pin and path not in forgotten}
            pins = pinset_of(tenant, kept)
            changes.append(_with_pins(agent, pins.name if kept else None))
            writes |= {(pins, path): Write(pins, path, kept[path]) for path in kept}
    expects = tuple(dict.fromkeys(expect for edit in edits for expect in edit.expects))
    drafts = FileDrafts((*(edit.write for edit in edits), *writes.values()), expects)
    return changes, drafts, loosened


def _with_pins(agent: Record, pins: str | None) -> RecordChange:
    return agent_change(
        agent.tenant, agent.id, {**agent_fields(agent), "pins": pins}, agent.revision
    )


async def loosens(ports: Ports, tenant: str, before: FileClassRules, after: FileClassRules) -> bool:
    """Whether a file that is pinned somewhere would be so no longer."""
    if before == after:
        return False
    templates = [one async for one in iter_records(ports, tenant, RecordType.TEMPLATE)]
    scopes = [Scope(tenant, ScopeKind.TEMPLATE, one.id) for one in templates]
    trees = await ports.trees.read((*scopes, Scope(tenant, ScopeKind.DEFAULTS, "")))
    paths = {path for tree in trees for path in tree.heads}
    return bool(after.tightened(before, paths))
