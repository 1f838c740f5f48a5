"""A file and a directory of one name, written into two layers at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest
from tests.support.overlay_tenant import OverlayTenant
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents, templates
from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.actions.overlay.path_clashes import check_path_clashes
from carrel.core.errors import Busy, Conflict
from carrel.core.identifiers import Path, Stack
from carrel.core.maintenance.findings import FindingList
from carrel.ports import Ports

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
    except (Conflict, Busy):
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
