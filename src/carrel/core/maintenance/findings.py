"""Findings of a consistency check: names and ids, never content."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

MAX_FINDINGS: Final = 1000
"""Findings listed individually; further ones are only counted."""


class Severity(StrEnum):
    ERROR = "error"
    """Data is lost or wrong."""
    WARNING = "warning"
    """No data is lost, but an operator should act."""


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    subject: str
    text: str


@dataclass(slots=True)
class FindingList:
    """Bounded list of findings with total counts."""

    items: list[Finding] = field(default_factory=list)
    errors: int = 0
    warnings: int = 0

    @property
    def is_clean(self) -> bool:
        return not self.errors

    @property
    def omitted_count(self) -> int:
        """Findings that are counted but not listed."""
        return self.errors + self.warnings - len(self.items)

    def error(self, subject: str, text: str) -> None:
        self.errors += 1
        self._add(Finding(Severity.ERROR, subject, text))

    def warn(self, subject: str, text: str) -> None:
        self.warnings += 1
        self._add(Finding(Severity.WARNING, subject, text))

    def _add(self, finding: Finding) -> None:
        if len(self.items) < MAX_FINDINGS:
            self.items.append(finding)
