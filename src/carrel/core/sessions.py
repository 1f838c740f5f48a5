"""Transcripts: what was said in a session, and the lines of JSON that it is written down in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from carrel.core.errors import ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Audience
from carrel.core.store.tree import IdempotencyKey

Row = TypeVar("Row")

VERSION: Final = 1
LONGEST_CONTENT: Final = 2**20
"""Bytes that can be said at a time."""
LONGEST_NAME: Final = 256
HEAVIEST: Final = 4 * 2**20
"""Bytes after which no more is read at a time."""
MEDIA_TYPE: Final = "application/jsonl"
_HEX: Final = "[0-9a-fA-F]"
_ID: Final = re.compile(
    rf"(?:urn:uuid:)?{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}|{_HEX}{{32}}"
    rf"|\{{{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}\}}",
    re.IGNORECASE,
)


class SpeakerRole(StrEnum):
    """Who speaks."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


class Session(Struct, frozen=True):
    """One conversation of an agent, from when it was started until it is closed."""

    tenant: str
    id: str
    """A UUID in its canonical spelling, unique within the tenant."""
    agent: str
    mode: Audience
    """Who was listening. It stays as it began."""
    plugin: str
    """Through which channel it came; empty where that was not said."""
    started: TimestampMs
    ended: TimestampMs | None = None
    entries: int = 0
    last_entry_at: TimestampMs = 0
    """When something was last said; when it was started, if nothing was."""


class TranscriptEntry(Struct, frozen=True):
    """One thing that was said. It never changes."""

    sequence: int
    """Its place in the session, from 1, without gaps."""
    at: TimestampMs
    role: SpeakerRole
    content: str
    message: str | None = None
    plugin: str = ""
    sender: str | None = None


class SessionAppend(Struct, frozen=True):
    """What is to be said next in a session of an agent; numbers are given when it is stored."""

    tenant: str
    session: str
    agent: str
    utterances: tuple[TranscriptEntry, ...]
    receipt: IdempotencyKey | None = None
    """Marked with the numbers that were given, in the same transaction."""


class TranscriptHit(Struct, frozen=True):
    """An utterance that was found, and where."""

    session: str
    utterance: TranscriptEntry


class TranscriptHeader(Struct, frozen=True):
    """The first line of a transcript."""

    id: str
    at: TimestampMs
    agent: str
    plugin: str


class Transcript(Struct, frozen=True):
    """What a file of lines holds, as far as it can be read."""

    heading: TranscriptHeader | None
    utterances: tuple[TranscriptEntry, ...]
    skipped: int = 0
    """Lines that are neither blank nor anything that we know."""


def session_id(text: str) -> str:
    """A session's id in its canonical spelling, from any usual one. Raises Malformed."""
    if not _ID.fullmatch(text):
        raise ValidationError("a session's id is a UUID")
    return _spelt(re.sub("[^0-9a-f]", "", text.lower().removeprefix("urn:uuid:")))


def drawn_id(chance: str) -> str:
    """A random UUID, from a text that nobody could guess."""
    drawn = hashlib.sha256(chance.encode()).hexdigest()
    variant = "89ab"[int(drawn[16], 16) % 4]
    return _spelt(f"{drawn[:12]}4{drawn[13:16]}{variant}{drawn[17:32]}")


def _spelt(digits: str) -> str:
    return "-".join(digits[start:end] for start, end in pairwise((0, 8, 12, 16, 20, 32)))


class _Header(Struct, tag_field="type", tag="session"):
    version: int
    id: str
    timestamp: str
    agent_id: str
    source_plugin: str = ""


class _Entry(Struct, tag_field="type", tag="entry"):
    timestamp: str
    role: SpeakerRole
    content: str
    message_id: str | UnsetType | None = UNSET
    source_plugin: str | UnsetType | None = UNSET
    sender_id: str | UnsetType | None = UNSET


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Header | _Entry).decode


def heading(session: Session, agent: str) -> bytes:
    """A transcript's first line, with what its agent is called by people: its slug."""
    told = (VERSION, session.id, told_at(session.started), agent, session.plugin)
    return _encode(_Header(*told)) + b"\n"


def line(said: TranscriptEntry) -> bytes:
    """One of its further lines; what was not said is left out, but for the channel."""
    return (
        _encode(
            _Entry(
                told_at(said.at),
                said.role,
                said.content,
                UNSET if said.message is None else said.message,
                said.plugin,
                UNSET if said.sender is None else said.sender,
            )
        )
        + b"\n"
    )


def lines(entries: Iterable[TranscriptEntry]) -> bytes:
    return b"".join(map(line, entries))


def read(content: bytes) -> Transcript:
    """What the lines say; a line that cannot be read costs itself and no other."""
    first: TranscriptHeader | None = None
    said: list[TranscriptEntry] = []
    skipped = 0
    for row in filter(bytes.strip, content.split(b"\n")):
        found = _read(row, len(said) + 1)
        match found:
            case TranscriptEntry():
                said.append(found)
            case TranscriptHeader() if first is None:
                first = found
            case _:
                skipped += 1
    return Transcript(first, tuple(said), skipped)


def whole(content: bytes) -> int:
    """How many bytes of it are whole lines: what follows was torn off while it was written."""
    return content.rfind(b"\n") + 1


def _read(row: bytes, number: int) -> TranscriptHeader | TranscriptEntry | None:
    try:
        found = _decode(row)
        at = _moment(found.timestamp)
    except (ValueError, RecursionError, OverflowError):  # of JSON, of UTF-8, of a time
        return None
    if isinstance(found, _Header):
        return TranscriptHeader(found.id, at, found.agent_id, found.source_plugin)
    message, sender = found.message_id or None, found.sender_id or None
    plugin = found.source_plugin or ""
    return TranscriptEntry(number, at, found.role, found.content, message, plugin, sender)


_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def told_at(at: TimestampMs) -> str:
    when = _BEGINNING + timedelta(milliseconds=at)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _moment(text: str) -> TimestampMs:
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return (when - _BEGINNING) // _MILLISECOND


def light(said: Iterable[Row], size: Callable[[Row], int]) -> Iterator[Row]:
    """As many as one answer carries: one at least, and none past HEAVIEST bytes."""
    carried = 0
    for one in said:
        if carried >= HEAVIEST:
            return
        yield one
        carried += size(one)


def shown(text: str, most: int) -> tuple[str, bool]:
    """The first so many characters of a text, with a sign where it was cut, and whether it was."""
    return (text, False) if len(text) <= most else (text[:most] + "…", True)
