"""Tallies: counts kept by the store in the transaction of each change."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from carrel.core.identifiers import Path, TimestampMs

SEPARATOR: Final = "\x1f"
"""Between the parts of a tally's key; paths and ids cannot have it."""
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS


class TallyKind(StrEnum):
    AGENTS = "agents"
    """Agents by group."""
    FILES = "files"
    """Agents' own files by path and group."""
    RUNS = "runs"
    """Runs by hour and status."""
    MEMORIES = "memory"
    """Memories by the day of their creation."""
    PROMOTIONS = "promotion"
    """Promoted memories by day."""
    PROMPTS = "prompts"
    """Sizes of the prompts of runs by day."""


class Tally(Struct, frozen=True):
    name: str
    key: str
    value: int


class WrongTally(Struct, frozen=True):
    """A tally that differs from what it counts."""

    tenant: str
    kind: str
    name: str
    kept: int
    counted: int


class AgentGroup(Struct, frozen=True):
    """Agents with the same layers below their own files, and the same visibility."""

    template: str | None
    pins: str | None
    is_shared: bool


class FileState(StrEnum):
    PIN = "pin"
    OVERRIDE = "override"
    OWN = "own"
    """Nothing was below when it was written."""
    NONE = "none"
    """No file: a person decided about one that is offered, or removed."""


class FileGroup(Struct, frozen=True):
    """Files of agents of one group at one path, in the same state over the same base."""

    agents: AgentGroup
    path: Path
    state: FileState
    base: str
    """Digest of the content below when it was written, empty if there was none."""
    reviewed: str = ""
    """Offer that a person reviewed and did not take: see Head."""


def agent_group_from_tally(tally: Tally) -> AgentGroup:
    return _agent_group(*tally.key.split(SEPARATOR))


def _agent_group(template: str, pins: str, visibility: str) -> AgentGroup:
    return AgentGroup(template or None, pins or None, visibility == "shared")


def file_group_from_tally(tally: Tally) -> FileGroup:
    template, pins, visibility, state, base, reviewed = tally.key.split(SEPARATOR)
    group = _agent_group(template, pins, visibility)
    base = base and f"sha256:{base}"
    return FileGroup(group, Path(tally.name), FileState(state), base, reviewed)


def hour_name(at: TimestampMs) -> str:
    """Name of the tallies of an hour; names are ordered by time."""
    return f"{at // HOUR_MS:08}"


def day_name(at: TimestampMs) -> str:
    """Name of the tallies of a day in UTC."""
    return f"{at // DAY_MS:06}"


def hour_from_name(name: str) -> TimestampMs:
    return int(name) * HOUR_MS


def day_from_name(name: str) -> TimestampMs:
    return int(name) * DAY_MS
