"""Policy of a tenant: stored form, wire form and changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec.structs import replace

from carrel.actions.records import (
    FileDrafts,
    commit_changes,
    iter_records,
    load_collection_revisions,
)
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_change, agent_from_record
from carrel.core.agents.layers import build_stack
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay import agent_resolution
from carrel.core.overlay import pins as overlay_pins
from carrel.core.overlay.file_classes import (
    MAX_PATTERN_LENGTH,
    MAX_RULES,
    ClassRule,
    FileClass,
    FileClassRules,
    parse_pattern,
)
from carrel.core.overlay.pin_sets import pin_set_scope
from carrel.core.overlay.planned_writes import PlannedWrite
from carrel.core.policy import DEFAULT_AGENT_WRITABLE, SHARED_WORKSPACE_LIMITS, Limits, Policy
from carrel.core.redaction.redactor import SecretPatternMode
from carrel.core.store.commit import Write
from carrel.core.store.record import Record, RecordChange, RecordType, decode_body, encode_body
from carrel.core.text_validation import single_line
from carrel.ports import Ports

POLICY_ID = "policy"
GIB = 2**30
Count = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
Size = Annotated[int, msgspec.Meta(ge=1, le=GIB)]
Text = Annotated[int, msgspec.Meta(ge=1, le=4 * 2**20)]
"""Size of content sent as JSON, which escaping can multiply by six in memory."""


Pattern = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_PATTERN_LENGTH)]


class LimitsModel(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    max_file_bytes: Size = Limits().max_file_bytes
    max_files: Count = Limits().max_files
    max_versions: Count = Limits().max_versions
    max_bytes: Annotated[int, msgspec.Meta(ge=1, le=1024 * GIB)] | None = None


_SHARED = LimitsModel(
    SHARED_WORKSPACE_LIMITS.max_file_bytes,
    SHARED_WORKSPACE_LIMITS.max_files,
    SHARED_WORKSPACE_LIMITS.max_versions,
    SHARED_WORKSPACE_LIMITS.max_bytes,
)


class ClassRuleModel(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    """Assigns a class to paths that match a pattern; the first matching rule wins."""

    pattern: Pattern
    file_class: FileClass = msgspec.field(name="class")


class PolicyModel(msgspec.Struct, rename="camel", forbid_unknown_fields=True, frozen=True):
    limits: LimitsModel = LimitsModel()
    shared_limits: LimitsModel = _SHARED
    redaction: SecretPatternMode = SecretPatternMode.REDACT
    run_retention_days: Annotated[int, msgspec.Meta(ge=1, le=36_500)] | None = None
    classes: Annotated[tuple[ClassRuleModel, ...], msgspec.Meta(max_length=MAX_RULES)] = ()
    agent_writable: Annotated[tuple[Pattern, ...], msgspec.Meta(max_length=MAX_RULES)] = (
        DEFAULT_AGENT_WRITABLE
    )


def model_from_record(record: Record | None) -> PolicyModel:
    return decode_body(record, PolicyModel) if record else PolicyModel()


def policy_from_record(record: Record | None) -> Policy:
    form = model_from_record(record)
    return Policy(
        limits=_limits_from_model(form.limits),
        shared_limits=_limits_from_model(form.shared_limits),
        redaction=form.redaction,
        run_retention_days=form.run_retention_days,
        classes=classes_from_model(form),
        agent_writable=form.agent_writable,
    )


def classes_from_model(form: PolicyModel) -> FileClassRules:
    return FileClassRules(tuple(ClassRule(rule.pattern, rule.file_class) for rule in form.classes))


def _limits_from_model(form: LimitsModel) -> Limits:
    return Limits(form.max_file_bytes, form.max_files, form.max_versions, form.max_bytes)


async def get(ports: Ports, actor: Actor) -> PolicyModel:
    [record] = await ports.records.get(actor.tenant, RecordType.POLICY, [POLICY_ID])
    return model_from_record(record)


def validate_patterns(form: PolicyModel) -> None:
    """Raise ValidationError for a pattern that no path can match."""
    for pattern in (*form.agent_writable, *(rule.pattern for rule in form.classes)):
        parse_pattern(pattern)


@retry_on_conflict()
async def put(
    ports: Ports, actor: Actor, form: PolicyModel, change_reason: str = ""
) -> PolicyModel:
    """Replace the policy; pins newly pinned files for every agent in the same commit.

    Raises ValidationError, also if it loosens pinned files without a reason.
    """
    validate_patterns(form)
    expected_revisions = await load_collection_revisions(
        ports, actor.tenant, (RecordType.AGENT, RecordType.TEMPLATE, RecordType.POLICY)
    )
    [existing] = await ports.records.get(actor.tenant, RecordType.POLICY, [POLICY_ID])
    before, after = policy_from_record(existing).classes, classes_from_model(form)
    changes, drafts, loosened = await _plan_pin_changes(ports, actor.tenant, before, after)
    if not change_reason and (
        loosened or await has_loosened_paths(ports, actor.tenant, before, after)
    ):
        raise ValidationError("making a pinned file live needs a reason")
    change = RecordChange(actor.tenant, RecordType.POLICY, POLICY_ID, encode_body(form))
    reason = (
        f"change the policy: {single_line(change_reason, 'reason')}"
        if change_reason
        else "change the policy"
    )
    changes = [change, *changes]
    await commit_changes(
        ports,
        actor.name,
        reason,
        changes,
        collection_revisions=expected_revisions,
        drafts=drafts,
    )
    return form


async def _plan_pin_changes(
    ports: Ports, tenant: str, before: FileClassRules, after: FileClassRules
) -> tuple[Sequence[RecordChange], FileDrafts, bool]:
    """Plan the pins of every agent for files that become pinned or unpinned.

    A file that becomes live without an upstream stays with the agent. The last value tells whether
    any agent has a file that is no longer pinned.
    """
    if before == after:
        return (), FileDrafts(), False
    loosened = False
    agents = [agent async for agent in iter_records(ports, tenant, RecordType.AGENT)]
    stacks = [build_stack(agent) for agent in agents]
    scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
    trees = dict(zip(scopes, await ports.trees.read(scopes), strict=True)) if scopes else {}
    changes: list[RecordChange] = []
    edits: list[PlannedWrite] = []
    writes: dict[tuple[Scope, Path], Write] = {}
    for agent, stack in zip(agents, stacks, strict=True):
        layers = [trees[scope] for scope in stack]
        paths = sorted({path for tree in layers for path in tree.heads})
        tightened = before.newly_pinned(after, paths)
        edits += [edit for path in tightened if (edit := overlay_pins.plan_pin(layers, path))]
        unpinned = [
            path
            for path in after.newly_pinned(before, paths)
            if agent_resolution.pinned_head(path, layers)[1]
        ]
        edits += [edit for path in unpinned if (edit := overlay_pins.plan_unpin(layers, path))]
        loosened = loosened or bool(unpinned)
        if resurfacing := overlay_pins.resurfacing_pins(layers, tightened):
            pinned_entries = {path: layers[1].entry(path) for path in layers[1].heads}
            remaining = {
                path: pin for path, pin in pinned_entries.items() if pin and path not in resurfacing
            }
            pins = pin_set_scope(tenant, remaining)
            changes.append(_with_pins(agent, pins.name if remaining else None))
            writes |= {(pins, path): Write(pins, path, remaining[path]) for path in remaining}
    expects = tuple(dict.fromkeys(expect for edit in edits for expect in edit.expects))
    drafts = FileDrafts((*(edit.write for edit in edits), *writes.values()), expects)
    return changes, drafts, loosened


def _with_pins(agent: Record, pins: str | None) -> RecordChange:
    with_pins = replace(agent_from_record(agent), pins=pins)
    return agent_change(agent.tenant, agent.id, with_pins, agent)


async def has_loosened_paths(
    ports: Ports, tenant: str, before: FileClassRules, after: FileClassRules
) -> bool:
    """Return whether a pinned file of a template or the defaults would become live."""
    if before == after:
        return False
    templates = [template async for template in iter_records(ports, tenant, RecordType.TEMPLATE)]
    scopes = [Scope(tenant, ScopeKind.TEMPLATE, template.id) for template in templates]
    trees = await ports.trees.read((*scopes, Scope(tenant, ScopeKind.DEFAULTS, "")))
    paths = {path for tree in trees for path in tree.heads}
    return bool(after.newly_pinned(before, paths))
