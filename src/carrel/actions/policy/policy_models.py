"""Stored form and wire form of a tenant's policy."""

from __future__ import annotations

from typing import Annotated

import msgspec

from carrel.core.overlay.file_classes import (
    MAX_PATTERN_LENGTH,
    MAX_RULES,
    ClassRule,
    FileClass,
    FileClassRules,
)
from carrel.core.policy import DEFAULT_AGENT_WRITABLE, SHARED_WORKSPACE_LIMITS, Limits, Policy
from carrel.core.redaction.redactor import SecretPatternMode
from carrel.core.store.record import Record, decode_body

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
    return policy_from_model(model_from_record(record))


def policy_from_model(form: PolicyModel) -> Policy:
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
