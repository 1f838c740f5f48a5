"""YAML that is nothing but text, numbers, lists and mappings, each with the line it stands on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

LONGEST: Final = 2**20
"""Bytes."""
_DEEPEST: Final = 16
_MOST: Final = 100_000
_SIMPLE: Final = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null")
)
_BEGINS: Final = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_ENDS: Final = (yaml.SequenceEndEvent, yaml.MappingEndEvent)


class FileError(Exception):
    """The file cannot be used as it is; the message says where and why."""

    def __init__(self, line: int, reason: str, file: str = "") -> None:
        super().__init__(f"{file and file + ', '}line {line}: {reason}")
        self.line, self.why = line, reason


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value, and where it stands."""

    line: int
    value: Any
    """A mapping of names to Said, a list of Said, or something simple."""

    def bare(self) -> Any:
        """The same without lines."""
        if isinstance(self.value, dict):
            return {name: said.bare() for name, said in self.value.items()}
        if isinstance(self.value, list):
            return [said.bare() for said in self.value]
        return self.value

    def mapping(self, what: str) -> Mapping[str, LocatedValue]:
        if not isinstance(self.value, dict):
            raise FileError(self.line, f"{what} must be a mapping")
        return self.value

    def text(self, what: str) -> str:
        if not isinstance(self.value, str):
            raise FileError(self.line, f"{what} must be text; quote it if it is meant so")
        return self.value


def parsed(text: str) -> LocatedValue:
    """Raises Wrong: for what is no YAML, for tags, names said twice, and too much of anything."""
    if len(text.encode("utf-8", "replace")) > LONGEST:
        raise FileError(1, f"the file may have {LONGEST} bytes")
    try:
        _look_through(yaml.parse(text, yaml.SafeLoader))
        node = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        raise FileError(mark.line + 1 if mark else 1, problem.problem or "it is not YAML") from None
    except yaml.YAMLError as problem:
        raise FileError(1, f"it is not YAML: {problem}") from None
    return LocatedValue(1, None) if node is None else _YamlReader().said(node)


def _look_through(events: Iterator[yaml.Event]) -> None:
    deep = 0
    for number, event in enumerate(events):
        line = event.start_mark.line + 1 if event.start_mark else 1
        deep += isinstance(event, _BEGINS)
        deep -= isinstance(event, _ENDS)
        if deep > _DEEPEST or number > _MOST:
            raise FileError(line, "it is too deep or too long")
        if (tag := getattr(event, "tag", None)) is not None:
            raise FileError(line, f"tags such as {tag} are not taken")


@dataclass(slots=True)
class _YamlReader:
    left: int = _MOST
    """Values that may still come: what stands once may be referred to many times."""
    above: list[int] = field(default_factory=list)

    def said(self, node: yaml.Node) -> LocatedValue:
        line = node.start_mark.line + 1
        self.left -= 1
        if self.left < 0 or id(node) in self.above or len(self.above) > _DEEPEST:
            raise FileError(line, "it refers to too much, or to itself")
        self.above.append(id(node))
        value = self._value(node, line)
        self.above.pop()
        return LocatedValue(line, value)

    def _value(self, node: yaml.Node, line: int) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.said(each) for each in node.value]
        if node.tag not in _SIMPLE:
            raise FileError(
                line, f"{str(node.value)[:80]!r} is neither text nor a number; quote it"
            )
        try:
            value = yaml.constructor.SafeConstructor().construct_object(node)
        except (ValueError, OverflowError, yaml.YAMLError):
            raise FileError(line, f"{str(node.value)[:80]!r} is no number; quote it") from None
        if isinstance(value, float) and not math.isfinite(value):
            raise FileError(line, "a number must be finite")
        return value

    def _mapping(self, node: yaml.MappingNode) -> dict[str, LocatedValue]:
        found: dict[str, LocatedValue] = {}
        for name, value in node.value:
            line = name.start_mark.line + 1
            key = self.said(name).value
            if not isinstance(key, str):
                raise FileError(line, f"{str(key)[:80]!r} is no name; quote it if it is meant so")
            if key in found:
                raise FileError(line, f"{key!r} is said twice, first in line {found[key].line}")
            found[key] = LocatedValue(line, self.said(value).value)
        return found
