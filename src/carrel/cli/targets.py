"""Parses targets such as `finn/SOUL.md` or `templates/support/SOUL.md`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_OWNER_LABELS: Final = {"agents": "agent", "templates": "template", "workspaces": "workspace"}
"""Singular nouns by target prefix. The prefix `agents/` is optional."""
_DEFAULTS: Final = "defaults"


class TargetError(ValueError):
    """The text names no owner or no file. The message says why."""


@dataclass(frozen=True, slots=True)
class TargetOwner:
    """Owner of files: an agent, a template, a workspace or the tenant's defaults."""

    kind: str
    """agents, templates, workspaces or defaults."""
    name: str = ""

    def __str__(self) -> str:
        if self.kind == "agents" and self.name not in {*_OWNER_LABELS, _DEFAULTS}:
            return self.name
        return f"{self.kind}/{self.name}" if self.name else self.kind


@dataclass(frozen=True, slots=True)
class Target:
    """A path at an owner. An empty path means all files of the owner."""

    owner: TargetOwner
    path: str

    def __str__(self) -> str:
        return f"{self.owner}/{self.path}" if self.path else str(self.owner)


def parse_target(text: str) -> Target:
    """Parse an owner, or a path at an owner. Raises TargetError."""
    kind, _, rest = text.partition("/")
    if kind == _DEFAULTS:
        return Target(TargetOwner(_DEFAULTS), _normalize_path(rest))
    if kind not in _OWNER_LABELS:
        kind, rest = "agents", text
    elif not rest:
        raise TargetError(f"which {_OWNER_LABELS[kind]}? {kind}/NAME")
    name, _, path = rest.partition("/")
    if not name:
        raise TargetError(f"{text!a} does not start with a name")
    return Target(TargetOwner(kind, name), _normalize_path(path))


def parse_file_target(text: str) -> Target:
    """Parse a file at an owner. Raises TargetError."""
    target = parse_target(text)
    if not target.path:
        raise TargetError(f"{text!a} names no file: {target.owner}/PATH")
    return target


def parse_owner(text: str) -> TargetOwner:
    """Parse an owner without a path. Raises TargetError."""
    target = parse_target(text)
    if target.path:
        raise TargetError(f"{text!a} names a file; expected only {target.owner}")
    return target.owner


def parse_path(text: str) -> str:
    """Parse a path without its owner. Raises TargetError."""
    path = _normalize_path(text)
    if not path:
        raise TargetError("the path is empty")
    return path


def _normalize_path(text: str) -> str:
    """Validate and normalize a path; strip a trailing slash. Raises TargetError."""
    from carrel.core.errors import ValidationError  # noqa: PLC0415 - so that --help stays quick
    from carrel.core.identifiers import Path  # noqa: PLC0415 - as above

    if not text:
        return ""
    try:
        return Path(text.removesuffix("/")).text
    except ValidationError as problem:
        raise TargetError(str(problem)) from None
