"""The contract of memory stores, held by the harness's own store and by Carrel's."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from agent_fixture import TOKEN, URL, create_agent
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness.memory import (
    InMemoryStore,
    Memory,
    MemoryConflictError,
    MemoryOperation,
    MemoryOperationConflictError,
    MemoryStore,
    MetadataMemoryStore,
    SearchableMemoryStore,
)

from carrel_client import AsyncClient, Client
from carrel_client.pydantic_ai_harness import CarrelMemoryStore

pytestmark = pytest.mark.anyio
LIMITS = {"limit": 10, "max_files": 10, "max_chars": 1000, "max_file_chars": 1000}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def carrel() -> AsyncIterator[CarrelMemoryStore]:
    async with AsyncClient(URL, TOKEN) as client:
        workspace = await client.workspaces.create("memories")
        yield CarrelMemoryStore(client.workspace(workspace.id))


@pytest.fixture(params=["harness", "carrel"])
def store(request: pytest.FixtureRequest, carrel: CarrelMemoryStore) -> Any:
    return InMemoryStore() if request.param == "harness" else carrel


def operation(fingerprint: str = "a") -> MemoryOperation:
    return MemoryOperation(id=f"op/{secrets.token_hex(8)}", fingerprint=fingerprint)


async def create(store: Any, path: str, content: str = "one", **options: Any) -> str:
    written = await store.write(path, content, expected_version=None, **options)
    assert (written.replayed, written.existed) == (False, False)
    return str(written.version)


async def expect_conflict(call: Awaitable[object]) -> None:
    with pytest.raises(MemoryConflictError):
        await call


async def test_store_has_all_optional_protocols(carrel: CarrelMemoryStore) -> None:
    for protocol in (MemoryStore, MetadataMemoryStore, SearchableMemoryStore):
        assert isinstance(carrel, protocol)


async def test_absent_memory_is_none(store: Any) -> None:
    assert await store.read("a.md", max_chars=10) is None


async def test_written_memory_is_read_with_its_version(store: Any) -> None:
    version = await create(store, "user/a.md", "one two")
    file = await store.read("user/a.md", max_chars=3)
    assert (file.content, file.truncated, file.version) == ("one", True, version)
    assert (file.operation_id, file.metadata) == (None, None)
    complete = await store.read("user/a.md", max_chars=7)
    assert (complete.content, complete.truncated) == ("one two", False)


async def test_only_the_version_that_was_read_is_replaced(store: Any) -> None:
    first = await create(store, "a.md")
    second = (await store.write("a.md", "two", expected_version=first)).version
    assert second != first
    await expect_conflict(store.write("a.md", "three", expected_version=first))
    await expect_conflict(store.write("a.md", "three", expected_version=None))
    await expect_conflict(store.write("b.md", "three", expected_version=first))
    await expect_conflict(store.delete("a.md", expected_version=first))
    await expect_conflict(store.delete("a.md", expected_version=None))
    assert (await store.read("a.md", max_chars=9)).content == "two"


async def test_deleted_memory_can_be_created_again(store: Any) -> None:
    version = await create(store, "a.md", operation=operation())
    deleted = await store.delete("a.md", expected_version=version)
    assert (deleted.version, deleted.existed, deleted.replayed) == (None, True, False)
    assert await store.read("a.md", max_chars=9) is None
    assert await create(store, "a.md") != version
    await expect_conflict(store.delete("b.md", expected_version=version))


async def test_deleting_what_is_absent_changes_nothing(store: Any) -> None:
    first = operation()
    deleted = await store.delete("a.md", expected_version=None, operation=first)
    assert (deleted.existed, deleted.replayed) == (False, False)
    again = await store.delete("a.md", expected_version=None, operation=first)
    assert (again.existed, again.replayed) == (False, True)
    assert not (await store.delete("a.md", expected_version=None)).existed


async def test_repeated_operation_is_applied_once(store: Any) -> None:
    first = operation()
    assert await store.get_operation(first) is None
    version = await create(store, "a.md", operation=first)
    again = await store.write("a.md", "one", expected_version=None, operation=first)
    assert (again.replayed, again.version, again.existed) == (True, version, False)
    assert await store.get_operation(first) == again
    assert (await store.read("a.md", max_chars=9)).operation_id == first.id


async def test_repeated_operation_returns_its_own_version_after_later_writes(store: Any) -> None:
    first = operation()
    version = await create(store, "a.md", operation=first)
    await asyncio.sleep(0.01)
    later = await store.write("a.md", "two", expected_version=version)
    assert (await store.get_operation(first)).version == version
    await store.delete("a.md", expected_version=later.version)
    assert (await store.get_operation(first)).version == version
    assert await store.read("a.md", max_chars=9) is None


async def test_repeated_deletion_is_applied_once(store: Any) -> None:
    first = operation()
    version = await create(store, "a.md")
    await store.delete("a.md", expected_version=version, operation=first)
    again = await store.delete("a.md", expected_version=version, operation=first)
    assert (again.version, again.replayed, again.existed) == (None, True, True)


async def test_operation_id_with_other_arguments_is_refused(store: Any) -> None:
    first = operation()
    await create(store, "a.md", operation=first)
    other = MemoryOperation(id=first.id, fingerprint="b")
    with pytest.raises(MemoryOperationConflictError):
        await store.write("b.md", "one", expected_version=None, operation=other)
    with pytest.raises(MemoryOperationConflictError):
        await store.get_operation(other)
    assert await store.read("b.md", max_chars=9) is None


async def test_operation_and_metadata_are_those_of_the_last_write(store: Any) -> None:
    first = operation()
    written = await store.write_with_metadata(
        "a.md", "one", expected_version=None, metadata={"by": "ada"}, operation=first
    )
    file = await store.read("a.md", max_chars=9)
    assert (file.operation_id, file.metadata) == (first.id, {"by": "ada"})
    await asyncio.sleep(0.01)
    await store.write("a.md", "two", expected_version=written.version)
    file = await store.read("a.md", max_chars=9)
    assert (file.operation_id, file.metadata) == (None, None)


async def test_writing_the_same_text_keeps_its_operation(store: Any) -> None:
    version, second = await create(store, "a.md"), operation()
    await asyncio.sleep(0.01)
    await store.write("a.md", "one", expected_version=version, operation=second)
    assert (await store.read("a.md", max_chars=9)).operation_id == second.id


async def test_paths_are_listed_in_order_without_records(store: Any) -> None:
    for path in ("b/x.md", "a/y.md", "a/x.md", "ab.md"):
        await create(store, path, operation=operation())
    assert await store.list_paths(limit=9) == ["a/x.md", "a/y.md", "ab.md", "b/x.md"]
    assert await store.list_paths("a/", limit=9) == ["a/x.md", "a/y.md"]
    assert await store.list_paths(limit=2) == ["a/x.md", "a/y.md"]


async def test_search_ranks_within_one_scope(store: Any) -> None:
    await create(store, "u/tea.md", "Luis likes it hot. Tea at five.", operation=operation())
    await create(store, "u/food.md", "Tea and cake.")
    await create(store, "u/other.md", "Nothing.")
    await create(store, "u/nested/tea.md", "Tea.")
    result = await store.search("u/", "tea", **LIMITS)
    scores = [(match.path, match.score) for match in result.matches]
    assert scores == [("u/tea.md", 3.0), ("u/food.md", 1.0)]
    assert "Tea at five" in result.matches[0].snippet
    assert (result.scanned, result.truncated) == (3, False)
    for bound in ({"limit": 1}, {"max_files": 1}, {"max_file_chars": 5}, {"max_chars": 10}):
        assert (await store.search("u/", "tea", **{**LIMITS, **bound})).truncated, bound
    assert (await store.search("u/", " ", **LIMITS)).matches == []


@pytest.mark.parametrize("path", ["", "/a", "a//b", "a/../b", "a/./b", "a~b", "ü.md", "a" * 201])
async def test_invalid_paths_are_refused(store: Any, path: str) -> None:
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: store.read(path, max_chars=1),
        lambda: store.write(path, "x", expected_version=None),
        lambda: store.delete(path, expected_version=None),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="path"):
            await call()


async def test_metadata_is_text_of_limited_length(store: Any) -> None:
    wrong: list[tuple[Any, type[Exception]]] = [
        ({"a": 1}, TypeError),
        ({"a": "\0"}, ValueError),
        ({"a": "x" * 5000}, ValueError),
    ]
    for metadata, error in wrong:
        with pytest.raises(error):
            await store.write_with_metadata("a.md", "x", expected_version=None, metadata=metadata)


async def test_one_of_many_writers_wins(store: Any) -> None:
    version = await create(store, "a.md")
    writes = [store.write("a.md", f"w{n}", expected_version=version) for n in range(8)]
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert sum(isinstance(result, MemoryConflictError) for result in results) == 7


async def test_one_operation_of_many_writers_is_applied_once(store: Any) -> None:
    same = operation()
    writes = [store.write("a.md", "one", expected_version=None, operation=same) for _ in range(6)]
    results = await asyncio.gather(*writes)
    assert sum(not result.replayed for result in results) == 1
    assert len({result.version for result in results}) == 1


async def test_edit_of_a_person_is_a_new_version_without_operation(
    carrel: CarrelMemoryStore,
) -> None:
    version = await create(carrel, "a.md", operation=operation())
    with Client(URL, TOKEN) as person:
        files = person.workspace(carrel._files._location[1])
        files.put("memories/a.md", "edited")
    file = await carrel.read("a.md", max_chars=9)
    assert file is not None
    assert (file.content, file.operation_id) == ("edited", None)
    await expect_conflict(carrel.write("a.md", "two", expected_version=version))


async def test_agent_keeps_memories_of_the_harness_in_its_own_files() -> None:
    replies = iter(
        [
            ToolCallPart("write_memory", {"content": "Luis drinks tea.", "file": "tea.md"}),
            TextPart("Noted."),
        ]
    )

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        tools.update({tool.name: tool for tool in info.function_tools})
        return ModelResponse([next(replies)])

    tools: dict[str, Any] = {}
    with Client(URL, TOKEN) as client:
        agent = create_agent(client)
        store = CarrelMemoryStore(client.agent(agent.slug), prefix="memory/harness")
        memory: Memory[Any] = Memory(store=store)
        result = await Agent(FunctionModel(reply), capabilities=[memory]).run("I drink tea.")
        assert result.output == "Noted.", sorted(tools)
        files = client.agent(agent.slug).list("memory/harness/")
        [note] = [file.path for file in files if file.path.endswith("tea.md")]
        assert client.agent(agent.slug).get(note).content.strip() == "Luis drinks tea."
