"""Random changes of two tenants through the actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, TypeVar

from hypothesis import strategies as st
from tests.support.tenants import create_tenant

from carrel.actions.accounts import people, tenants
from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.overlay import pin_reviews, stacks
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import ClassRuleModel, PolicyModel
from carrel.core.access import Actor
from carrel.core.errors import Refusal
from carrel.core.identifiers import Path, Stack, digest
from carrel.core.overlay.file_classes import FileClass
from carrel.core.store.record import Record
from carrel.ports import Ports

SLUGS: Final = ("amy", "ben", "cy")
TEMPLATES: Final = ("sales", "care")
PATHS: Final = tuple(
    map(Path, ("GUARDRAILS.md", "SOUL.md", "USER.md", "IDENTITY.md", "memory/a", "memory"))
)
TEXTS: Final = (b"", b"one", b"two {{AGENT_NAME}}", b"- **Name:** Old\n")

Item = TypeVar("Item")
Change = tuple[str, int, int, int]
"""Name of a change, and three numbers that select its tenant and arguments."""


class Simulation:
    """Two tenants. A change that is impossible at the moment is refused and changes nothing."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.owners: list[Actor] = []
        self.humans: list[Record] = []

    async def open(self) -> Simulation:
        for slug in ("acme", "acme-2"):
            created, owner = await create_tenant(self.ports, slug)
            self.owners.append(owner)
            self.humans.append(created.owner)
        return self

    async def happen(self, change: Change) -> None:
        name, tenant_number, first, second = change
        with suppress(Refusal):
            await CHANGE_METHODS[name](self, self.owners[tenant_number % 2], first, second)

    async def write_agent(self, owner: Actor, first: int, second: int) -> None:
        stack = await stacks.agent_stack(self.ports, owner, _pick(SLUGS, first))
        await self._write(stack, owner, first, second)

    async def write_template(self, owner: Actor, first: int, second: int) -> None:
        stack = await stacks.template_stack(self.ports, owner, _pick(TEMPLATES, first))
        await self._write(stack, owner, first, second)

    async def write_defaults(self, owner: Actor, first: int, second: int) -> None:
        await self._write(await stacks.defaults_stack(self.ports, owner), owner, first, second)

    async def _write(self, stack: Stack, owner: Actor, first: int, second: int) -> None:
        path = _pick(PATHS, first // 3)
        if second % 4 == 3:
            await files.delete(self.ports, stack, path, owner)
        else:
            intent = WriteOptions(accept_template_update=True)
            await files.put(self.ports, stack, path, _pick(TEXTS, second // 4), owner, intent)

    async def hire(self, owner: Actor, first: int, second: int) -> None:
        template = _pick((None, *TEMPLATES), second)
        human = self.humans[self.owners.index(owner)].id if second % 2 else None
        new = NewAgent(_pick(SLUGS, first), "Agent", template, human=human)
        await agents.create(self.ports, owner, new)

    async def fire(self, owner: Actor, first: int, second: int) -> None:
        await agents.delete(self.ports, owner, _pick(SLUGS, first))

    async def rename_agent(self, owner: Actor, first: int, second: int) -> None:
        patch = {"slug": _pick(SLUGS, second), "name": f"Name {second}"}
        await agents.patch(self.ports, owner, _pick(SLUGS, first), patch)

    async def move_agent(self, owner: Actor, first: int, second: int) -> None:
        patch = {"template_id": _pick((None, *TEMPLATES), second)}
        await agents.patch(self.ports, owner, _pick(SLUGS, first), patch)

    async def make_template(self, owner: Actor, first: int, second: int) -> None:
        await templates.create(self.ports, owner, _pick(TEMPLATES, first), "A template")

    async def drop_template(self, owner: Actor, first: int, second: int) -> None:
        await templates.delete(self.ports, owner, _pick(TEMPLATES, first))

    async def rename_template(self, owner: Actor, first: int, second: int) -> None:
        patch = {"slug": _pick((*TEMPLATES, "others"), second)}
        await templates.patch(self.ports, owner, _pick((*TEMPLATES, "others"), first), patch)

    async def review(self, owner: Actor, first: int, second: int) -> None:
        reviewed = digest(_pick(TEXTS, second))
        await pin_reviews.accept(self.ports, owner, _pick(SLUGS, first), PATHS[0], reviewed)

    async def pin_more(self, owner: Actor, first: int, second: int) -> None:
        rules = (ClassRuleModel(_pick(("SOUL.md", "memory/*"), first), FileClass.PINNED),)
        await policies.put(self.ports, owner, PolicyModel(classes=rules[: second % 2]), "because")

    async def rename_tenant(self, owner: Actor, first: int, second: int) -> None:
        await tenants.rename(self.ports, owner, f"Tenant {first}")

    async def rename_human(self, owner: Actor, first: int, second: int) -> None:
        human = self.humans[self.owners.index(owner)]
        await people.patch(self.ports, owner, human.id, {"name": f"Human {first}"})


ChangeMethod = Callable[[Simulation, Actor, int, int], Awaitable[None]]
CHANGE_METHODS: Final[Mapping[str, ChangeMethod]] = {
    name: happening
    for name, happening in vars(Simulation).items()
    if not name.startswith("_") and name not in {"open", "happen"}
}
INITIAL_CHANGES: Final[tuple[Change, ...]] = tuple(
    (name, tenant_number, first, second)
    for tenant_number in (0, 1)
    for name, first, second in (
        *(("make_template", 0, 0), ("write_defaults", 0, 4), ("write_template", 0, 8)),
        *(("write_defaults", 6, 12), ("hire", 0, 1), ("hire", 1, 2), ("write_agent", 3, 4)),
    )
)

numbers = st.integers(0, 60)
changes: st.SearchStrategy[Change] = st.tuples(
    st.sampled_from(sorted(CHANGE_METHODS)), st.integers(0, 1), numbers, numbers
)


def _pick(items: tuple[Item, ...], number: int) -> Item:
    return items[number % len(items)]
