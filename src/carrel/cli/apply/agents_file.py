"""Parses `agents.yaml`: the desired agents, their settings and directories."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any, Final

import msgspec
from msgspec import Struct

from carrel.cli.apply.yaml_reader import FileError, LocatedValue, parse_yaml
from carrel.core.agents.config import AgentConfig, parse_config
from carrel.core.errors import ValidationError
from carrel.core.text_validation import parse_unreserved_slug
from carrel.core.text_validation import single_line as one_line

_AGENT_KEYS: Final = ("id", "name", "template", "workspace")


@dataclass(frozen=True, slots=True)
class DesiredAgent:
    """Desired state of an agent. Settings that are not listed stay unchanged."""

    id: str
    line: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    """`name` and `template`, if given."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Settings by API name. None removes a setting."""
    workspace: str | None = None
    """Real path of its directory."""


def parse_agents(text: str, directory: str | os.PathLike[str]) -> list[DesiredAgent]:
    """Parse an agents file. Relative paths are resolved against `directory`.

    Raises FileError.
    """
    document = parse_yaml(text).mapping("the file")
    if "agents" not in document:
        raise FileError(1, "missing key: agents")
    _reject_unknown_keys(document, ("agents",), "")
    listed = document["agents"]
    if not isinstance(listed.value, list):
        raise FileError(listed.line, "agents must be a list")
    agents = [_parse_agent(item, directory) for item in listed.value]
    _check_unique_ids(agents)
    _check_separate_workspaces(agents)
    return agents


def _parse_agent(node: LocatedValue, directory: str | os.PathLike[str]) -> DesiredAgent:
    fields = node.mapping("an agent")
    settings = {info.name: info for info in msgspec.structs.fields(AgentConfig)}
    _reject_unknown_keys(fields, (*_AGENT_KEYS, *settings), "")
    if "id" not in fields:
        raise FileError(node.line, "an agent must have an id")
    config: dict[str, Any] = {}
    for name, value in fields.items():
        if name in settings:
            config[settings[name].encode_name] = _parse_setting(settings[name], value)
    return DesiredAgent(
        _parse_slug(fields["id"]),
        node.line,
        _parse_facts(fields),
        config,
        _resolve_workspace(fields, directory),
    )


def _parse_slug(node: LocatedValue) -> str:
    try:
        return parse_unreserved_slug(node.text("id"))
    except ValidationError as problem:
        raise FileError(node.line, f"id: {problem}") from None


def _parse_facts(fields: Mapping[str, LocatedValue]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if "name" in fields:
        try:
            facts["name"] = one_line(fields["name"].text("name"), "name")
        except ValidationError as problem:
            raise FileError(fields["name"].line, str(problem)) from None
    if "template" in fields:
        node = fields["template"]
        facts["template"] = None if node.value is None else node.text("template")
    return facts


def _resolve_workspace(
    fields: Mapping[str, LocatedValue], directory: str | os.PathLike[str]
) -> str | None:
    node = fields.get("workspace")
    if node is None or node.value in (None, ""):
        return None
    try:
        path = os.path.realpath(File(directory) / node.text("workspace"))
    except (ValueError, OSError):
        raise FileError(node.line, "workspace: not a valid directory name") from None
    if os.path.lexists(path) and not os.path.isdir(path):
        raise FileError(node.line, f"workspace: {path} is not a directory")
    return path


def _parse_setting(info: msgspec.structs.FieldInfo, node: LocatedValue) -> Any:
    """Validate one config setting and return it with API names."""
    if node.value is None:
        return None
    value = _to_wire_names(info.type, node, info.name)
    try:
        parse_config({info.encode_name: value})
    except ValidationError as problem:
        raise FileError(node.line, str(problem)) from None
    return value


def _to_wire_names(field_type: Any, node: LocatedValue, key_path: str) -> Any:
    if not (isinstance(field_type, type) and issubclass(field_type, Struct)):
        return node.to_plain()
    fields = node.mapping(key_path)
    infos = {info.name: info for info in msgspec.structs.fields(field_type)}
    _reject_unknown_keys(fields, infos, f"{key_path}.")
    return {
        infos[name].encode_name: _to_wire_names(infos[name].type, value, f"{key_path}.{name}")
        for name, value in fields.items()
    }


def _reject_unknown_keys(
    fields: Mapping[str, LocatedValue], allowed: Sequence[str] | Mapping[str, Any], prefix: str
) -> None:
    for name, node in fields.items():
        if name not in allowed:
            allowed_keys = ", ".join(sorted(allowed))
            raise FileError(node.line, f"{prefix}{name} is unknown; expected one of {allowed_keys}")


def _check_unique_ids(agents: Sequence[DesiredAgent]) -> None:
    lines: dict[str, int] = {}
    for agent in agents:
        if agent.id in lines:
            raise FileError(
                agent.line, f"{agent.id} is listed twice, first in line {lines[agent.id]}"
            )
        lines[agent.id] = agent.line


def _check_separate_workspaces(agents: Sequence[DesiredAgent]) -> None:
    """Reject agents whose directories are the same or nested."""
    agent_by_path: dict[str, str] = {}
    with_workspace = [agent for agent in agents if agent.workspace is not None]
    for agent in with_workspace:
        other = agent_by_path.setdefault(agent.workspace or "", agent.id)
        if other != agent.id:
            raise FileError(agent.line, f"{agent.id} and {other} have the same workspace")
    for agent in with_workspace:
        for parent in File(agent.workspace or "").parents:
            if str(parent) in agent_by_path:
                raise FileError(
                    agent.line,
                    f"the workspace of {agent.id} is within that of {agent_by_path[str(parent)]}",
                )
