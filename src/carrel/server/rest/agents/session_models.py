"""Bodies and responses of sessions and their entries."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import quote

from msgspec import UNSET, Meta, Raw, UnsetType

from carrel.actions.sessions.new_entries import NewEntry
from carrel.actions.sessions.sessions import MAX_ENTRIES_PER_APPEND, EntryMatch
from carrel.core.errors import ValidationError
from carrel.core.runs import Audience
from carrel.core.sessions.session import (
    MAX_CONTENT_BYTES,
    MAX_NAME_LENGTH,
    Session,
    SpeakerRole,
    TranscriptEntry,
)
from carrel.core.sessions.session_ids import MAX_ID_LENGTH
from carrel.server.http.endpoint import RequestModel, ResponseModel
from carrel.server.http.query_fields import Id, Total
from carrel.server.rest.files.file_models import PositiveInt, Rfc3339, rfc3339

SESSIONS_TAG: Final = "Sessions"
SESSIONS_PATH: Final = "/v1/agents/{id}/sessions"
SessionId = Annotated[
    str, Meta(min_length=1, max_length=MAX_ID_LENGTH, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")
]
Name = Annotated[str, Meta(max_length=MAX_NAME_LENGTH, pattern="^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
Count = Annotated[int, Meta(ge=0)]


class CreateSessionBody(RequestModel, frozen=True):
    id: (
        Annotated[SessionId, Meta(description="Any text, unique among the agent's sessions.")]
        | None
    ) = None
    run_id: Annotated[Id, Meta(description="Run that the session belongs to now.")] | None = None
    source_plugin: Name = ""
    scope: (
        Annotated[str, Meta(max_length=64, description="`main`; any other value means shared.")]
        | None
    ) = None


class NewEntryBody(RequestModel, frozen=True):
    role: SpeakerRole
    content: (
        Annotated[
            str,
            Meta(max_length=MAX_CONTENT_BYTES, description="By default, the text of `item`."),
        ]
        | None
    ) = None
    item: Annotated[
        Any,
        Meta(
            description="Any JSON value but null, such as content parts or a tool call. "
            "The order of fields stays; numbers with a fraction or exponent are doubles."
        ),
    ] = None
    run_id: Annotated[Id, Meta(description="By default, the run of the session.")] | None = None
    message_id: Name | None = None
    source_plugin: Name = ""
    sender_id: Name | None = None


class AppendEntriesBody(RequestModel, frozen=True):
    """One entry, or several as `items`, and the entry that must be the last one before."""

    role: SpeakerRole | None = None
    content: Annotated[str, Meta(max_length=MAX_CONTENT_BYTES)] | None = None
    item: Any = None
    run_id: Id | None = None
    message_id: Name | None = None
    source_plugin: Name = ""
    sender_id: Name | None = None
    items: (
        Annotated[list[NewEntryBody], Meta(min_length=1, max_length=MAX_ENTRIES_PER_APPEND)] | None
    ) = None
    after: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=2**53 - 1,
                description="Append only if this is the number of the last entry, 0 for none. "
                "Otherwise 409 with `details.lastNumber`.",
            ),
        ]
        | None
    ) = None


class SessionEntryModel(ResponseModel, frozen=True):
    """One transcript entry."""

    number: PositiveInt
    timestamp: Rfc3339
    role: SpeakerRole
    content: str
    message_id: str | None
    source_plugin: str
    sender_id: str | None
    run_id: str | None
    item: Any | UnsetType = UNSET


class SessionEntryPageModel(ResponseModel, frozen=True):
    items: list[SessionEntryModel]
    next: str | None = None


class AppendedEntriesModel(ResponseModel, frozen=True):
    """The entry as stored, or the entries as `items`."""

    number: PositiveInt | UnsetType = UNSET
    timestamp: Rfc3339 | UnsetType = UNSET
    role: SpeakerRole | UnsetType = UNSET
    content: str | UnsetType = UNSET
    message_id: str | UnsetType | None = UNSET
    source_plugin: str | UnsetType = UNSET
    sender_id: str | UnsetType | None = UNSET
    run_id: str | UnsetType | None = UNSET
    item: Any | UnsetType = UNSET
    items: list[SessionEntryModel] | UnsetType = UNSET


class PoppedEntryModel(ResponseModel, frozen=True):
    number: PositiveInt | None
    """Number of the removed entry; null if there was none."""
    entry: SessionEntryModel | None
    """The removed entry; null in the repeated response to a request that a crash interrupted."""


class SessionMatchModel(ResponseModel, frozen=True):
    """A search match: the passage of an entry that matches best."""

    number: PositiveInt
    timestamp: Rfc3339
    role: SpeakerRole
    preview: str
    offset: Annotated[Count, Meta(description="Characters of the entry before the preview.")]
    truncated: Annotated[bool, Meta(description="Whether the preview is not the whole entry.")]


class SessionSummaryModel(ResponseModel, frozen=True):
    id: str
    agent_id: str
    scope: Audience
    source_plugin: str
    started_at: Rfc3339
    ended_at: Rfc3339 | None
    last_at: Rfc3339
    """Time of the last entry or removal."""
    entry_count: Count
    run_id: str | None
    """Run that the session belongs to now."""


class SessionListItemModel(SessionSummaryModel, frozen=True):
    matches: list[SessionMatchModel] | UnsetType = UNSET


class SessionPageModel(ResponseModel, frozen=True):
    items: list[SessionListItemModel]
    next: str | None
    total: Total


class SessionModel(SessionSummaryModel, frozen=True):
    entries: list[SessionEntryModel]
    next: str | None


def session_url(session: Session) -> str:
    """URL of a session; an id that looks like another path is encoded."""
    id = quote(session.id, safe="")
    if id.endswith(".jsonl") or not id.strip("."):
        id = id.replace(".", "%2E")
    return f"/v1/agents/{session.agent}/sessions/{id}"


def new_entry_from_body(body: NewEntryBody) -> NewEntry:
    return NewEntry(
        body.role,
        body.content,
        body.message_id,
        body.source_plugin,
        body.sender_id,
        body.item,
        body.run_id,
    )


def new_entries_from_body(body: AppendEntriesBody) -> list[NewEntry]:
    """Raises ValidationError unless the body has either one entry or `items`."""
    if body.items is not None:
        if body != AppendEntriesBody(items=body.items, after=body.after):
            raise ValidationError("only after may stand beside items, since each has its own role")
        return [new_entry_from_body(item) for item in body.items]
    if body.role is None:
        raise ValidationError("an entry needs a role")
    fields = {name: getattr(body, name) for name in NewEntryBody.__struct_fields__}
    return [new_entry_from_body(NewEntryBody(**fields))]


def session_fields(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "agent_id": session.agent,
        "scope": session.mode,
        "source_plugin": session.plugin,
        "started_at": rfc3339(session.started_at),
        "ended_at": None if session.ended_at is None else rfc3339(session.ended_at),
        "last_at": rfc3339(session.last_entry_at),
        "entry_count": session.entry_count,
        "run_id": session.run,
    }


def session_to_model(session: Session) -> SessionSummaryModel:
    return SessionSummaryModel(**session_fields(session))


def session_to_list_item(
    session: Session, matches: list[SessionMatchModel] | UnsetType = UNSET
) -> SessionListItemModel:
    return SessionListItemModel(**session_fields(session), matches=matches)


def entry_to_model(transcript_entry: TranscriptEntry) -> SessionEntryModel:
    return SessionEntryModel(
        number=transcript_entry.sequence,
        timestamp=rfc3339(transcript_entry.at),
        role=transcript_entry.role,
        content=transcript_entry.content,
        message_id=transcript_entry.message,
        source_plugin=transcript_entry.plugin,
        sender_id=transcript_entry.sender,
        run_id=transcript_entry.run,
        item=UNSET if transcript_entry.item is None else Raw(transcript_entry.item.encode()),
    )


def match_to_model(match: EntryMatch) -> SessionMatchModel:
    return SessionMatchModel(
        number=match.entry.sequence,
        timestamp=rfc3339(match.entry.at),
        role=match.entry.role,
        preview=match.passage.text,
        offset=match.passage.offset,
        truncated=not match.is_whole,
    )
