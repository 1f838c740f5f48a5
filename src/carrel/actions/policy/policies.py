"""Reads and changes the policy of a tenant."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import asdict, replace

from carrel.actions.policy.pin_plans import has_loosened_paths, plan_pin_changes
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
    commit_changes,
    load_collection_revisions,
)
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor
from carrel.core.errors import Conflict, ValidationError
from carrel.core.identifiers import Path
from carrel.core.overlay.class_changes import blobs_no_longer_rendered, find_new_collisions
from carrel.core.overlay.file_classes import BUILT_IN_RULES, FileClassRules, parse_pattern
from carrel.core.overlay.pattern_coverage import covers
from carrel.core.policy import Policy
from carrel.core.store.blob import Blob
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import RecordChange, RecordType, encode_body
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
    plan = await plan_pin_changes(ports, actor.tenant, before, after)
    shared_trees = plan.shared_trees
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
