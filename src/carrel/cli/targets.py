"""Where a file stands, as people write it: ``finn/SOUL.md``, ``templates/support/SOUL.md``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import click

_NAMED: Final = {"agents": "agent", "templates": "template", "workspaces": "workspace"}
"""What is written before a name, and what such a thing is called. Agents may go without."""
_DEFAULTS: Final = "defaults"


class TargetError(ValueError):
    """It names no place, or no file; the message says why."""


@dataclass(frozen=True, slots=True)
class TargetOwner:
    """Whose files are meant."""

    kind: str
    """agents, templates, workspaces or defaults."""
    name: str = ""

    def __str__(self) -> str:
        if self.kind == "agents" and self.name not in {*_NAMED, _DEFAULTS}:
            return self.name
        return f"{self.kind}/{self.name}" if self.name else self.kind


@dataclass(frozen=True, slots=True)
class Target:
    """A path at a place; an empty one stands for all that is there."""

    place: TargetOwner
    path: str

    def __str__(self) -> str:
        return f"{self.place}/{self.path}" if self.path else str(self.place)


def parse_target(text: str) -> Target:
    """A place, or a path at one. Raises Unclear."""
    kind, _, rest = text.partition("/")
    if kind == _DEFAULTS:
        return Target(TargetOwner(_DEFAULTS), _path(rest))
    if kind not in _NAMED:
        kind, rest = "agents", text
    elif not rest:
        raise TargetError(f"which {_NAMED[kind]}? {kind}/NAME")
    name, _, path = rest.partition("/")
    if not name:
        raise TargetError(f"{text!a} begins with no name")
    return Target(TargetOwner(kind, name), _path(path))


def file_of(text: str) -> Target:
    """A file at a place. Raises Unclear."""
    target = parse_target(text)
    if not target.path:
        raise TargetError(f"{text!a} names no file: {target.place}/PATH")
    return target


def parse_owner(text: str) -> TargetOwner:
    """A place itself. Raises Unclear."""
    target = parse_target(text)
    if target.path:
        raise TargetError(f"{text!a} names a file; only {target.place} is wanted here")
    return target.place


def _path(text: str) -> str:
    """In the one form that a path has, without the slash that says that it is a directory."""
    from carrel.core.errors import ValidationError  # noqa: PLC0415 - so that --help stays quick
    from carrel.core.identifiers import Path  # noqa: PLC0415 - as above

    if not text:
        return ""
    try:
        return Path(text.removesuffix("/")).text
    except ValidationError as problem:
        raise TargetError(str(problem)) from None


class _Argument(click.ParamType):  # type: ignore[type-arg]  # not every click has them
    """What is unclear is a mistake in usage."""

    def __init__(self, name: str, parse: Any) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except TargetError as problem:
            self.fail(str(problem), param, ctx)


FILE: Final = _Argument("file", file_of)
PLACE: Final = _Argument("place", parse_owner)
TARGET: Final = _Argument("place or file", parse_target)
