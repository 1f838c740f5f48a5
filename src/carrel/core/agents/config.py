"""How an agent is set up: what is understood of the `config` in its record."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from carrel.core import field_validation
from carrel.core.errors import ValidationError

Text = Annotated[str, Meta(max_length=500)]
Pattern = Annotated[str, Meta(min_length=1, max_length=200)]
_LEADS_OUT: Final = re.compile(r"(?:^|[/\\])\.\.(?:$|[/\\])|[\x00-\x1f\x7f]")
_ATTACHED: Final = "[A-Za-z0-9._-]+"
_NAME: Final = re.compile(_ATTACHED)
Reference = Annotated[str, Meta(min_length=1, max_length=100)]
"""The id of a record that need not be there until it is used."""
Share = Annotated[float, Meta(ge=0, le=1)]


class GitConfig(Struct, frozen=True, rename="camel"):
    enabled: bool = False
    author_name: Text | None = None
    author_email: Text | None = None


class DreamWeights(Struct, frozen=True, rename="camel"):
    """How much each signal counts for a memory."""

    frequency: Share = 0.24
    relevance: Share = 0.30
    recency: Share = 0.15
    diversity: Share = 0.15
    consolidation: Share = 0.10


class DreamConfig(Struct, frozen=True, rename="camel"):
    enabled: bool = False
    interval_secs: Annotated[int, Meta(ge=60, le=366 * 86_400)] = 86_400
    min_score: Share = 0.35
    min_recall_count: Annotated[int, Meta(ge=1)] = 3
    min_unique_queries: Annotated[int, Meta(ge=0)] = 2
    min_unique_days: Annotated[int, Meta(ge=0)] = 1
    max_promotions_per_sweep: Annotated[int, Meta(ge=0, le=1000)] = 20
    half_life_days: Annotated[float, Meta(gt=0)] = 90
    max_chars: Annotated[int, Meta(ge=500)] = 12_000
    """What MEMORY.md may grow to by dreaming."""
    review: bool = False
    """Whether a person looks at it before it lands."""
    weights: DreamWeights = DreamWeights()


class WorkspaceAttachment(Struct, frozen=True, rename="camel"):
    """A shared workspace under the name by which the agent knows it."""

    name: Annotated[str, Meta(min_length=1, max_length=100, pattern=rf"\A{_ATTACHED}\Z")]
    workspace_id: Reference
    sandbox: Reference | UnsetType | None = UNSET
    """Its own; None for none at all; where nothing is said, the agent's."""


class AgentConfig(Struct, frozen=True, rename="camel"):
    """What is not here is kept as it was given, and means nothing to us."""

    model: Text | None = None
    timezone: Text | None = None
    """The days of its notes are those of this place; UTC where none is named."""
    allowed_tools: tuple[Pattern, ...] = ()
    """Names, or beginnings of names with a star; none allows all."""
    allowed_delegates: tuple[Pattern, ...] = ()
    extra_docs: tuple[Text, ...] = ()
    """Paths of files that the prompt ends with."""
    prompt_chars: Annotated[int, Meta(ge=1000)] = 60_000
    file_chars: Annotated[int, Meta(ge=100)] = 12_000
    transcripts_dir: Text | None = None
    workspace_git: GitConfig = GitConfig()
    dreaming: DreamConfig = DreamConfig()
    sandbox: Reference | None = None
    workspaces: Annotated[tuple[WorkspaceAttachment, ...], Meta(max_length=32)] = ()


BLANK: Final = AgentConfig()


def checked(given: Mapping[str, Any]) -> AgentConfig:
    """What it means, if all that we know of it is as it should be. Raises Malformed."""
    _check_references(given)
    try:
        config = msgspec.convert(given, AgentConfig)
    except msgspec.ValidationError as wrong:
        raise ValidationError(f"config: {wrong}") from None
    if _LEADS_OUT.search(config.transcripts_dir or ""):
        raise ValidationError("config: transcriptsDir has no .. in it, and no control character")
    return config


def _check_references(given: Mapping[str, Any]) -> None:
    """That what it refers to could be there, in the words that clients of accounts know."""
    if given.get("sandbox") is not None:
        field_validation.text("config.sandbox", given["sandbox"])
    attached = given.get("workspaces", [])
    if not isinstance(attached, list | tuple):
        raise ValidationError("config.workspaces must be an array")
    seen: set[str] = set()
    for at, one in enumerate(attached):
        what = f"config.workspaces[{at}]"
        said = field_validation.mapping(what, one)
        name = field_validation.text(f"{what}.name", said.get("name"))
        if not _NAME.fullmatch(str(said["name"])):
            raise ValidationError(f"{what}.name must have only letters, digits, . _ and -")
        if name in seen:
            raise ValidationError(f"{what}.name must be unique within the agent")
        seen.add(name)
        field_validation.text(f"{what}.workspaceId", said.get("workspaceId"))
        sandbox = said.get("sandbox")
        if sandbox is not None and not (isinstance(sandbox, str) and sandbox.strip()):
            raise ValidationError(f"{what}.sandbox must be a non-empty string or null")


def config_of(given: Mapping[str, Any]) -> AgentConfig:
    """What it means; what was stored before it was checked says nothing where it does not fit."""
    try:
        return msgspec.convert(given, AgentConfig)
    except msgspec.ValidationError:
        return _parts(given)


def _parts(given: Mapping[str, Any]) -> AgentConfig:
    fitting: dict[str, Any] = {}
    for name, value in given.items():
        try:
            msgspec.convert({name: value}, AgentConfig)
        except msgspec.ValidationError:
            continue
        fitting[name] = value
    return msgspec.convert(fitting, AgentConfig)


def allows(patterns: Sequence[str], name: str) -> bool:
    """Whether these let a tool or a peer of this name be used; where there are none, all are."""
    return not patterns or any(_fits(pattern, name) for pattern in patterns)


def _fits(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
