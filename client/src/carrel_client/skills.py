"""Agent Skills of an agent, a template, a workspace or the defaults."""

from __future__ import annotations

from dataclasses import dataclass

from carrel_client.models import Model, model_list_field, wire_name


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile(Model):
    """A file of a skill."""

    path: str
    """Relative to the folder of the skill."""
    version: int
    source: str
    file_class: str = wire_name("class")
    sha256: str
    size: int
    update_available: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill(Model):
    """A folder ``skills/NAME``; one that is invalid is not offered to agents."""

    name: str
    description: str
    valid: bool
    problems: tuple[str, ...]
    digest: str
    """SHA-256 over the paths and digests of its files."""
    files: tuple[SkillFile, ...] = model_list_field(SkillFile)
