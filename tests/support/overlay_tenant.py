"""A tenant with a template that has files of every class, and an agent of it."""

from __future__ import annotations

from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.overlay import stacks
from carrel.core.access import Actor
from carrel.core.identifiers import Path, Stack
from carrel.core.store.record import Record
from carrel.ports import Ports

RULES, SOUL, USER, IDENTITY = map(Path, ("GUARDRAILS.md", "SOUL.md", "USER.md", "IDENTITY.md"))
NOTICE = Path("NOTICE.md")
ABOUT = (
    b"- **Human:** {{HUMAN_NAME}}, {{HUMAN_TITLE}}, of {{TENANT_NAME}}, served by {{AGENT_NAME}}\n"
)


class OverlayTenant:
    """A tenant with a template that has files of every class, and an agent of it."""

    def __init__(self, ports: Ports, owner: Actor) -> None:
        self.ports, self.owner = ports, owner

    async def open(self) -> OverlayTenant:
        self.template = await templates.create(self.ports, self.owner, "sales", "Sales")
        self.defaults = await stacks.defaults_stack(self.ports, self.owner)
        self.sales = await stacks.template_stack(self.ports, self.owner, "sales")
        await self.write(self.defaults, RULES, b"be good")
        await self.write(self.defaults, IDENTITY, b"# Me\n\n- **Name:** {{AGENT_NAME}}\n")
        await self.write(self.defaults, USER, ABOUT)
        await self.write(self.sales, SOUL, b"{{AGENT_NAME}} is brisk")
        self.agent = await self.create_agent("marco", "Marco")
        return self

    async def create_agent(self, slug: str, name: str, human: str | None = None) -> Record:
        new = NewAgent(slug, name, "sales", human=human)
        return await agents.create(self.ports, self.owner, new)

    async def write(
        self, stack: Stack, path: Path, text: bytes, author: Actor | None = None, **options: object
    ) -> None:
        intent = WriteOptions(**options)  # type: ignore[arg-type]
        await files.put(self.ports, stack, path, text, author or self.owner, intent)

    async def read(self, path: Path, name: str = "marco") -> bytes:
        stack = await stacks.agent_stack(self.ports, self.owner, name)
        return await files.read_content(self.ports, await files.get_file(self.ports, stack, path))

    async def source(self, path: Path, name: str = "marco") -> str:
        stack = await stacks.agent_stack(self.ports, self.owner, name)
        return (await files.get_file(self.ports, stack, path)).source_label

    async def agent_stack(self, name: str = "marco") -> Stack:
        return await stacks.agent_stack(self.ports, self.owner, name)
