"""Files that an agent writes itself, on every store."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.memory_agents import MemoryAgent, create_memory_agent
from tests.support.tenants import add_person

from carrel.actions.agents import agents
from carrel.actions.files import files
from carrel.actions.memory import own_files
from carrel.actions.memory.own_files import OwnFiles
from carrel.actions.search import knowledge_search
from carrel.core.errors import Forbidden, NotFound, WorkspaceConflict
from carrel.core.identifiers import Path
from carrel.core.memory.memory import Memory
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
NOTE = Path("notes/a.md")


@pytest.fixture
async def marco(anywhere: Ports) -> MemoryAgent:
    return await create_memory_agent(anywhere)


async def open_files(marco: MemoryAgent) -> OwnFiles:
    stack = await marco.tenant.agent_stack(marco.name)
    return await own_files.open_own_files(marco.ports, marco.owner, stack)


async def test_writers_of_one_file_lose_no_edit(marco: MemoryAgent) -> None:
    own = await open_files(marco)
    await own_files.create_own_file(own, NOTE, "0\n1\n2\n3\n", "test")

    async def edit(digit: int) -> None:
        def change_text(text: str) -> str:
            return text.replace(f"{digit}\n", f"{digit}!\n")

        await own_files.edit_own_file(own, NOTE, change_text, "test")

    await asyncio.gather(*map(edit, range(4)))
    assert await marco.read(NOTE) == "0!\n1!\n2!\n3!\n"
    with pytest.raises(WorkspaceConflict):
        await own_files.create_own_file(own, NOTE, "again", "test")


async def test_a_directory_is_moved_and_deleted_whole_or_not_at_all(marco: MemoryAgent) -> None:
    own = await open_files(marco)
    for name in ("notes/x/a.md", "notes/x/b/c.md"):
        await own_files.create_own_file(own, Path(name), name, "test")
    await own_files.move_own(own, Path("notes/x"), Path("memory/y"), "test")
    moved = (await own_files.list_own_files(own, Path("memory/y"))).files
    assert [path.text for path in moved] == ["memory/y/a.md", "memory/y/b/c.md"]
    with pytest.raises(Forbidden):
        await own_files.move_own(own, Path("memory/y"), Path("elsewhere"), "test")
    assert (await own_files.list_own_files(own, Path("memory/y"))).files.keys() == moved.keys()
    await own_files.delete_own(own, Path("memory/y"), "test")
    assert not (await own_files.list_own_files(own, Path("memory/y"))).exists
    with pytest.raises(NotFound):
        await own_files.delete_own(own, Path("memory/y"), "test")


async def test_an_admin_writes_no_more_than_the_agent_may(marco: MemoryAgent) -> None:
    own = await open_files(marco)
    with pytest.raises(Forbidden, match=r"agents may not write SOUL\.md"):
        await own_files.create_own_file(own, Path("SOUL.md"), "x", "test")
    with pytest.raises(NotFound):
        await own_files.edit_own_file(own, Path("SOUL.md"), str.upper, "test")


async def test_the_paired_human_changes_the_files_and_another_member_does_not(
    marco: MemoryAgent,
) -> None:
    _, member = await add_person(marco.ports, marco.owner, "ann")
    own = await open_files(marco)
    own = OwnFiles(own.ports, member, own.stack, own.writable)
    with pytest.raises(Forbidden):
        await own_files.create_own_file(own, NOTE, "x", "test")
    await agents.patch(marco.ports, marco.owner, marco.name, {"human_pair_id": member.person})
    await own_files.create_own_file(own, NOTE, "x", "test")
    stack = await marco.tenant.agent_stack(marco.name)
    file = await files.get_file(marco.ports, stack, NOTE)
    assert file.version == 1


async def test_memories_and_files_are_found_together(marco: MemoryAgent) -> None:
    await marco.remember("The router is in the cellar")
    await marco.write("# Router\n\nIts light is green.\n", Path("notes/b.md"))
    await marco.write("The router of the office.\n", Path("SOUL.md"))
    stack = await marco.tenant.agent_stack(marco.name)
    result = await knowledge_search.search_knowledge(marco.ports, marco.owner, stack, "router")
    sources = [
        hit.source.content
        if isinstance(hit.source, Memory)
        else f"{hit.source.path}:{hit.source.passage.line}"
        for hit in result.hits
    ]
    assert sorted(sources) == ["The router is in the cellar", "notes/b.md:3"]
