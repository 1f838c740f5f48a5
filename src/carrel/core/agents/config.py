"""Agent configuration: the known fields of `config` in an agent's record."""

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
_UNSAFE_PATH: Final = re.compile(r"(?:^|[/\\])\.\.(?:$|[/\\])|[\x00-\x1f\x7f]")
_NAME_PATTERN: Final = "[A-Za-z0-9._-]+"
_NAME_REGEX: Final = re.compile(_NAME_PATTERN)
Reference = Annotated[str, Meta(min_length=1, max_length=100)]
"""Id of a record that need not exist until it is used."""
Fraction = Annotated[float, Meta(ge=0, le=1)]


class GitConfig(Struct, frozen=True, rename="camel"):
    enabled: bool = False
    author_name: Text | None = None
    author_email: Text | None = None


class DreamWeights(Struct, frozen=True, rename="camel"):
    """Weights of the signals in a memory's score."""

    frequency: Fraction = 0.24
    relevance: Fraction = 0.30
    recency: Fraction = 0.15
    diversity: Fraction = 0.15
    consolidation: Fraction = 0.10


class DreamConfig(Struct, frozen=True, rename="camel"):
    enabled: bool = False
    interval_secs: Annotated[int, Meta(ge=60, le=366 * 86_400)] = 86_400
    min_score: Fraction = 0.35
    min_recall_count: Annotated[int, Meta(ge=1)] = 3
    min_unique_queries: Annotated[int, Meta(ge=0)] = 2
    min_unique_days: Annotated[int, Meta(ge=0)] = 1
    max_promotions_per_sweep: Annotated[int, Meta(ge=0, le=1000)] = 20
    half_life_days: Annotated[float, Meta(gt=0)] = 90
    max_chars: Annotated[int, Meta(ge=500)] = 12_000
    """Maximum length of MEMORY.md after a promotion."""
    review: bool = False
    """Whether a person reviews promotions before they are written."""
    weights: DreamWeights = DreamWeights()


class WorkspaceAttachment(Struct, frozen=True, rename="camel"):
    """A shared workspace and the name under which the agent addresses it."""

    name: Annotated[str, Meta(min_length=1, max_length=100, pattern=rf"\A{_NAME_PATTERN}\Z")]
    workspace_id: Reference
    sandbox: Reference | UnsetType | None = UNSET
    """Sandbox of this workspace; None for none; unset for the agent's."""


class AgentConfig(Struct, frozen=True, rename="camel"):
    """Known configuration fields. Unknown fields are stored but ignored."""

    model: Text | None = None
    timezone: Text | None = None
    """Time zone of the agent's daily notes; UTC if unset."""
    allowed_tools: tuple[Pattern, ...] = ()
    """Tool names or prefixes followed by `*`; empty allows all."""
    allowed_delegates: tuple[Pattern, ...] = ()
    extra_docs: tuple[Text, ...] = ()
    """Paths of files appended to the prompt."""
    prompt_chars: Annotated[int, Meta(ge=1000)] = 60_000
    file_chars: Annotated[int, Meta(ge=100)] = 12_000
    skills_chars: Annotated[int, Meta(ge=0)] = 8_000
    """Limit of the index of skills in the prompt; 0: none."""
    transcripts_dir: Text | None = None
    workspace_git: GitConfig = GitConfig()
    dreaming: DreamConfig = DreamConfig()
    sandbox: Reference | None = None
    workspaces: Annotated[tuple[WorkspaceAttachment, ...], Meta(max_length=32)] = ()


DEFAULT_CONFIG: Final = AgentConfig()


def parse_config(raw: Mapping[str, Any]) -> AgentConfig:
    """Validate a config. Raises ValidationError."""
    _check_references(raw)
    try:
        config = msgspec.convert(raw, AgentConfig)
    except msgspec.ValidationError as error:
        raise ValidationError(f"config: {error}") from None
    if _UNSAFE_PATH.search(config.transcripts_dir or ""):
        raise ValidationError("config: transcriptsDir must not contain .. or control characters")
    return config


def _check_references(raw: Mapping[str, Any]) -> None:
    """Validate references, with the documented messages of the accounts API."""
    if raw.get("sandbox") is not None:
        field_validation.require_text("config.sandbox", raw["sandbox"])
    attachments = raw.get("workspaces", [])
    if not isinstance(attachments, list | tuple):
        raise ValidationError("config.workspaces must be an array")
    names: set[str] = set()
    for index, item in enumerate(attachments):
        field_name = f"config.workspaces[{index}]"
        attachment = field_validation.require_mapping(field_name, item)
        name = field_validation.require_text(f"{field_name}.name", attachment.get("name"))
        if not _NAME_REGEX.fullmatch(str(attachment["name"])):
            raise ValidationError(f"{field_name}.name must have only letters, digits, . _ and -")
        if name in names:
            raise ValidationError(f"{field_name}.name must be unique within the agent")
        names.add(name)
        field_validation.require_text(f"{field_name}.workspaceId", attachment.get("workspaceId"))
        sandbox = attachment.get("sandbox")
        if sandbox is not None and not (isinstance(sandbox, str) and sandbox.strip()):
            raise ValidationError(f"{field_name}.sandbox must be a non-empty string or null")


def config_from_stored(raw: Mapping[str, Any]) -> AgentConfig:
    """Read a stored config; fields that are invalid are ignored."""
    try:
        return msgspec.convert(raw, AgentConfig)
    except msgspec.ValidationError:
        return _convert_valid_fields(raw)


def _convert_valid_fields(raw: Mapping[str, Any]) -> AgentConfig:
    valid: dict[str, Any] = {}
    for name, value in raw.items():
        try:
            msgspec.convert({name: value}, AgentConfig)
        except msgspec.ValidationError:
            continue
        valid[name] = value
    return msgspec.convert(valid, AgentConfig)


def is_allowed(patterns: Sequence[str], name: str) -> bool:
    """Whether a tool or peer name is allowed; no patterns allow all."""
    return not patterns or any(_matches(pattern, name) for pattern in patterns)


def _matches(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
