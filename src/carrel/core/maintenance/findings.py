"""What an examination found: said by name, never by content."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

MOST: Final = 1000
"""Findings that are told one by one; beyond, they are only counted."""


class Severity(StrEnum):
    ERROR = "error"
    """Something is lost, or is not what it should be."""
    WARNING = "warning"
    """Nothing is lost, but something should be looked after."""


@dataclass(frozen=True, slots=True)
class Finding:
    level: Severity
    subject: str
    text: str


@dataclass(slots=True)
class FindingList:
    """A list of findings that stays short however much is broken."""

    items: list[Finding] = field(default_factory=list)
    errors: int = 0
    warnings: int = 0

    @property
    def clean(self) -> bool:
        return not self.errors

    @property
    def untold(self) -> int:
        """How many more there are than are told one by one."""
        return self.errors + self.warnings - len(self.items)

    def error(self, subject: str, text: str) -> None:
        self.errors += 1
        self._add(Finding(Severity.ERROR, subject, text))

    def warn(self, subject: str, text: str) -> None:
        self.warnings += 1
        self._add(Finding(Severity.WARNING, subject, text))

    def _add(self, finding: Finding) -> None:
        if len(self.items) < MOST:
            self.items.append(finding)
