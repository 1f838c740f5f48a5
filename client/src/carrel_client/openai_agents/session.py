"""A session of the OpenAI Agents SDK that is the transcript of a Carrel session."""

from __future__ import annotations

import json
from typing import Any, Final

from agents import SessionSettings, TResponseInputItem

from carrel_client.client import ApiClient
from carrel_client.drivers import Steps, await_steps, steps_of
from carrel_client.errors import NotFound
from carrel_client.openai_agents.items import (
    entry_from_item,
    is_item,
    items_of_entries,
)
from carrel_client.runtimes.agent_run import AgentRun
from carrel_client.runtimes.session_entries import append_entries, named_session, read_all
from carrel_client.sessions import Entry, NewEntry

_PAGE_SIZE: Final = 100


class CarrelSession:
    """The items of a conversation, as entries of an agent's session.

    ``session_id`` is any text; a session that does not exist starts with the first item. With a
    ``run`` the entries belong to it; its session is then the default. Secrets are redacted in what
    is stored. The client may await or block; one that blocks works in several event loops.
    """

    def __init__(
        self,
        client: ApiClient[Any],
        agent: str,
        session_id: str | None = None,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        run: AgentRun[Any] | None = None,
    ) -> None:
        if session_id is None and run is None:
            raise ValueError("a session needs an id or a run")
        self._driver, self._agent, self._run = client._driver, agent, run
        self.session_id: str = session_id or (run.session_id if run else "")
        self.session_settings: SessionSettings | None = SessionSettings().resolve(session_settings)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items in order: all, or the last ones by ``limit`` or the session's settings."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        steps = self._all() if limit is None else self._last(limit)
        return items_of_entries(await await_steps(self._driver, steps))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, up to 1,000 of them in one transaction."""
        run_id = self._run.id if self._run else None
        entries = [entry_from_item(item, run_id) for item in items]
        json.dumps([entry.item for entry in entries])  # TypeError before anything is sent.
        if entries:
            steps = append_entries(self._driver, self._agent, self.session_id, entries)
            await await_steps(self._driver, steps)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the last item and return it; None if there is none."""
        return await await_steps(self._driver, self._pop())

    async def clear_session(self) -> None:
        """Remove all entries of the session, those of others too."""
        await await_steps(self._driver, self._clear())

    def _all(self) -> Steps[list[Entry]]:
        return (yield from read_all(self._driver, self._agent, self.session_id))

    def _last(self, limit: int) -> Steps[list[Entry]]:
        """The last entries that are items; more are read if others are among them."""
        if limit <= 0:
            return []
        session, count = named_session(self._driver, self._agent, self.session_id), limit
        while True:
            try:
                entries = yield from steps_of(session.recent, count)
            except NotFound:
                return []
            items = [entry for entry in entries if is_item(entry)]
            if len(items) >= limit or len(entries) < count:
                return items[-limit:]
            count += max(_PAGE_SIZE, count)

    def _pop(self) -> Steps[TResponseInputItem | None]:
        """Remove entries up to the last item; those of others are appended again."""
        session = named_session(self._driver, self._agent, self.session_id)
        others: list[NewEntry] = []
        item: TResponseInputItem | None = None
        while item is None:
            try:
                entry: Entry | None = yield from steps_of(session.pop)
            except NotFound:
                entry = None
            if entry is None:
                break
            if is_item(entry):
                [item] = items_of_entries([entry])
            else:
                others.insert(0, _copy_of(entry))
        if others:
            yield from append_entries(self._driver, self._agent, self.session_id, others)
        return item

    def _clear(self) -> Steps[None]:
        try:
            session = named_session(self._driver, self._agent, self.session_id)
            yield from steps_of(session.clear)
        except NotFound:
            return


def _copy_of(entry: Entry) -> NewEntry:
    return NewEntry(
        role=entry.role,
        content=entry.content,
        item=entry.item,
        message_id=entry.message_id,
        source_plugin=entry.source_plugin or None,
        sender_id=entry.sender_id,
        run_id=entry.run_id,
    )
