"""What ADK documents of a memory service."""

from __future__ import annotations

from google.adk.events import Event
from google.adk.memory import BaseMemoryService
from google.adk.sessions import Session
from google.genai import types

OWNER = {"app_name": "app", "user_id": "luis"}


def event(text: str, author: str = "user") -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return Event(author=author, content=content, id=Event.new_id())


def session(*events: Event, user: str = "luis", id: str = "chat") -> Session:
    return Session(app_name="app", user_id=user, id=id, events=list(events))


async def search(memories: BaseMemoryService, query: str, **owner: str) -> list[str]:
    response = await memories.search_memory(query=query, **{**OWNER, **owner})
    return [
        str(memory.content.parts[0].text) for memory in response.memories if memory.content.parts
    ]


async def test_nothing_is_found_without_memories(memories: BaseMemoryService) -> None:
    assert await search(memories, "tea") == []
    assert await search(memories, "") == []


async def test_events_of_a_session_are_found(memories: BaseMemoryService) -> None:
    empty = Event(author="ada", content=types.Content(role="model", parts=[]))
    await memories.add_session_to_memory(
        session(event("I drink green tea."), event("Noted, tea it is.", "ada"), empty)
    )
    assert set(await search(memories, "tea")) == {"I drink green tea.", "Noted, tea it is."}
    assert await search(memories, "green") == ["I drink green tea."]
    assert await search(memories, "coffee") == []


async def test_found_memory_has_author_and_time(memories: BaseMemoryService) -> None:
    await memories.add_session_to_memory(session(event("Tea it is.", "ada")))
    [memory] = (await memories.search_memory(query="tea", **OWNER)).memories
    assert memory.author == "ada"
    assert memory.timestamp and "T" in memory.timestamp
    assert memory.id


async def test_session_that_is_added_again_is_not_repeated(memories: BaseMemoryService) -> None:
    first, second = event("I drink tea."), event("Green tea, please.")
    await memories.add_session_to_memory(session(first))
    await memories.add_session_to_memory(session(first, second))
    assert sorted(await search(memories, "tea")) == ["Green tea, please.", "I drink tea."]


async def test_events_are_added_to_what_is_there(memories: BaseMemoryService) -> None:
    await memories.add_session_to_memory(session(event("I drink tea.")))
    await memories.add_events_to_memory(
        events=[event("Green tea, please.")], session_id="chat", **OWNER
    )
    assert sorted(await search(memories, "tea")) == ["Green tea, please.", "I drink tea."]


async def test_users_and_apps_are_separate(memories: BaseMemoryService) -> None:
    await memories.add_session_to_memory(session(event("I drink tea.")))
    assert await search(memories, "tea", user_id="ana") == []
    assert await search(memories, "tea", app_name="other") == []
    await memories.add_session_to_memory(session(event("I drink tea."), user="ana"))
    assert await search(memories, "tea", user_id="ana") == ["I drink tea."]
    await memories.add_events_to_memory(
        app_name="other", user_id="luis", events=[event("I drink tea.")]
    )
    assert await search(memories, "tea", app_name="other") == ["I drink tea."]
    assert await search(memories, "tea") == ["I drink tea."]


async def test_deleted_memory_is_not_found(memories: BaseMemoryService) -> None:
    await memories.add_session_to_memory(session(event("I drink tea.")))
    [memory] = (await memories.search_memory(query="tea", **OWNER)).memories
    await memories.delete_memory(app_name="app", user_id="ana", memory_id=memory.id)
    assert await search(memories, "tea") == ["I drink tea."]
    await memories.delete_memory(memory_id=memory.id, **OWNER)
    await memories.delete_memory(memory_id=memory.id, **OWNER)
    await memories.delete_memory(memory_id=None, **OWNER)
    assert await search(memories, "tea") == []


async def test_search_returns_at_most_ten(memories: BaseMemoryService) -> None:
    events = [event(f"Tea number {number}.") for number in range(12)]
    await memories.add_session_to_memory(session(*events))
    assert len(await search(memories, "tea")) == 10
