"""Agent Framework's history provider over the sessions of an agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agent_framework import HistoryProvider, Message
from agent_framework._sessions import filter_new_messages

from carrel_client.agent_framework.messages import (
    last_messages,
    message_entry,
    messages_from_entries,
)
from carrel_client.client import ApiClient
from carrel_client.drivers import Steps, await_steps
from carrel_client.runtimes.session_log import SessionLogs
from carrel_client.sessions import Entry, NewEntry

DEFAULT_SESSION: Final = "default"
"""Session of messages without one."""


class CarrelHistoryProvider(HistoryProvider):
    """An Agent Framework ``HistoryProvider`` in the sessions of an agent.

    A session has the same id in Carrel, where people read and search its transcript. The messages
    of a turn are appended together. Entries that were written otherwise are not loaded.
    """

    def __init__(  # noqa: PLR0913 - options of the framework, by name
        self,
        client: ApiClient[Any],
        agent: str,
        source_id: str = "carrel_history",
        *,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
    ) -> None:
        super().__init__(
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self._driver = client._driver
        self._logs = SessionLogs(client._driver, agent)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        return await await_steps(self._driver, self._load(session_id))

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Append messages; those that repeat the end of the history are left out."""
        if messages:
            await await_steps(self._driver, self._save(session_id, messages))

    def _load(self, session_id: str | None) -> Steps[list[Message]]:
        entries = yield from self._logs.log(session_id or DEFAULT_SESSION).read()
        return messages_from_entries(entries or ())

    def _save(self, session_id: str | None, messages: Sequence[Message]) -> Steps[None]:
        def choose(entries: Sequence[Entry]) -> list[NewEntry]:
            # Only as many of the last messages can be repeated; one more tells that others precede.
            stored = last_messages(entries, len(messages) + 1)
            return [message_entry(message) for message in filter_new_messages(stored, messages)]

        yield from self._logs.log(session_id or DEFAULT_SESSION).append_chosen(choose)
