"""Whatever fails, and at whichever moment: what is known of an agent and its files agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
from tests.support.tenants import add_person, create_tenant

from carrel.actions.accounts import people, tenants
from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_fields
from carrel.core.identifiers import Path
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
USER, IDENTITY = Path("USER.md"), Path("IDENTITY.md")
ABOUT: Final = b"{{HUMAN_NAME}} ({{HUMAN_TITLE}}) of {{TENANT_NAME}} and {{AGENT_NAME}}"
PORTS: Final = ("trees", "blobs", "records")


@pytest.fixture
def ports(anywhere: Ports) -> Ports:
    return anywhere


class Outage(Exception):
    """What the world says when it fails."""


@dataclass
class Fuse:
    """Blows at one question of the world: before it is put, or once it has been answered."""

    at: int
    answered: bool
    asked: int = field(default=0)

    @property
    def blown(self) -> bool:
        return self.asked > self.at


class Fused:
    def __init__(self, port: Any, fuse: Fuse) -> None:
        self._port, self._fuse = port, fuse

    def __getattr__(self, name: str) -> Any:
        verb, fuse = getattr(self._port, name), self._fuse
        if not callable(verb):
            return verb

        async def asked(*args: Any, **more: Any) -> Any:
            fuse.asked += 1
            if fuse.asked == fuse.at + 1 and not fuse.answered:
                raise Outage
            answer = await verb(*args, **more)
            if fuse.asked == fuse.at + 1:
                raise Outage
            return answer

        return asked


@dataclass
class Firm:
    ports: Ports
    owner: Actor
    ann: str
    bob: str

    async def agree(self) -> str:
        """The agent's record, its people's and its tenant's, and what its two files say: this."""
        agent = agent_fields(await agents.get(self.ports, self.owner, "marco"))
        account = await tenants.get_current(self.ports, self.owner)
        human = {"name": "\u2014", "title": None}
        if agent["humanPairId"]:
            human = dict((await people.get(self.ports, self.owner, agent["humanPairId"])).body)
        told = f"{human['name']} ({human['title'] or chr(0x2014)})"
        about = f"{told} of {account.body['name']} and {agent['name']}"
        assert await self.read(USER) == about.encode()
        assert await self.read(IDENTITY) == b"- **Name:** %s\n- **Vibe:** calm\n" % (
            agent["name"].encode()
        )
        return about

    async def read(self, path: Path) -> bytes:
        stack = await stacks.agent_stack(self.ports, self.owner, "marco")
        return await files.read_content(self.ports, await files.get_file(self.ports, stack, path))


async def firm(ports: Ports, slug: str) -> Firm:
    _, owner = await create_tenant(ports, slug)
    await templates.create(ports, owner, "sales", "Sales")
    sales = await stacks.template_stack(ports, owner, "sales")
    await files.put(ports, sales, USER, ABOUT, owner)
    await files.put(ports, sales, IDENTITY, b"- **Name:** Nobody\n- **Vibe:** calm\n", owner)
    ann, _ = await add_person(ports, owner, f"ann-{slug}")
    bob, _ = await add_person(ports, owner, f"bob-{slug}")
    await agents.create(ports, owner, NewAgent("marco", "Marco", "sales", human=ann.id))
    await agents.patch(ports, owner, "marco", {"name": "Polo"})
    return Firm(ports, owner, ann.id, bob.id)


Change = Callable[[Ports, Firm], Awaitable[Any]]
CHANGES: Final[dict[str, Change]] = {
    "a rename": lambda ports, firm: agents.patch(ports, firm.owner, "marco", {"name": "Ada"}),
    "a pairing": lambda ports, firm: agents.patch(
        ports, firm.owner, "marco", {"humanPairId": firm.bob}
    ),
    "both at once": lambda ports, firm: agents.patch(
        ports, firm.owner, "marco", {"humanPairId": firm.bob, "name": "Ada"}
    ),
    "a parting": lambda ports, firm: agents.patch(
        ports, firm.owner, "marco", {"humanPairId": None}
    ),
    "a profile": lambda ports, firm: people.patch(
        ports, firm.owner, firm.ann, {"title": "Dr", "name": "Annabel"}
    ),
    "a person who leaves": lambda ports, firm: people.delete(ports, firm.owner, firm.ann),
    "a new name of the tenant": lambda ports, firm: tenants.rename(ports, firm.owner, "Globex"),
}


@pytest.mark.parametrize("answered", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_facts_and_files_agree_wherever_it_fails(
    ports: Ports, change: Change, answered: bool
) -> None:
    number, ended = 0, False
    here = await firm(ports, "firm")
    before = await here.agree()
    while not ended:
        fuse = Fuse(number, answered)
        replaced: dict[str, Any] = {name: Fused(getattr(ports, name), fuse) for name in PORTS}
        try:
            await change(dataclasses.replace(ports, **replaced), here)
            ended = not fuse.blown
        except Outage:
            pass
        number += 1
        if await here.agree() != before:
            # Where nothing has changed it is tried again, and else somewhere else.
            here = await firm(ports, f"firm-{number}")
            before = await here.agree()
        assert number < 100
    assert number > 5, "it asked the world for nothing"
