"""Strands' memory store over the memories of an agent."""

from __future__ import annotations

from typing import Any, Final

from strands.memory import MemoryEntry, MemoryStore
from strands.memory.extraction.types import ExtractionConfig
from strands.memory.types import Metadata, SearchOptions

from carrel_client.client import ApiClient
from carrel_client.drivers import Steps, await_steps, steps_of
from carrel_client.memories import Memories, Memory, RecalledMemory
from carrel_client.runtimes.memory_texts import split_memory

DEFAULT_RESULTS: Final = 5
_MAX_RESULTS: Final = 50
_MAX_QUERY_CHARACTERS: Final = 500


class CarrelMemoryStore(MemoryStore):
    """A Strands ``MemoryStore`` over the memories of one agent.

    A search counts as a recall, which is what dreams promote memories by. A memory is one line of
    up to 2,000 characters; longer contents become several. Of the metadata, ``tags`` and ``kind``
    are stored.
    """

    def __init__(  # noqa: PLR0913 - the fields of a store, by name
        self,
        client: ApiClient[Any],
        agent: str,
        *,
        name: str = "carrel",
        description: str | None = "What the agent remembers of earlier conversations.",
        max_search_results: int | None = DEFAULT_RESULTS,
        writable: bool = True,
        extraction: ExtractionConfig | bool | None = None,
    ) -> None:
        self.name, self.description = name, description
        self.max_search_results, self.writable = max_search_results, writable
        self.extraction = extraction
        self._driver = client._driver
        self._memories: Memories[Any] = Memories(client._driver, agent)

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """The memories that match a query, best first."""
        limit = (options or {}).get("max_search_results") or self.max_search_results
        question = query[:_MAX_QUERY_CHARACTERS]
        if not question.strip():
            return []
        memories: tuple[RecalledMemory, ...] = await await_steps(
            self._driver,
            steps_of(
                self._memories.recall, question, limit=min(limit or DEFAULT_RESULTS, _MAX_RESULTS)
            ),
        )
        return [_to_entry(self.name, memory) for memory in memories]

    async def add(self, content: str, metadata: Metadata | None = None) -> list[str]:
        """Remember a content; return the ids of its memories. One that exists is not repeated."""
        return await await_steps(self._driver, self._add(content, metadata or {}))

    def _add(self, content: str, metadata: Metadata) -> Steps[list[str]]:
        ids = []
        for text in split_memory(content):
            options = {"tags": metadata.get("tags", ()), "kind": metadata.get("kind")}
            memory: Memory = yield from steps_of(self._memories.remember, text, **options)
            ids.append(memory.id)
        return ids


def _to_entry(store: str, memory: RecalledMemory) -> MemoryEntry:
    metadata = {
        "id": memory.id,
        "tags": list(memory.tags),
        "score": memory.score,
        "remembered_at": memory.remembered_at,
    }
    return MemoryEntry(content=memory.content, store_name=store, metadata=metadata)
