"""ADK's memory service over the memories of an agent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from google.adk.events import Event
from google.adk.memory import BaseMemoryService
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions import Session
from google.genai import types

from carrel_client.client import ApiClient
from carrel_client.drivers import Result, Steps, await_steps, steps_of
from carrel_client.errors import NotFound
from carrel_client.google_adk.content_texts import content_text
from carrel_client.memories import Memories, Memory
from carrel_client.runtimes.memory_texts import MAX_CHARACTERS, split_memory

_AUTHOR: Final = "author:"
_RESULTS: Final = 10
_CANDIDATES: Final = 100
"""Memories that one search reads; those of other users are left out."""
_MAX_TAG: Final = 64
_MAX_NAME: Final = 100


class CarrelMemories(BaseMemoryService):
    """An ADK ``BaseMemoryService`` over the memories of one agent.

    Each text of an event is a memory, a line that begins with the id of its user; a text that is
    there is not repeated. A user finds only memories that were added for the user and the app.
    """

    def __init__(self, client: ApiClient[Any], agent: str) -> None:
        self._driver = client._driver
        self._memories: Memories[Any] = Memories(client._driver, agent)

    async def add_session_to_memory(self, session: Session) -> None:
        texts = _event_texts(session.events)
        await self._run(self._add(_Owner(session.app_name, session.user_id), texts, ()))

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add the texts of events. Of the metadata, ``tags`` are stored."""
        tags = _tags_of(custom_metadata)
        await self._run(self._add(_Owner(app_name, user_id), _event_texts(events), tags))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add memories. Of the metadata, ``tags`` are stored."""
        owner = _Owner(app_name, user_id)
        for memory in memories:
            texts = [(memory.author or "", content_text(memory.content))]
            tags = _tags_of({**memory.custom_metadata, **(custom_metadata or {})})
            await self._run(self._add(owner, texts, tags))

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        owner = _Owner(app_name, user_id)
        if not query.strip():
            return SearchMemoryResponse()
        matches: Sequence[Memory] = await self._run(
            steps_of(self._memories.search, query[:500], limit=_CANDIDATES)
        )
        own = [memory for memory in matches if owner.tag in memory.tags]
        return SearchMemoryResponse(memories=[owner.entry(memory) for memory in own[:_RESULTS]])

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Forget a memory of the user; nothing happens if there is none."""
        if memory_id:
            await self._run(self._delete(_Owner(app_name, user_id), memory_id))

    def _add(
        self, owner: _Owner, texts: Iterable[tuple[str, str]], tags: Sequence[str]
    ) -> Steps[None]:
        for author, text in texts:
            own = [owner.tag, *([(_AUTHOR + author)[:_MAX_TAG]] if author else []), *tags]
            for line in split_memory(text, MAX_CHARACTERS - len(owner.prefix)):
                yield from self._remember(owner.prefix + line, own)

    def _remember(self, content: str, tags: Sequence[str]) -> Steps[None]:
        memory: Memory = yield from steps_of(self._memories.remember, content, tags=tags)
        if tags[0] not in memory.tags:
            # Another app has added the text for this user.
            yield from steps_of(self._memories.forget, memory.id)
            all_tags = dict.fromkeys((*memory.tags, *tags))
            yield from steps_of(self._memories.remember, content, tags=tuple(all_tags))

    def _delete(self, owner: _Owner, id: str) -> Steps[None]:
        try:
            memory: Memory = yield from steps_of(self._memories.get, id)
            if owner.tag in memory.tags:
                yield from steps_of(self._memories.forget, id)
        except NotFound:
            pass

    async def _run(self, steps: Steps[Result]) -> Result:
        return await await_steps(self._driver, steps)


class _Owner:
    """The app and user that a memory belongs to."""

    def __init__(self, app: str, user: str) -> None:
        digest = hashlib.sha256(f"{app}\0{user}".encode()).hexdigest()
        self.tag = f"adk:{digest[:32]}"
        self.prefix = f"{' '.join(user.split())[:_MAX_NAME]}: "

    def entry(self, memory: Memory) -> MemoryEntry:
        authors = [tag.removeprefix(_AUTHOR) for tag in memory.tags if tag.startswith(_AUTHOR)]
        author = authors[0] if authors else None
        text = memory.content.removeprefix(self.prefix)
        return MemoryEntry(
            id=memory.id,
            content=types.Content(
                role="user" if author in (None, "user") else "model", parts=[types.Part(text=text)]
            ),
            author=author,
            timestamp=memory.created_at.isoformat(),
            custom_metadata={
                "tags": [tag for tag in memory.tags if not tag.startswith((_AUTHOR, "adk:"))]
            },
        )


def _event_texts(events: Iterable[Event]) -> list[tuple[str, str]]:
    """Author and text of each event that has one; results of tools are left out."""
    return [
        (event.author, text)
        for event in events
        if event.content
        and (text := "\n".join(part.text for part in event.content.parts or () if part.text))
    ]


def _tags_of(metadata: Mapping[str, object] | None) -> tuple[str, ...]:
    tags = (metadata or {}).get("tags", ())
    return tuple(map(str, tags)) if isinstance(tags, (list, tuple)) else ()
