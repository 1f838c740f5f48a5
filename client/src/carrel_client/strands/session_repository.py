"""Strands' session repository over the sessions of an agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage

from carrel_client.client import ApiClient
from carrel_client.drivers import Steps, run_steps
from carrel_client.errors import CarrelError
from carrel_client.runtimes.session_log import SessionLog, SessionLogs
from carrel_client.sessions import Entry, NewEntry
from carrel_client.strands.session_records import (
    SessionRecords,
    agent_entry,
    message_entry,
    multi_agent_entry,
    session_entry,
)

if TYPE_CHECKING:
    from strands.multiagent import MultiAgentBase


class CarrelSessionRepository(SessionRepository):
    """A Strands ``SessionRepository`` in the sessions of an agent, for a ``Client``.

    Messages are entries of the session's transcript, where people read and search them. A changed
    message or state is a new entry, which replaces the earlier one for Strands. Entries that were
    written without Strands are left alone.
    """

    def __init__(self, client: ApiClient[Any], agent: str) -> None:
        self._driver = client._driver
        self._logs = SessionLogs(client._driver, agent)

    def create_session(self, session: Session, **kwargs: Any) -> Session:
        def choose(entries: Sequence[Entry]) -> list[NewEntry]:
            if SessionRecords(entries).session is not None:
                raise SessionException(f"session {session.session_id} already exists")
            return [session_entry(session)]

        self._run(self._logs.log(session.session_id).append_chosen(choose))
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        return self._read(self._logs.log(session_id)).session

    def delete_session(self, session_id: str, **kwargs: Any) -> None:
        """Erase a session with all its entries; the token must be an admin's."""
        self._run(self._logs.log(session_id).delete())

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        def choose(records: SessionRecords) -> NewEntry:
            if session_agent.agent_id in records.agents:
                id = session_agent.agent_id
                raise SessionException(f"agent {id} already exists in {session_id}")
            return agent_entry(session_agent)

        self._append(session_id, choose)

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        return self._read(self._logs.log(session_id)).agent(agent_id)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        def choose(records: SessionRecords) -> NewEntry:
            previous = records.agent(session_agent.agent_id)
            if previous is None:
                raise SessionException(f"agent {session_agent.agent_id} is not in {session_id}")
            return agent_entry(session_agent, created_at=previous.created_at)

        self._append(session_id, choose)

    def create_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any
    ) -> None:
        id = session_message.message_id

        def choose(records: SessionRecords) -> NewEntry:
            if agent_id not in records.agents:
                raise SessionException(f"agent {agent_id} is not in {session_id}")
            if records.has_message(agent_id, id):
                raise SessionException(f"message {id} of agent {agent_id} exists in {session_id}")
            return message_entry(agent_id, session_message)

        self._append(session_id, choose)

    def read_message(
        self, session_id: str, agent_id: str, message_id: int, **kwargs: Any
    ) -> SessionMessage | None:
        return self._read(self._logs.log(session_id)).message(agent_id, message_id)

    def update_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any
    ) -> None:
        def choose(records: SessionRecords) -> NewEntry:
            previous = records.message(agent_id, session_message.message_id)
            if previous is None:
                id = session_message.message_id
                raise SessionException(f"message {id} of agent {agent_id} is not in {session_id}")
            return message_entry(
                agent_id, session_message, created_at=previous.created_at, is_update=True
            )

        self._append(session_id, choose)

    def list_messages(
        self,
        session_id: str,
        agent_id: str,
        limit: int | None = None,
        offset: int = 0,
        **kwargs: Any,
    ) -> list[SessionMessage]:
        messages = self._read(self._logs.log(session_id)).messages(agent_id)
        return messages[offset:] if limit is None else messages[offset : offset + limit]

    def create_multi_agent(
        self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any
    ) -> None:
        state = multi_agent.serialize_state()
        self._append(session_id, lambda _: multi_agent_entry(multi_agent.id, state))

    def read_multi_agent(
        self, session_id: str, multi_agent_id: str, **kwargs: Any
    ) -> dict[str, Any] | None:
        return self._read(self._logs.log(session_id)).multi_agent(multi_agent_id)

    def update_multi_agent(
        self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any
    ) -> None:
        state = multi_agent.serialize_state()

        def choose(records: SessionRecords) -> NewEntry:
            if records.multi_agent(multi_agent.id) is None:
                raise SessionException(f"multi-agent {multi_agent.id} is not in {session_id}")
            return multi_agent_entry(multi_agent.id, state)

        self._append(session_id, choose)

    def _read(self, log: SessionLog) -> SessionRecords:
        return SessionRecords(self._run(log.read()) or ())

    def _append(self, session_id: str, choose: Callable[[SessionRecords], NewEntry]) -> None:
        """Append the entry that is chosen for the records of an existing session."""

        def choose_entries(entries: Sequence[Entry]) -> list[NewEntry]:
            records = SessionRecords(entries)
            if not records.has_session:
                raise SessionException(f"session {session_id} does not exist")
            return [choose(records)]

        self._run(self._logs.log(session_id).append_chosen(choose_entries))

    def _run(self, steps: Steps[Any]) -> Any:
        try:
            return run_steps(self._driver, steps)
        except CarrelError as error:
            raise SessionException(str(error)) from error
