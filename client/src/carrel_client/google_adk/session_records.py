"""ADK's sessions, events and states as entries of sessions, and back."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.adk.events import Event
from google.adk.sessions import Session, State
from pydantic_core import to_jsonable_python

from carrel_client.google_adk.content_texts import content_role, content_text
from carrel_client.runtimes.session_log import items_of_kind
from carrel_client.sessions import Entry, NewEntry

KIND: Final = "google_adk"
"""Marks the items of this adapter."""
Values = dict[str, Any]


class SessionRecords:
    """The records of one session: its start and its events."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        items = items_of_kind(entries, KIND)
        starts = [item for item in items if item["type"] == "session"]
        self._start: Mapping[str, Any] | None = starts[0] if starts else None
        self._events = [item for item in items if item["type"] == "event"]

    @property
    def exists(self) -> bool:
        return self._start is not None

    def has_event(self, event: NewEntry) -> bool:
        """Whether an equal event is there, which was sent before."""
        return any(item["event"] == event.item["event"] for item in self._events)

    def session(self, app: str, user: str, id: str, *, with_events: bool = True) -> Session:
        """The session with its own state, without that of its app and user."""
        start = self._start or {}
        state: Values = dict(start.get("state", {}))
        for item in self._events:
            state |= split_state(item["stateDelta"]).session
        events = list(map(_event_from_item, self._events if with_events else self._events[-1:]))
        updated = events[-1].timestamp if events else start.get("createTime", 0.0)
        return Session(
            id=id,
            app_name=app,
            user_id=user,
            state=copy.deepcopy(state),
            events=events if with_events else [],
            last_update_time=updated,
        )


class SplitState:
    """Values by the scope that their prefixes name; temporary ones are omitted."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.app = _with_prefix(values, State.APP_PREFIX)
        self.user = _with_prefix(values, State.USER_PREFIX)
        prefixes = (State.APP_PREFIX, State.USER_PREFIX, State.TEMP_PREFIX)
        self.session = {key: value for key, value in values.items() if not key.startswith(prefixes)}


def split_state(values: Mapping[str, Any] | None) -> SplitState:
    return SplitState(values or {})


def merged_state(entries: Sequence[Entry]) -> Values:
    """The values of an app or a user, each as it was written last."""
    state: Values = {}
    for item in items_of_kind(entries, KIND):
        if item["type"] == "state":
            state |= item["values"]
    return copy.deepcopy(state)


def session_entry(state: Values, created_at: float) -> NewEntry:
    item = {"kind": KIND, "type": "session", "state": state, "createTime": created_at}
    return NewEntry(role="system", content="Session started", item=item)


def state_entry(values: Values) -> NewEntry:
    item = {"kind": KIND, "type": "state", "values": values}
    return NewEntry(role="system", content=f"State: {', '.join(values)}", item=item)


def event_entry(event: Event) -> NewEntry:
    role = content_role(event.content, event.author)
    text = content_text(event.content) or None
    return NewEntry(role=role, content=text, item=event_item(event), message_id=event.id or None)


def event_item(event: Event) -> Values:
    """An event as JSON; its state is apart, since a value of it may be null."""
    fields = event.model_dump(mode="json", exclude_none=True, exclude={"actions": {"state_delta"}})
    delta = json_values(event.actions.state_delta if event.actions else {})
    return {"kind": KIND, "type": "event", "event": fields, "stateDelta": delta}


def json_values(values: Mapping[str, Any] | None) -> Values:
    """Values as JSON; what has no JSON form is its text."""
    encoded: Values = to_jsonable_python(dict(values or {}), fallback=str)
    return encoded


def _event_from_item(item: Mapping[str, Any]) -> Event:
    event = Event.model_validate(copy.deepcopy(item["event"]))
    if item["stateDelta"]:
        event.actions.state_delta = copy.deepcopy(item["stateDelta"])
    return event


def _with_prefix(values: Mapping[str, Any], prefix: str) -> Values:
    return {
        key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)
    }
