"""What an ``agents.yaml`` says: which agents there should be, how set up, in which directories."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any, Final

import msgspec
from msgspec import Struct

from carrel.cli.apply.yaml_reader import FileError, LocatedValue, parsed
from carrel.core.agents.config import AgentConfig, parse_config
from carrel.core.errors import ValidationError
from carrel.core.text_validation import parse_unreserved_slug
from carrel.core.text_validation import single_line as one_line

_OF_THE_AGENT: Final = ("id", "name", "template", "workspace")


@dataclass(frozen=True, slots=True)
class DesiredAgent:
    """An agent as it should be. What is not said stays as it is."""

    id: str
    line: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    """``name`` and ``template``, where they are said."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """As the API names it; None takes a setting back."""
    workspace: str | None = None
    """The real path of its directory."""


def agents_of(text: str, directory: str | os.PathLike[str]) -> list[DesiredAgent]:
    """Relative directories are meant from this one. Raises Wrong."""
    whole = parsed(text).mapping("the file")
    if "agents" not in whole:
        raise FileError(1, "there is no list of agents")
    _only(whole, ("agents",), "")
    said = whole["agents"]
    if not isinstance(said.value, list):
        raise FileError(said.line, "agents must be a list")
    wanted = [_agent(each, directory) for each in said.value]
    _each_once(wanted)
    _each_apart(wanted)
    return wanted


def _agent(said: LocatedValue, directory: str | os.PathLike[str]) -> DesiredAgent:
    given = said.mapping("an agent")
    known = {each.name: each for each in msgspec.structs.fields(AgentConfig)}
    _only(given, (*_OF_THE_AGENT, *known), "")
    if "id" not in given:
        raise FileError(said.line, "an agent must have an id")
    config: dict[str, Any] = {}
    for name, value in given.items():
        if name in known:
            config[known[name].encode_name] = _setting(known[name], value)
    return DesiredAgent(
        _slug(given["id"]), said.line, _facts(given), config, _workspace(given, directory)
    )


def _slug(said: LocatedValue) -> str:
    try:
        return parse_unreserved_slug(said.text("id"))
    except ValidationError as problem:
        raise FileError(said.line, f"id: {problem}") from None


def _facts(given: Mapping[str, LocatedValue]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if "name" in given:
        try:
            facts["name"] = one_line(given["name"].text("name"), "name")
        except ValidationError as problem:
            raise FileError(given["name"].line, str(problem)) from None
    if "template" in given:
        said = given["template"]
        facts["template"] = None if said.value is None else said.text("template")
    return facts


def _workspace(given: Mapping[str, LocatedValue], directory: str | os.PathLike[str]) -> str | None:
    said = given.get("workspace")
    if said is None or said.value in (None, ""):
        return None
    try:
        path = os.path.realpath(File(directory) / said.text("workspace"))
    except (ValueError, OSError):
        raise FileError(said.line, "workspace: that is no name of a directory") from None
    if os.path.lexists(path) and not os.path.isdir(path):
        raise FileError(said.line, f"workspace: {path} is not a directory")
    return path


def _setting(known: msgspec.structs.FieldInfo, said: LocatedValue) -> Any:
    """One part of the config, as the API names it."""
    if said.value is None:
        return None
    value = _renamed(known.type, said, known.name)
    try:
        parse_config({known.encode_name: value})
    except ValidationError as problem:
        raise FileError(said.line, str(problem)) from None
    return value


def _renamed(kind: Any, said: LocatedValue, where: str) -> Any:
    if not (isinstance(kind, type) and issubclass(kind, Struct)):
        return said.bare()
    given = said.mapping(where)
    known = {each.name: each for each in msgspec.structs.fields(kind)}
    _only(given, known, f"{where}.")
    return {
        known[name].encode_name: _renamed(known[name].type, value, f"{where}.{name}")
        for name, value in given.items()
    }


def _only(
    given: Mapping[str, LocatedValue], known: Sequence[str] | Mapping[str, Any], where: str
) -> None:
    for name, said in given.items():
        if name not in known:
            told = ", ".join(sorted(known))
            raise FileError(said.line, f"{where}{name} is not known; known are {told}")


def _each_once(wanted: Sequence[DesiredAgent]) -> None:
    lines: dict[str, int] = {}
    for each in wanted:
        if each.id in lines:
            raise FileError(each.line, f"{each.id} is there twice, first in line {lines[each.id]}")
        lines[each.id] = each.line


def _each_apart(wanted: Sequence[DesiredAgent]) -> None:
    """No agent may have what is another's: neither its directory nor one within it."""
    seen: dict[str, str] = {}
    placed = [each for each in wanted if each.workspace is not None]
    for each in placed:
        other = seen.setdefault(each.workspace or "", each.id)
        if other != each.id:
            raise FileError(each.line, f"{each.id} and {other} have the same workspace")
    for each in placed:
        for above in File(each.workspace or "").parents:
            if str(above) in seen:
                raise FileError(
                    each.line, f"the workspace of {each.id} is within that of {seen[str(above)]}"
                )
