"""YAML front matter of a SKILL.md: a mapping of texts, read as the reference validator does.

The accepted YAML is a subset without tags, anchors, flow collections and duplicate keys; every
scalar is a text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, TypeAlias

import yaml
from msgspec import Struct

from carrel.core.errors import ValidationError

YamlValue: TypeAlias = "str | list[YamlValue] | dict[str, YamlValue]"

DELIMITER: Final = "---"
MAX_FRONT_MATTER_CHARS: Final = 16_384
_MAX_CACHED_CHARS: Final = 2_048
"""Longer ones are rare; they would make the cache large."""
_MERGE_KEY: Final = "<<"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""What an escape such as \\ud83d gives, which no encoding can store."""
_FLOW_PROBLEM: Final = "flow style with { or [ is not supported; quote the text"


class FrontMatter(Struct, frozen=True):
    """Fields of a SKILL.md and the instructions after them."""

    fields: dict[str, YamlValue]
    body: str


def parse_front_matter(text: str) -> FrontMatter:
    """Split a SKILL.md. Raises ValidationError that says what is wrong."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.startswith(DELIMITER):
        raise ValidationError(f"it must start with front matter ({DELIMITER})")
    _, source, *rest = text.split(DELIMITER, 2)
    if not rest:
        raise ValidationError(f"the front matter is not closed with {DELIMITER}")
    if len(source) > MAX_FRONT_MATTER_CHARS:
        raise ValidationError(f"the front matter has more than {MAX_FRONT_MATTER_CHARS} characters")
    is_short = len(source) <= _MAX_CACHED_CHARS
    fields = _parse_cached(source) if is_short else _parse_yaml(source)
    if isinstance(fields, ValidationError):
        raise fields
    return FrontMatter(fields, rest[0].strip())


def _parse_yaml(source: str) -> dict[str, YamlValue] | ValidationError:
    """Fields of a front matter, which nobody changes, or why there are none."""
    try:
        _check_events(source)
        node = yaml.compose(source, Loader=yaml.BaseLoader)
        if not isinstance(node, yaml.MappingNode):
            return ValidationError("the front matter must be a YAML mapping")
        return _mapping_from_node(node)
    except ValidationError as problem:
        return problem
    except yaml.MarkedYAMLError as problem:
        line = f"line {problem.problem_mark.line + 1}: " if problem.problem_mark else ""
        return ValidationError(f"invalid YAML: {line}{problem.problem or problem.context}")
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError):
        return ValidationError("invalid YAML")  # the last two: escapes of no character


_parse_cached: Final = lru_cache(maxsize=8192)(_parse_yaml)


def _check_events(source: str) -> None:
    """Refuse what the subset lacks. Raises ValidationError and YAMLError."""
    for event in yaml.parse(source, Loader=yaml.BaseLoader):
        line = f"line {event.start_mark.line + 1}" if event.start_mark else "the front matter"
        if getattr(event, "anchor", None) is not None:
            raise ValidationError(f"invalid YAML: {line}: anchors and aliases are not supported")
        if getattr(event, "tag", None) is not None:
            raise ValidationError(f"invalid YAML: {line}: tags are not supported")
        if getattr(event, "flow_style", False):
            raise ValidationError(f"invalid YAML: {line}: {_FLOW_PROBLEM}")
        if _SURROGATE.search(getattr(event, "value", "")):
            raise ValidationError(f"invalid YAML: {line}: an escape is half of a surrogate pair")


def _value_from_node(node: yaml.Node) -> YamlValue:
    match node:
        case yaml.MappingNode():
            return _mapping_from_node(node)
        case yaml.SequenceNode():
            return [_value_from_node(item) for item in node.value]
        case _:
            return str(node.value)


def _mapping_from_node(node: yaml.MappingNode) -> dict[str, YamlValue]:
    fields: dict[str, YamlValue] = {}
    columns: set[int] = set()
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise ValidationError(f"invalid YAML: line {line}: a key must be a text")
        if key_node.value == _MERGE_KEY and key_node.style is None:
            raise ValidationError(f"invalid YAML: line {line}: merge keys are not supported")
        if key_node.value in fields:
            raise ValidationError(f"invalid YAML: line {line}: {key_node.value} is given twice")
        if isinstance(value_node, yaml.MappingNode):
            columns.add(value_node.start_mark.column)
        fields[key_node.value] = _value_from_node(value_node)
    if len(columns) > 1:
        raise ValidationError("invalid YAML: mappings are indented inconsistently")
    return fields
