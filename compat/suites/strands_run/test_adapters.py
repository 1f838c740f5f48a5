"""Storage and memories of Strands on Carrel: what upstream's suites do not check."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from agent_fixture import TOKEN, URL, create_agent
from offline_model import OfflineModel
from strands import Agent
from strands.memory import MemoryManager
from strands.session import RepositorySessionManager
from strands.types.exceptions import SessionException, StorageError
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from carrel_client import AsyncClient, Client
from carrel_client.strands import CarrelMemoryStore, CarrelSessionRepository, CarrelStorage


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(URL, TOKEN) as client:
        yield client


async def test_any_key_and_any_bytes_come_back(client: Client) -> None:
    workspace = client.workspaces.create("keys").id
    keys = ["a.b/c%2F d", "ä/\u0061\u0308", ".hidden", "50%", "tab\there", "x" * 255, "a/./b"]
    async with AsyncClient(URL, TOKEN) as awaiting:
        storages = [
            CarrelStorage(client.workspace(workspace), prefix="blocking"),
            CarrelStorage(awaiting.workspace(workspace), prefix="awaiting"),
        ]
        for storage in storages:
            for number, key in enumerate(keys):
                await storage.write(key, bytes([0, 255, number]))
            assert await storage.list("") == sorted(keys)
            assert await storage.list("a.") == ["a.b/c%2F d"]
            for number, key in enumerate(keys):
                assert await storage.read(key) == bytes([0, 255, number])
            await storage.delete(".hidden")
            assert await storage.read(".hidden") is None
    assert client.workspace(workspace).read_bytes("blocking/a.b/c%252F d") == b"\0\xff\0"


async def test_every_write_is_a_version(client: Client) -> None:
    files = client.workspace(client.workspaces.create("versions").id)
    storage = CarrelStorage(files)
    await storage.write("state.json", b'{"a": 1}')
    await storage.write("state.json", b'{"a": 2}')
    assert files.read_bytes("strands/storage/state.json", version=1) == b'{"a": 1}'


async def test_keys_that_cannot_be_stored_raise(client: Client) -> None:
    storage = CarrelStorage(client.workspace(client.workspaces.create("long").id))
    with pytest.raises(StorageError):
        await storage.write("x" * 300, b"")
    await storage.write("a", b"")
    with pytest.raises(StorageError):
        await storage.write("a/b", b"")


async def test_large_contents_come_back(client: Client) -> None:
    storage = CarrelStorage(client.workspace(client.workspaces.create("large").id))
    content = bytes(range(256)) * 2**14
    await storage.write("large.bin", content)
    assert await storage.read("large.bin") == content


async def test_added_memories_are_found_and_counted(client: Client) -> None:
    agent = create_agent(client)
    store = CarrelMemoryStore(client, agent.slug)
    await store.initialize()
    [id] = await store.add("Luis drinks tea", {"tags": ["drinks"], "kind": "user"})
    assert await store.add("Luis drinks tea") == [id]
    await store.add("Ana drinks coffee")
    [entry] = await store.search("tea", {"max_search_results": 1})
    assert (entry.content, entry.store_name) == ("Luis drinks tea", "carrel")
    assert entry.metadata and entry.metadata["tags"] == ["drinks"]
    assert await store.search("  ") == []


async def test_long_memory_becomes_several(client: Client) -> None:
    agent = create_agent(client)
    store = CarrelMemoryStore(client, agent.slug)
    text = " ".join(map(str, range(1200)))
    ids = await store.add(text)
    assert len(ids) == 3
    contents = [memory.content for memory in client.agent(agent.slug).memories.list()]
    assert " ".join(contents) == text


def test_memory_manager_gives_memories_to_the_model(client: Client) -> None:
    agent = create_agent(client)
    client.agent(agent.slug).memories.remember("Luis drinks tea")
    store = CarrelMemoryStore(client, agent.slug)
    model = OfflineModel(("add_memory", {"entries": ["Luis is from Lima"]}), "Noted.")
    manager = MemoryManager(stores=[store], add_tool_config=True)
    strands = Agent(model=model, memory_manager=manager, callback_handler=None)
    strands("What does Luis drink? He is from Lima.")
    remembered = [memory.content for memory in client.agent(agent.slug).memories.list()]
    assert remembered == ["Luis drinks tea", "Luis is from Lima"]


def test_session_is_the_same_in_another_process(client: Client) -> None:
    agent = create_agent(client)
    first = CarrelSessionRepository(client, agent.slug)
    first.create_session(Session("chat", SessionType.AGENT))
    first.create_agent("chat", SessionAgent("ada", {"mood": "good"}, {}))
    image = {"image": {"format": "png", "source": {"bytes": b"\0\xff"}}}
    message = SessionMessage({"role": "user", "content": [{"text": "Hello?"}, image]}, 0)
    first.create_message("chat", "ada", message)
    second = CarrelSessionRepository(client, agent.slug)
    assert second.list_messages("chat", "ada") == [message]
    redacted = SessionMessage(
        message.message, 0, redact_message={"role": "user", "content": [{"text": "-"}]}
    )
    second.update_message("chat", "ada", redacted)
    restored = first.read_message("chat", "ada", 0)
    assert restored is not None
    assert restored.to_message() == redacted.redact_message
    assert restored.created_at == message.created_at
    matches = client.agent(agent.slug).sessions.search("Hello")
    assert [session.id for session in matches] == ["chat"]


def test_removed_entries_are_not_restored(client: Client) -> None:
    agent = create_agent(client)
    repository = CarrelSessionRepository(client, agent.slug)
    manager = RepositorySessionManager("chat", repository)
    Agent(agent_id="ada", model=OfflineModel("Hi."), session_manager=manager)("Hello?")
    assert len(repository.list_messages("chat", "ada")) == 2
    client.agent(agent.slug).sessions.get("chat").clear()
    assert repository.read_session("chat") is None
    with pytest.raises(SessionException):
        repository.create_agent("chat", SessionAgent("ada", {}, {}))


def test_deleted_session_is_erased(client: Client) -> None:
    agent = create_agent(client)
    repository = CarrelSessionRepository(client, agent.slug)
    repository.create_session(Session("chat", SessionType.AGENT))
    repository.delete_session("chat")
    repository.delete_session("chat")
    assert repository.read_session("chat") is None
    repository.create_session(Session("chat", SessionType.AGENT))
