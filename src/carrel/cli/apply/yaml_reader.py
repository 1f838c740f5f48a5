"""Reads plain YAML (text, numbers, lists, mappings) with line numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

MAX_FILE_BYTES: Final = 2**20
_MAX_DEPTH: Final = 16
_MAX_NODES: Final = 100_000
_SCALAR_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null")
)
_START_EVENTS: Final = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
_END_EVENTS: Final = (yaml.SequenceEndEvent, yaml.MappingEndEvent)


class FileError(Exception):
    """The file is invalid. The message has the line and the reason."""

    def __init__(self, line: int, reason: str, file: str = "") -> None:
        super().__init__(f"{file and file + ', '}line {line}: {reason}")
        self.line, self.reason = line, reason


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A YAML value with its line."""

    line: int
    value: Any
    """A mapping of names to LocatedValue, a list of LocatedValue, or a scalar."""

    def to_plain(self) -> Any:
        """Return the value without line numbers."""
        if isinstance(self.value, dict):
            return {name: node.to_plain() for name, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.to_plain() for node in self.value]
        return self.value

    def mapping(self, label: str) -> Mapping[str, LocatedValue]:
        if not isinstance(self.value, dict):
            raise FileError(self.line, f"{label} must be a mapping")
        return self.value

    def text(self, label: str) -> str:
        if not isinstance(self.value, str):
            raise FileError(self.line, f"{label} must be text; quote the value")
        return self.value


def parse_yaml(text: str) -> LocatedValue:
    """Parse YAML text.

    Raises FileError for invalid YAML, tags, duplicate keys and exceeded limits.
    """
    if len(text.encode("utf-8", "replace")) > MAX_FILE_BYTES:
        raise FileError(1, f"the file is too large; at most {MAX_FILE_BYTES} bytes are allowed")
    try:
        _check_events(yaml.parse(text, yaml.SafeLoader))
        node = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        raise FileError(mark.line + 1 if mark else 1, problem.problem or "invalid YAML") from None
    except yaml.YAMLError as problem:
        raise FileError(1, f"invalid YAML: {problem}") from None
    return LocatedValue(1, None) if node is None else _YamlReader().convert(node)


def _check_events(events: Iterator[yaml.Event]) -> None:
    depth = 0
    for number, event in enumerate(events):
        line = event.start_mark.line + 1 if event.start_mark else 1
        depth += isinstance(event, _START_EVENTS)
        depth -= isinstance(event, _END_EVENTS)
        if depth > _MAX_DEPTH or number > _MAX_NODES:
            raise FileError(line, "too deeply nested or too many values")
        if (tag := getattr(event, "tag", None)) is not None:
            raise FileError(line, f"tags such as {tag} are not supported")


@dataclass(slots=True)
class _YamlReader:
    remaining: int = _MAX_NODES
    """Remaining node budget; aliases count every time they are expanded."""
    ancestors: list[int] = field(default_factory=list)

    def convert(self, node: yaml.Node) -> LocatedValue:
        line = node.start_mark.line + 1
        self.remaining -= 1
        if self.remaining < 0 or id(node) in self.ancestors or len(self.ancestors) > _MAX_DEPTH:
            raise FileError(line, "aliases expand to too many values or are recursive")
        self.ancestors.append(id(node))
        value = self._convert_value(node, line)
        self.ancestors.pop()
        return LocatedValue(line, value)

    def _convert_value(self, node: yaml.Node, line: int) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._convert_mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.convert(item) for item in node.value]
        if node.tag not in _SCALAR_TAGS:
            raise FileError(
                line, f"{str(node.value)[:80]!r} is neither text nor a number; quote it"
            )
        try:
            value = yaml.constructor.SafeConstructor().construct_object(node)
        except (ValueError, OverflowError, yaml.YAMLError):
            raise FileError(
                line, f"{str(node.value)[:80]!r} is not a valid number; quote it"
            ) from None
        if isinstance(value, float) and not math.isfinite(value):
            raise FileError(line, "a number must be finite")
        return value

    def _convert_mapping(self, node: yaml.MappingNode) -> dict[str, LocatedValue]:
        entries: dict[str, LocatedValue] = {}
        for name, value in node.value:
            line = name.start_mark.line + 1
            key = self.convert(name).value
            if not isinstance(key, str):
                raise FileError(line, f"{str(key)[:80]!r} is not a text key; quote it")
            if key in entries:
                raise FileError(
                    line, f"{key!r} is a duplicate key, first in line {entries[key].line}"
                )
            entries[key] = LocatedValue(line, self.convert(value).value)
        return entries
