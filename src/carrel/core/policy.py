"""What a tenant has decided for itself: limits, redaction, how long runs are kept."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from carrel.core.errors import WorkspaceTooLarge
from carrel.core.identifiers import Scope, ScopeKind
from carrel.core.overlay.file_classes import FileClassRules
from carrel.core.redaction.redactor import SecretPatternMode
from carrel.core.store.tree import Quota

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    max_file_bytes: int = MIB
    max_files: int = 10_000
    max_versions: int = 100
    max_bytes: int | None = None

    def admit(self, size: int) -> None:
        if size > self.max_file_bytes:
            raise WorkspaceTooLarge(
                f"the content is {size} bytes; a file may have {self.max_file_bytes}",
                maxBytes=self.max_file_bytes,
                providedBytes=size,
            )

    def quota(self, scope: Scope) -> Quota:
        return Quota(scope, self.max_files, self.max_bytes)


AGENT_WRITABLE = ("memory/**", "notes/**", "MEMORY.md", "IDENTITY.md")
SHARED = Limits(100 * MIB, 20_000, 100, 1024 * MIB)
"""Shared workspaces, whose files are tools' output rather than identity."""
ITEMS = Limits(256 * 1024, 10_000)
"""Items that agents share, by scope."""


@dataclass(frozen=True, slots=True)
class Policy:
    limits: Limits = field(default_factory=Limits)
    shared_limits: Limits = SHARED
    redaction: SecretPatternMode = SecretPatternMode.REDACT
    classes: FileClassRules = FileClassRules()
    agent_writable: tuple[str, ...] = AGENT_WRITABLE
    """Patterns of the paths that an agent may write with a key of its own."""
    run_retention_days: int | None = None
    """None keeps every run, and with it all that it can see, until it is released by hand."""

    def limits_of(self, scope: Scope) -> Limits:
        if scope.kind is ScopeKind.ITEMS:
            return replace(ITEMS, max_versions=self.limits.max_versions)
        shared = scope.kind is ScopeKind.WORKSPACE and scope.name.startswith("ws_")
        return self.shared_limits if shared else self.limits
