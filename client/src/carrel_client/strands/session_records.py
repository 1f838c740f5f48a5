"""Strands' sessions, agents and messages as entries of a session, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from strands.types.session import (
    Session,
    SessionAgent,
    SessionMessage,
    SessionType,
    decode_bytes_values,
    encode_bytes_values,
)

from carrel_client.runtimes.session_log import items_of_kind
from carrel_client.sessions import Entry, NewEntry
from carrel_client.strands.message_texts import message_role, message_text

KIND: Final = "strands"
"""Marks the items of this adapter."""


class SessionRecords:
    """The records of a session, each as it was written last."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._session: Mapping[str, Any] | None = None
        self.agents: dict[str, Mapping[str, Any]] = {}
        self._messages: dict[str, dict[int, Mapping[str, Any]]] = {}
        self._multi_agents: dict[str, Any] = {}
        for item in items_of_kind(entries, KIND):
            self._apply(item)

    def _apply(self, item: Mapping[str, Any]) -> None:
        record = item["record"]
        match item["type"]:
            case "session":
                self._session = record
            case "agent":
                self.agents[record["agent_id"]] = record
            case "message":
                messages = self._messages.setdefault(item["agentId"], {})
                messages[record["message_id"]] = record
            case "multiAgent":
                self._multi_agents[item["id"]] = record
            case _:
                pass  # Of a newer version.

    @property
    def session(self) -> Session | None:
        if self._session is None:
            return None
        session = Session.from_dict(dict(self._session))
        session.session_type = SessionType(session.session_type)
        return session

    @property
    def has_session(self) -> bool:
        return self._session is not None

    def agent(self, id: str) -> SessionAgent | None:
        return SessionAgent.from_dict(dict(self.agents[id])) if id in self.agents else None

    def message(self, agent: str, id: int) -> SessionMessage | None:
        record = self._messages.get(agent, {}).get(id)
        return None if record is None else SessionMessage.from_dict(dict(record))

    def has_message(self, agent: str, id: int) -> bool:
        return id in self._messages.get(agent, {})

    def messages(self, agent: str) -> list[SessionMessage]:
        """All messages of an agent, in order."""
        records = self._messages.get(agent, {})
        return [SessionMessage.from_dict(dict(records[id])) for id in sorted(records)]

    def multi_agent(self, id: str) -> dict[str, Any] | None:
        record = self._multi_agents.get(id)
        return None if record is None else dict(decode_bytes_values(record))


def session_entry(session: Session) -> NewEntry:
    record = {**session.to_dict(), "session_type": SessionType(session.session_type).value}
    return _entry("system", "Session started", {"type": "session", "record": record})


def agent_entry(agent: SessionAgent, *, created_at: str | None = None) -> NewEntry:
    """The state of an agent; an update keeps the time of its creation."""
    record = agent.to_dict() | ({"created_at": created_at} if created_at else {})
    return _entry("system", f"State of {agent.agent_id}", {"type": "agent", "record": record})


def message_entry(
    agent: str, message: SessionMessage, *, created_at: str | None = None, is_update: bool = False
) -> NewEntry:
    """A message; an update keeps the time of its creation and is the system's."""
    record = message.to_dict() | ({"created_at": created_at} if created_at else {})
    item = {"type": "message", "agentId": agent, "record": record}
    content = message.to_message()
    role = "system" if is_update else message_role(content)
    text = message_text(content)
    return _entry(role, f"Message {message.message_id}: {text}" if is_update else text, item)


def multi_agent_entry(id: str, state: Mapping[str, Any]) -> NewEntry:
    item = {"type": "multiAgent", "id": id, "record": encode_bytes_values(dict(state))}
    return _entry("system", f"State of {id}", item)


def _entry(role: str, content: str, item: Mapping[str, Any]) -> NewEntry:
    return NewEntry(role=role, content=content or None, item={"kind": KIND, **item})
