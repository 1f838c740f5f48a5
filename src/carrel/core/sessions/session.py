"""Session transcripts and their JSON Lines format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Audience
from carrel.core.store.idempotency import IdempotencyKey

Row = TypeVar("Row")

FORMAT_VERSION: Final = 1
MAX_CONTENT_BYTES: Final = 2**20
"""Size of one entry's content."""
MAX_NAME_LENGTH: Final = 256
MAX_READ_BYTES: Final = 4 * 2**20
"""A page of entries ends after this many bytes."""
MEDIA_TYPE: Final = "application/jsonl"


class SpeakerRole(StrEnum):
    """Author of a transcript entry."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


class Session(Struct, frozen=True):
    """One conversation of an agent."""

    tenant: str
    id: str
    """Unique among the agent's sessions."""
    agent: str
    mode: Audience
    """Fixed when the session starts."""
    plugin: str
    """Channel of the session; empty if not stated."""
    started_at: TimestampMs
    ended_at: TimestampMs | None = None
    entry_count: int = 0
    last_sequence: int = 0
    """Greatest sequence number of an entry, also of one that was removed."""
    last_entry_at: TimestampMs = 0
    """Time of the last entry or removal; the start time if there is none."""
    run: str | None = None
    """Run that the session belongs to now; new entries without a run get this one."""

    @property
    def has_removals(self) -> bool:
        """Whether entries were removed."""
        return self.last_sequence != self.entry_count


class TranscriptEntry(Struct, frozen=True):
    """One immutable entry of a session."""

    sequence: int
    """Position in the session, from 1. Numbers of removed entries are not used again."""
    at: TimestampMs
    role: SpeakerRole
    content: str
    message: str | None = None
    plugin: str = ""
    sender: str | None = None
    item: str | None = None
    """Structured form of the entry as JSON, such as content parts or a tool call."""
    run: str | None = None
    """Run that wrote the entry."""

    @property
    def size(self) -> int:
        """Characters, roughly the memory that it takes."""
        return len(self.content) + len(self.item or "")


class SessionAppend(Struct, frozen=True):
    """Entries to append to a session; the store assigns their sequence numbers."""

    tenant: str
    session: str
    agent: str
    entries: tuple[TranscriptEntry, ...]
    idempotency_key: IdempotencyKey | None = None
    """Marked with the assigned sequence numbers in the same transaction."""
    after: int | None = None
    """Only if this is the sequence number of the last entry; 0 for no entry."""


class LastEntryChanged(Struct, frozen=True):
    """Nothing was appended, since the last entry is not the expected one."""

    last: int
    """Sequence number of the last entry; 0 for no entry."""


class EntryRemoval(Struct, frozen=True):
    """Removal of a session's last entry, or of all entries."""

    tenant: str
    agent: str
    session: str
    at: TimestampMs
    is_complete: bool = False
    """Whether all entries are removed."""
    idempotency_key: IdempotencyKey | None = None
    """Marked with the number of the last removed entry in the same transaction."""


class RemovedEntries(Struct, frozen=True):
    """Result of a removal: the session afterwards, and the last entry if there was one."""

    session: Session
    last: TranscriptEntry | None


class TranscriptHit(Struct, frozen=True):
    """A search result: an entry and its session."""

    session: str
    entry: TranscriptEntry


class TranscriptHeader(Struct, frozen=True):
    """First line of a transcript file."""

    id: str
    at: TimestampMs
    agent: str
    plugin: str


class Transcript(Struct, frozen=True):
    """Parsed transcript file."""

    header: TranscriptHeader | None
    entries: tuple[TranscriptEntry, ...]
    skipped: int = 0
    """Non-blank lines that could not be parsed."""


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
    run_id: str | UnsetType | None = UNSET
    item: Raw | UnsetType = UNSET


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Header | _Entry).decode


def encode_header(session: Session, agent: str) -> bytes:
    """First line of a transcript; `agent` is the agent's slug."""
    values = (
        FORMAT_VERSION,
        session.id,
        format_timestamp(session.started_at),
        agent,
        session.plugin,
    )
    return _encode(_Header(*values)) + b"\n"


def encode_entry(entry: TranscriptEntry) -> bytes:
    """One transcript line. Absent fields are omitted, except the channel."""
    return (
        _encode(
            _Entry(
                format_timestamp(entry.at),
                entry.role,
                entry.content,
                UNSET if entry.message is None else entry.message,
                entry.plugin,
                UNSET if entry.sender is None else entry.sender,
                UNSET if entry.run is None else entry.run,
                UNSET if entry.item is None else Raw(entry.item.encode()),
            )
        )
        + b"\n"
    )


def encode_entries(entries: Iterable[TranscriptEntry]) -> bytes:
    return b"".join(map(encode_entry, entries))


def parse_transcript(content: bytes) -> Transcript:
    """Parse transcript lines; an unreadable line is skipped and counted."""
    header: TranscriptHeader | None = None
    entries: list[TranscriptEntry] = []
    skipped = 0
    for raw_line in filter(bytes.strip, content.split(b"\n")):
        parsed = _parse_line(raw_line, len(entries) + 1)
        match parsed:
            case TranscriptEntry():
                entries.append(parsed)
            case TranscriptHeader() if header is None:
                header = parsed
            case _:
                skipped += 1
    return Transcript(header, tuple(entries), skipped)


def complete_lines_length(content: bytes) -> int:
    """Length in bytes of the complete lines.

    A partial last line was cut off by a crash.
    """
    return content.rfind(b"\n") + 1


def _parse_line(raw_line: bytes, sequence: int) -> TranscriptHeader | TranscriptEntry | None:
    try:
        decoded = _decode(raw_line)
        at = _parse_timestamp(decoded.timestamp)
    except (ValueError, RecursionError, OverflowError):  # invalid JSON, UTF-8 or timestamp
        return None
    if isinstance(decoded, _Header):
        return TranscriptHeader(decoded.id, at, decoded.agent_id, decoded.source_plugin)
    message, sender = decoded.message_id or None, decoded.sender_id or None
    plugin = decoded.source_plugin or ""
    item = None if decoded.item is UNSET else bytes(decoded.item).decode()
    return TranscriptEntry(
        *(sequence, at, decoded.role, decoded.content, message, plugin, sender, item),
        decoded.run_id or None,
    )


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def format_timestamp(at: TimestampMs) -> str:
    moment = _EPOCH + timedelta(milliseconds=at)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _parse_timestamp(text: str) -> TimestampMs:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MILLISECOND


def limit_by_size(rows: Iterable[Row], size: Callable[[Row], int]) -> Iterator[Row]:
    """Yield at least one row, and no more after MAX_READ_BYTES."""
    total = 0
    for row in rows:
        if total >= MAX_READ_BYTES:
            return
        yield row
        total += size(row)


def truncate(text: str, max_length: int) -> tuple[str, bool]:
    """Cut a text to `max_length` characters plus an ellipsis.

    Also return whether it was cut.
    """
    return (text, False) if len(text) <= max_length else (text[:max_length] + "…", True)
