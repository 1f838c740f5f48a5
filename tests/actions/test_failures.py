"""After a failure at any port call an agent's record and its files agree."""

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
from carrel.core.agents.agent import agent_from_record
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
    """Failure injected into a port call."""


@dataclass
class FailurePoint:
    """Fails at one port call: before it is made, or after it has returned."""

    call: int
    after_call: bool
    calls: int = field(default=0)

    @property
    def reached(self) -> bool:
        return self.calls > self.call


class FailingPort:
    def __init__(self, port: Any, failure: FailurePoint) -> None:
        self._port, self._failure = port, failure

    def __getattr__(self, name: str) -> Any:
        method, failure = getattr(self._port, name), self._failure
        if not callable(method):
            return method

        async def call(*args: Any, **options: Any) -> Any:
            failure.calls += 1
            if failure.calls == failure.call + 1 and not failure.after_call:
                raise Outage
            result = await method(*args, **options)
            if failure.calls == failure.call + 1:
                raise Outage
            return result

        return call


@dataclass
class PairedTenant:
    ports: Ports
    owner: Actor
    ann: str
    bob: str

    async def check_agreement(self) -> str:
        """Assert that the records and the two files agree; returns the expected USER.md."""
        agent = agent_from_record(await agents.get(self.ports, self.owner, "marco"))
        account = await tenants.get_current(self.ports, self.owner)
        human = {"name": "\u2014", "title": None}
        if agent.human_pair_id:
            human = dict((await people.get(self.ports, self.owner, agent.human_pair_id)).body)
        described = f"{human['name']} ({human['title'] or chr(0x2014)})"
        about = f"{described} of {account.body['name']} and {agent.name}"
        assert await self.read(USER) == about.encode()
        assert await self.read(IDENTITY) == b"- **Name:** %s\n- **Vibe:** calm\n" % (
            agent.name.encode()
        )
        return about

    async def read(self, path: Path) -> bytes:
        stack = await stacks.agent_stack(self.ports, self.owner, "marco")
        return await files.read_content(self.ports, await files.get_file(self.ports, stack, path))


async def create_paired_tenant(ports: Ports, slug: str) -> PairedTenant:
    _, owner = await create_tenant(ports, slug)
    await templates.create(ports, owner, "sales", "Sales")
    sales = await stacks.template_stack(ports, owner, "sales")
    await files.put(ports, sales, USER, ABOUT, owner)
    await files.put(ports, sales, IDENTITY, b"- **Name:** Unset\n- **Vibe:** calm\n", owner)
    ann, _ = await add_person(ports, owner, f"ann-{slug}")
    bob, _ = await add_person(ports, owner, f"bob-{slug}")
    await agents.create(ports, owner, NewAgent("marco", "Marco", "sales", human=ann.id))
    await agents.patch(ports, owner, "marco", {"name": "Polo"})
    return PairedTenant(ports, owner, ann.id, bob.id)


Change = Callable[[Ports, PairedTenant], Awaitable[Any]]
CHANGES: Final[dict[str, Change]] = {
    "a rename": lambda ports, tenant: agents.patch(ports, tenant.owner, "marco", {"name": "Ada"}),
    "a pairing": lambda ports, tenant: agents.patch(
        ports, tenant.owner, "marco", {"human_pair_id": tenant.bob}
    ),
    "both at once": lambda ports, tenant: agents.patch(
        ports, tenant.owner, "marco", {"human_pair_id": tenant.bob, "name": "Ada"}
    ),
    "an unpairing": lambda ports, tenant: agents.patch(
        ports, tenant.owner, "marco", {"human_pair_id": None}
    ),
    "a profile change": lambda ports, tenant: people.patch(
        ports, tenant.owner, tenant.ann, {"title": "Dr", "name": "Annabel"}
    ),
    "a deleted person": lambda ports, tenant: people.delete(ports, tenant.owner, tenant.ann),
    "a renamed tenant": lambda ports, tenant: tenants.rename(ports, tenant.owner, "Globex"),
}


@pytest.mark.parametrize("after_call", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_records_and_files_agree_after_a_failure_at_any_call(
    ports: Ports, change: Change, after_call: bool
) -> None:
    number, ended = 0, False
    tenant = await create_paired_tenant(ports, "firm")
    before = await tenant.check_agreement()
    while not ended:
        failure = FailurePoint(number, after_call)
        replaced: dict[str, Any] = {
            name: FailingPort(getattr(ports, name), failure) for name in PORTS
        }
        try:
            await change(dataclasses.replace(ports, **replaced), tenant)
            ended = not failure.reached
        except Outage:
            pass
        number += 1
        if await tenant.check_agreement() != before:
            # An unchanged tenant is used again, a changed one is replaced.
            tenant = await create_paired_tenant(ports, f"firm-{number}")
            before = await tenant.check_agreement()
        assert number < 100
    assert number > 5, "no port was called"
