"""An agent with memories, for the tests of memories and dreams."""

from __future__ import annotations

from typing import Any

from tests.support.overlay_tenant import OverlayTenant
from tests.support.stores import advance_clock
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents
from carrel.actions.files import files
from carrel.actions.memory import dreams, memories
from carrel.actions.memory.dreams import DreamReport
from carrel.actions.memory.memories import NewMemory
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path
from carrel.core.memory.memory import Memory
from carrel.core.memory.promoted_lines import MEMORY_PATH
from carrel.core.runs import Audience
from carrel.ports import Ports

DAY = 86_400_000


class MemoryAgent:
    """One agent of a tenant, by its slug."""

    def __init__(self, ports: Ports, tenant: OverlayTenant, name: str = "marco") -> None:
        self.ports, self.tenant, self.owner, self.name = ports, tenant, tenant.owner, name

    async def remember(self, text: str, mode: Audience = Audience.MAIN, **more: Any) -> Memory:
        new = NewMemory(text, mode=mode, **more)
        return (await memories.remember(self.ports, self.owner, self.name, new)).memory

    async def recall(self, *queries: str, limit: int = 5) -> list[str]:
        """The memories recalled for the last query."""
        contents: list[str] = []
        for query in queries:
            hits = await memories.recall(self.ports, self.owner, self.name, query, limit=limit)
            contents = [hit.memory.content for hit in hits]
        return contents

    async def learn(self, text: str, **more: Any) -> Memory:
        """Add a memory and recall it often enough to be promoted."""
        memory = await self.remember(text, **more)
        await self.recall(text, text + " again", text + " once more", limit=1)
        return memory

    async def dreams(self, **more: Any) -> DreamReport:
        return await dreams.sweep(self.ports, self.owner, self.name, **more)

    async def set(self, **settings: Any) -> None:
        """Set the dreaming config."""
        fields = {"config": {"dreaming": settings}}
        await agents.patch(self.ports, self.owner, self.name, fields)

    async def read(self, path: Path = MEMORY_PATH) -> str | None:
        try:
            return (await self.tenant.read(path, self.name)).decode()
        except NotFound:
            return None

    async def write(self, text: str, path: Path = MEMORY_PATH) -> None:
        """Write a file as a person does."""
        stack = await self.tenant.agent_stack(self.name)
        await files.put(self.ports, stack, path, text.encode(), self.owner)

    async def forget(self, id: str) -> None:
        await memories.forget(self.ports, self.owner, self.name, id)

    def advance(self, milliseconds: int = DAY) -> None:
        advance_clock(self.ports, milliseconds)


async def create_memory_agent(ports: Ports) -> MemoryAgent:
    _, owner = await create_tenant(ports)
    return MemoryAgent(ports, await OverlayTenant(ports, owner).open())
