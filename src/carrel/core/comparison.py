"""Comparisons of files: references to what is compared, and the status of each path."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, TimestampMs

REFERENCE_SYNTAX: Final = (
    "`agent:NAME`, `template:NAME`, `workspace:ID`, `defaults` or `run:ID`; then `/PATH` for one"
    " file; then `@TIME` for the files of a time, or `@vN` for a version of the file"
)
_MAX_REFERENCE: Final = 1400
_MOMENT: Final = re.compile(r"(?P<rest>.*)@(?P<moment>v[1-9][0-9]{0,15}|now|\d{4}-\d\d-\d\dT.*)")


class ComparedKind(StrEnum):
    """Kind of what a reference names."""

    AGENT = "agent"
    TEMPLATE = "template"
    DEFAULTS = "defaults"
    WORKSPACE = "workspace"
    RUN = "run"


class ComparisonStatus(StrEnum):
    """Result for one path."""

    SAME = "same"
    CHANGED = "changed"
    ONLY_LEFT = "only-left"
    ONLY_RIGHT = "only-right"
    UNKNOWN = "unknown"
    """The versions of that time were pruned."""


class ComparisonReference(Struct, frozen=True):
    """One side of a comparison."""

    kind: ComparedKind
    name: str
    """Id or slug; empty for the defaults."""
    path: Path | None = None
    """One file; None for all."""
    version: int | None = None
    """Version of the file, as its history numbers it."""
    at: TimestampMs | None = None
    """Files as they were at this time; None for now."""


def parse_reference(text: str) -> ComparisonReference:
    """Parse a reference. Raises ValidationError."""
    if len(text) > _MAX_REFERENCE:
        raise ValidationError("a reference has at most 1400 characters")
    match = _MOMENT.fullmatch(text)
    rest, moment = (match["rest"], match["moment"]) if match else (text, "now")
    owner, _, path = rest.partition("/")
    kind_name, _, name = owner.partition(":")
    try:
        kind = ComparedKind(kind_name)
    except ValueError:
        raise _syntax_error(text) from None
    if bool(name) is (kind is ComparedKind.DEFAULTS) or rest.endswith("/"):
        raise _syntax_error(text)
    reference = ComparisonReference(kind, name, Path(path) if path else None)
    return _with_moment(reference, moment, text)


def _with_moment(reference: ComparisonReference, moment: str, text: str) -> ComparisonReference:
    if moment == "now":
        return reference
    if reference.kind is ComparedKind.RUN:
        raise ValidationError("a run has its files of one time: leave out what follows the @")
    kind, name, path = reference.kind, reference.name, reference.path
    if moment.startswith("v"):
        if path is None:
            raise ValidationError("a version needs a file, such as agent:ada/SOUL.md@v3")
        return ComparisonReference(kind, name, path, version=int(moment[1:]))
    return ComparisonReference(kind, name, path, at=_parse_time(moment, text))


def _parse_time(moment: str, text: str) -> TimestampMs:
    try:
        parsed = datetime.fromisoformat(moment)
        if parsed.tzinfo is None:
            raise _syntax_error(text)
        return int(parsed.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise _syntax_error(text) from None


def _syntax_error(text: str) -> ValidationError:
    return ValidationError(
        f"{text[:80]!a} is no reference; use {REFERENCE_SYNTAX.replace('`', '')}"
    )
