"""Tenant policy: size limits, redaction, file classes and run retention."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from carrel.core.errors import WorkspaceTooLarge
from carrel.core.identifiers import Scope, ScopeKind
from carrel.core.overlay.file_classes import FileClassRules
from carrel.core.redaction.redactor import SecretPatternMode
from carrel.core.store.commit import Quota

MIB = 1024 * 1024
_MODES: Final = (SecretPatternMode.REDACT, SecretPatternMode.WARN, SecretPatternMode.OFF)
"""From the strictest to the loosest."""


@dataclass(frozen=True, slots=True)
class Limits:
    max_file_bytes: int = MIB
    max_files: int = 10_000
    max_versions: int = 100
    max_bytes: int | None = None

    def check_file_size(self, size: int) -> None:
        if size > self.max_file_bytes:
            raise WorkspaceTooLarge(
                f"the content has {size} bytes; the limit is {self.max_file_bytes}",
                maxBytes=self.max_file_bytes,
                providedBytes=size,
            )

    def quota(self, scope: Scope) -> Quota:
        return Quota(scope, self.max_files, self.max_bytes)


DEFAULT_AGENT_WRITABLE = ("memory/**", "notes/**", "MEMORY.md", "IDENTITY.md")
SHARED_WORKSPACE_LIMITS = Limits(100 * MIB, 20_000, 100, 1024 * MIB)
"""Limits of shared workspaces, which hold tool output."""
ITEM_LIMITS = Limits(256 * 1024, 10_000)
"""Limits of shared items, per scope."""


@dataclass(frozen=True, slots=True)
class Policy:
    limits: Limits = field(default_factory=Limits)
    shared_limits: Limits = SHARED_WORKSPACE_LIMITS
    redaction: SecretPatternMode = SecretPatternMode.REDACT
    classes: FileClassRules = FileClassRules()
    agent_writable: tuple[str, ...] = DEFAULT_AGENT_WRITABLE
    """Patterns of paths that an agent may write with its own key."""
    run_retention_days: int | None = None
    """None keeps every run, and the versions it can see, until it is released."""

    def is_loosened_by(self, after: Policy) -> bool:
        """Return whether a path may be pinned or managed now but not by `after`.

        It could if a class rule other than `live` is removed, changed or preceded by a new rule
        other than `pinned`, if redaction does less, or if agents may write more paths.
        """
        return (
            not self.classes.is_kept_by(after.classes)
            or _MODES.index(after.redaction) > _MODES.index(self.redaction)
            or not set(after.agent_writable) <= set(self.agent_writable)
        )

    def limits_of(self, scope: Scope) -> Limits:
        if scope.kind is ScopeKind.ITEMS:
            return replace(ITEM_LIMITS, max_versions=self.limits.max_versions)
        return self.shared_limits if scope.is_shared_workspace else self.limits
