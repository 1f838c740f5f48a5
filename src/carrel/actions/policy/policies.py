"""Reads and changes the policy of a tenant."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
from msgspec.structs import asdict, replace

from carrel.actions.policy.placeholder_files import MAX_NAMED, find_placeholder_files
from carrel.actions.policy.policy_models import (
    POLICY_ID,
    PolicyModel,
    model_from_record,
    policy_from_model,
    policy_from_record,
)
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import (
    NO_DRAFTS,
    FileDrafts,
    commit_changes,
    iter_records,
    load_collection_revisions,
)
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_change, agent_from_record
from carrel.core.agents.layers import build_stack
from carrel.core.errors import Conflict, ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay import agent_resolution
from carrel.core.overlay import pins as overlay_pins
from carrel.core.overlay.class_changes import blobs_no_longer_rendered, find_new_collisions
from carrel.core.overlay.file_classes import BUILT_IN_RULES, FileClassRules, parse_pattern
from carrel.core.overlay.pattern_coverage import covers
from carrel.core.overlay.pin_sets import pin_set_scope
from carrel.core.overlay.planned_writes import PlannedWrite
from carrel.core.policy import Policy
from carrel.core.store.blob import Blob
from carrel.core.store.commit import Write
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record, RecordChange, RecordType, encode_body
from carrel.core.store.tree import Tree
from carrel.core.text_validation import single_line
from carrel.ports import Ports


class SavedPolicy(PolicyModel, frozen=True):
    """Policy as stored by a put."""

    placeholder_files: tuple[str, ...] = ()
    """Files that this change pinned and whose placeholders are no longer filled."""


async def get(ports: Ports, actor: Actor) -> PolicyModel:
    [record] = await ports.records.get(actor.tenant, RecordType.POLICY, [POLICY_ID])
    return model_from_record(record)


def normalize_patterns(form: PolicyModel) -> PolicyModel:
    """Policy with patterns in NFC. Raises ValidationError for a rule that no path can match."""
    classes = tuple(replace(rule, pattern=parse_pattern(rule.pattern)) for rule in form.classes)
    earlier = [rule.pattern for rule in BUILT_IN_RULES]
    for rule in classes:
        if outranking := next((other for other in earlier if covers(other, rule.pattern)), None):
            raise ValidationError(
                f"the rule of {rule.pattern!r} can never match: that of {outranking!r} comes first"
            )
        earlier.append(rule.pattern)
    return replace(
        form, classes=classes, agent_writable=tuple(map(parse_pattern, form.agent_writable))
    )


@retry_on_conflict()
async def put(
    ports: Ports,
    actor: Actor,
    form: PolicyModel,
    change_reason: str = "",
    *,
    confirm: bool = False,
    idempotency_key: IdempotencyKey | None = None,
) -> SavedPolicy:
    """Replace the policy; pins newly pinned files for every agent in the same commit.

    Raises ValidationError, also if it loosens pinned files without a reason; Forbidden if it
    loosens the policy and the caller is no person who is owner or admin; Conflict if a path would
    collide with a pinned or managed one in letter case, or if files with placeholders become pinned
    without `confirm`.
    """
    form = normalize_patterns(form)
    rules = await load_rules(ports, actor.tenant)
    rules.require_no_secret("a pattern", form)
    expected_revisions = await load_collection_revisions(
        ports, actor.tenant, (RecordType.AGENT, RecordType.TEMPLATE, RecordType.POLICY)
    )
    [existing] = await ports.records.get(actor.tenant, RecordType.POLICY, [POLICY_ID])
    before, after = _classes_before_and_after(actor, policy_from_record(existing), form)
    shared_trees = await load_shared_trees(ports, actor.tenant) if before != after else ()
    plan = await _plan_pin_changes(ports, actor.tenant, before, after)
    _check_collisions(before, after, shared_trees, plan.collisions)
    if not change_reason and (plan.loosened or has_loosened_paths(shared_trees, before, after)):
        raise ValidationError("making a pinned file live needs a reason")
    unrendered = plan.unrendered | {
        item for tree in shared_trees for item in blobs_no_longer_rendered(before, after, (tree,))
    }
    placeholder_files = await _find_confirmed_placeholders(ports, unrendered, confirm)
    change = RecordChange(actor.tenant, RecordType.POLICY, POLICY_ID, encode_body(form))
    reason = "change the policy"
    if change_reason:
        reason += f": {single_line(rules.redact_text(change_reason), 'reason')}"
    await commit_changes(
        ports,
        actor,
        reason,
        [change, *plan.changes],
        collection_revisions=expected_revisions,
        drafts=plan.drafts,
        idempotency_key=idempotency_key,
    )
    return SavedPolicy(
        **asdict(form), placeholder_files=tuple(path.text for path in placeholder_files)
    )


def _classes_before_and_after(
    actor: Actor, current: Policy, form: PolicyModel
) -> tuple[FileClassRules, FileClassRules]:
    """Return the class rules. Raises Forbidden if the caller may not loosen the policy."""
    changed = policy_from_model(form)
    if current.is_loosened_by(changed):
        actor.require_person_admin("loosen the policy")
    return current.classes, changed.classes


def _check_collisions(
    before: FileClassRules,
    after: FileClassRules,
    shared_trees: Sequence[Tree],
    agent_collisions: Collection[Path],
) -> None:
    """Raise Conflict if existing paths would collide with a protected path in letter case."""
    collisions = {*agent_collisions}
    for tree in shared_trees:
        collisions.update(find_new_collisions(before, after, (tree, shared_trees[-1])))
    if collisions:
        names = [path.text for path in sorted(collisions)[:MAX_NAMED]]
        listed = ", ".join(names[:6]) + (" and others" if len(names) > 6 else "")
        raise Conflict(
            f"these paths collide on some file systems with pinned or managed ones: {listed}",
            collidingPaths=names,
        )


async def _find_confirmed_placeholders(
    ports: Ports, unrendered: Collection[tuple[Path, Blob]], confirm: bool
) -> Sequence[Path]:
    """Find files whose placeholders would be served unfilled. Raises Conflict unless confirmed."""
    paths = await find_placeholder_files(ports, unrendered)
    if paths and not confirm:
        names = [path.text for path in paths[:MAX_NAMED]]
        listed = ", ".join(names[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
        raise Conflict(
            f"agents would be served the placeholders of {listed} unfilled;"
            " confirm with confirm: true",
            placeholderFiles=names,
        )
    return paths


class _PinPlan(msgspec.Struct, frozen=True):
    """Changes that keep every agent's files when classes change."""

    changes: Sequence[RecordChange] = ()
    drafts: FileDrafts = NO_DRAFTS
    loosened: bool = False
    """Whether any agent has a file that is no longer pinned."""
    unrendered: frozenset[tuple[Path, Blob]] = frozenset()
    """Contents whose placeholders are no longer filled."""
    collisions: frozenset[Path] = frozenset()
    """Paths of agents that would collide with a protected path in letter case."""


async def _plan_pin_changes(
    ports: Ports, tenant: str, before: FileClassRules, after: FileClassRules
) -> _PinPlan:
    """Plan the pins of every agent for files that become pinned or unpinned.

    A file that becomes live without an upstream stays with the agent.
    """
    if before == after:
        return _PinPlan()
    loosened = False
    unrendered: set[tuple[Path, Blob]] = set()
    collisions: set[Path] = set()
    agents = [agent async for agent in iter_records(ports, tenant, RecordType.AGENT)]
    stacks = [build_stack(agent) for agent in agents]
    scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
    trees = dict(zip(scopes, await ports.trees.read(scopes), strict=True)) if scopes else {}
    changes: list[RecordChange] = []
    edits: list[PlannedWrite] = []
    writes: dict[tuple[Scope, Path], Write] = {}
    for agent, stack in zip(agents, stacks, strict=True):
        layers = [trees[scope] for scope in stack]
        unrendered.update(blobs_no_longer_rendered(before, after, layers))
        collisions.update(find_new_collisions(before, after, layers))
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
    return _PinPlan(changes, drafts, loosened, frozenset(unrendered), frozenset(collisions))


def _with_pins(agent: Record, pins: str | None) -> RecordChange:
    with_pins = replace(agent_from_record(agent), pins=pins)
    return agent_change(agent.tenant, agent.id, with_pins, agent)


async def load_shared_trees(ports: Ports, tenant: str) -> Sequence[Tree]:
    """Load the trees of all templates and the defaults."""
    templates = [template async for template in iter_records(ports, tenant, RecordType.TEMPLATE)]
    scopes = [Scope(tenant, ScopeKind.TEMPLATE, template.id) for template in templates]
    return await ports.trees.read((*scopes, Scope(tenant, ScopeKind.DEFAULTS, "")))


def has_loosened_paths(
    shared_trees: Sequence[Tree], before: FileClassRules, after: FileClassRules
) -> bool:
    """Return whether a pinned file of a template or the defaults would become live."""
    paths = {path for tree in shared_trees for path in tree.heads}
    return bool(after.newly_pinned(before, paths))
