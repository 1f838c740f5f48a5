"""Paths that exclude each other, written into two layers at the same time."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from tests.support.overlay_tenant import OverlayTenant
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.overlay import stacks
from carrel.actions.overlay.path_clashes import check_path_clashes
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import ClassRuleModel, PolicyModel
from carrel.core.errors import Busy, Conflict, ValidationError
from carrel.core.identifiers import Path, Scope, Stack
from carrel.core.maintenance.findings import FindingList
from carrel.core.overlay.file_classes import FileClass
from carrel.core.store.commit import Commit, Outcome
from carrel.core.store.record import Record
from carrel.ports import Ports
from carrel.ports.trees import Trees

pytestmark = pytest.mark.anyio
ROUNDS = 12


@pytest.fixture
def ports(anywhere: Ports) -> Ports:
    return anywhere


@pytest.fixture
async def tenant(ports: Ports) -> OverlayTenant:
    _, owner = await create_tenant(ports)
    return await OverlayTenant(ports, owner).open()


async def refused(work: Awaitable[object]) -> bool:
    try:
        await work
    except (Conflict, Busy, ValidationError):
        return True
    return False


async def clashes(tenant: OverlayTenant) -> list[str]:
    findings = FindingList()
    await check_path_clashes(tenant.ports, findings)
    return [f"{item.subject}: {item.text}" for item in findings.items]


@pytest.mark.parametrize("layer", ["template", "defaults"])
@pytest.mark.parametrize("is_file", [True, False])
async def test_a_shared_layer_and_an_agent_above_it(
    tenant: OverlayTenant, layer: str, is_file: bool
) -> None:
    shared: Stack = tenant.sales if layer == "template" else tenant.defaults
    own = await tenant.agent_stack()
    for n in range(ROUNDS):
        names = (Path(f"notes-{n}"), Path(f"notes-{n}/deep/x"))
        lower, upper = names if is_file else names[::-1]
        outcomes = await asyncio.gather(
            refused(tenant.write(shared, lower, b"x")), refused(tenant.write(own, upper, b"x"))
        )
        assert outcomes.count(True) == 1
    assert await clashes(tenant) == []


async def test_an_agent_that_moves_and_the_file_that_it_gets_meanwhile(
    tenant: OverlayTenant,
) -> None:
    ports, owner = tenant.ports, tenant.owner
    await templates.create(ports, owner, "care", "Care")
    care = await stacks.template_stack(ports, owner, "care")
    for n in range(ROUNDS):
        await tenant.write(care, Path(f"notes-{n}"), b"x")
        await agents.patch(ports, owner, "marco", {"template_id": "sales"})
        own = await tenant.agent_stack()
        outcomes = await asyncio.gather(
            refused(agents.patch(ports, owner, "marco", {"template_id": "care"})),
            refused(tenant.write(own, Path(f"notes-{n}/x"), b"x")),
        )
        assert outcomes.count(True) == 1
        await agents.patch(ports, owner, "marco", {"template_id": "sales"})
        if outcomes[0]:
            await files.delete(ports, own, Path(f"notes-{n}/x"), owner)
    assert await clashes(tenant) == []


class HeldTrees:
    """Trees that do some work of another writer before the first commit of a scope."""

    def __init__(self, trees: Trees, scope: Scope, work: Callable[[], Awaitable[object]]) -> None:
        self._trees, self._scope, self._work = trees, scope, work
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trees, name)

    async def commit(self, commits: Sequence[Commit]) -> tuple[Outcome, ...]:
        if any(write.scope == self._scope for commit in commits for write in commit.writes):
            self.commits += 1
            if self.commits == 1:
                await self._work()
        return await self._trees.commit(commits)


async def write_after(
    tenant: OverlayTenant, stack: Stack, path: Path, work: Callable[[], Awaitable[object]]
) -> bool:
    """Write a file while another writer's work is done between its read and its commit."""
    trees = HeldTrees(tenant.ports.trees, stack[0], work)
    ports = dataclasses.replace(tenant.ports, trees=trees)
    return await refused(files.put(ports, stack, path, b"x", tenant.owner))


async def pin(tenant: OverlayTenant, *patterns: str) -> None:
    rules = tuple(ClassRuleModel(pattern, FileClass.PINNED) for pattern in patterns)
    await policies.put(tenant.ports, tenant.owner, PolicyModel(classes=rules), confirm=True)


@pytest.mark.parametrize(
    ("first", "second"),
    [("policies/x.md", "policies/X.md"), ("policies/a.md", "Policies/b.md"), ("a.md", "A.md")],
)
@pytest.mark.parametrize("lower", ["template", "defaults", "agent"])
@pytest.mark.parametrize("upper", ["template", "agent"])
async def test_two_variants_of_a_pinned_path(
    tenant: OverlayTenant, lower: str, upper: str, first: str, second: str
) -> None:
    await pin(tenant, "**/*.md")
    own = await tenant.agent_stack()
    stacks_by_layer = {"template": tenant.sales, "defaults": tenant.defaults, "agent": own}

    async def write_first() -> None:
        await files.put(
            tenant.ports,
            stacks_by_layer[lower],
            Path(first),
            b"x",
            tenant.owner,
            WriteOptions(accept_template_update=True),
        )

    trees = HeldTrees(tenant.ports.trees, stacks_by_layer[upper][0], write_first)
    ports = dataclasses.replace(tenant.ports, trees=trees)
    if upper == lower:
        trees.commits = 1
        await write_first()
    options = WriteOptions(accept_template_update=True)
    put = files.put(ports, stacks_by_layer[upper], Path(second), b"x", tenant.owner, options)
    with pytest.raises(ValidationError, match="collides"):
        await put
    assert await clashes(tenant) == []


async def test_variants_that_are_written_at_the_same_time(tenant: OverlayTenant) -> None:
    await pin(tenant, "policies/**")
    for n in range(ROUNDS):
        outcomes = await asyncio.gather(
            *(
                refused(tenant.write(tenant.sales, Path(f"policies/{name}"), b"x"))
                for name in (f"x{n}.md", f"X{n}.md")
            )
        )
        assert outcomes.count(True) == 1
    assert await clashes(tenant) == []


async def test_variants_that_no_rule_protects_are_allowed(tenant: OverlayTenant) -> None:
    await pin(tenant, "**/rules.md")
    for text in ("docs/a.txt", "Docs/a.txt", "DOCS/b.txt"):
        await tenant.write(tenant.sales, Path(text), b"x")
        await tenant.write(await tenant.agent_stack(), Path(f"own/{text}"), b"x")


@pytest.mark.parametrize("layer", ["template", "defaults"])
@pytest.mark.parametrize("joins", ["moved", "created"])
async def test_an_agent_that_joins_a_layer_between_its_read_and_its_commit(
    tenant: OverlayTenant, layer: str, joins: str
) -> None:
    ports, owner = tenant.ports, tenant.owner
    await templates.create(ports, owner, "care", "Care")
    shared = tenant.sales if layer == "template" else tenant.defaults

    async def join() -> None:
        agent: Record = await agents.create(ports, owner, NewAgent("nina", "Nina", "care"))
        stack = await stacks.agent_stack(ports, owner, "nina")
        await tenant.write(stack, Path("docs/x"), b"mine")
        if joins == "moved":
            await agents.patch(ports, owner, agent.id, {"template_id": "sales"})

    is_below = layer == "defaults" or joins == "moved"
    assert await write_after(tenant, shared, Path("docs"), join) is is_below
    assert await clashes(tenant) == []


async def test_a_template_that_is_created_while_the_defaults_change(tenant: OverlayTenant) -> None:
    ports, owner = tenant.ports, tenant.owner

    async def create() -> None:
        await templates.create(ports, owner, "care", "Care")
        care = await stacks.template_stack(ports, owner, "care")
        await tenant.write(care, Path("docs/x"), b"x")

    assert await write_after(tenant, tenant.defaults, Path("docs"), create)
    assert await clashes(tenant) == []


async def test_a_file_that_is_deleted_while_another_is_put_below_it(tenant: OverlayTenant) -> None:
    docs = Path("docs")
    await tenant.write(tenant.sales, docs, b"x")
    own = await tenant.agent_stack()

    async def replace_by_directory() -> None:
        await files.delete(tenant.ports, tenant.sales, docs, tenant.owner)
        await tenant.write(own, Path("docs/x"), b"mine")

    assert await write_after(tenant, tenant.sales, docs, replace_by_directory)
    assert await clashes(tenant) == []
