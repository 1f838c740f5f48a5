"""Files and directories of shared layers, decided together with those of the agents above."""

from __future__ import annotations

import pytest
from tests.support.overlay_tenant import OverlayTenant
from tests.support.tenants import create_tenant

from carrel.actions.files import files
from carrel.actions.files.file_commit import commit_files
from carrel.actions.overlay.path_clashes import check_path_clashes
from carrel.core.errors import Conflict
from carrel.core.identifiers import Path, Stack
from carrel.core.maintenance.findings import FindingList
from carrel.core.overlay.file_changes import ChangeKind, FileChange
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
DOCS, DEEP = Path("docs"), Path("docs/x.md")


@pytest.fixture
def ports(anywhere: Ports) -> Ports:
    return anywhere


@pytest.fixture
async def tenant(ports: Ports) -> OverlayTenant:
    _, owner = await create_tenant(ports)
    return await OverlayTenant(ports, owner).open()


def shared_layer(tenant: OverlayTenant, name: str) -> Stack:
    return tenant.sales if name == "template" else tenant.defaults


async def change(tenant: OverlayTenant, stack: Stack, *changes: FileChange) -> None:
    await commit_files(tenant.ports, stack, tenant.owner, changes)


async def clashes(tenant: OverlayTenant) -> list[str]:
    findings = FindingList()
    await check_path_clashes(tenant.ports, findings)
    return [f"{item.subject}: {item.text}" for item in findings.items]


@pytest.mark.parametrize("layer", ["template", "defaults"])
async def test_an_agents_own_directory_may_get_inherited_files(
    tenant: OverlayTenant, layer: str
) -> None:
    own = await tenant.agent_stack()
    await change(tenant, own, FileChange(ChangeKind.MAKE_DIRECTORY, DOCS))
    await tenant.write(shared_layer(tenant, layer), DEEP, b"x")
    assert await tenant.read(DEEP) == b"x"


@pytest.mark.parametrize("layer", ["template", "defaults"])
async def test_an_agents_empty_directory_is_no_file_of_a_shared_layer(
    tenant: OverlayTenant, layer: str
) -> None:
    own = await tenant.agent_stack()
    await change(tenant, own, FileChange(ChangeKind.MAKE_DIRECTORY, DOCS))
    with pytest.raises(Conflict, match="agent marco has docs"):
        await tenant.write(shared_layer(tenant, layer), DOCS, b"x")


@pytest.mark.parametrize("layer", ["template", "defaults"])
async def test_a_file_that_becomes_a_directory_in_one_commit_and_back(
    tenant: OverlayTenant, layer: str
) -> None:
    shared = shared_layer(tenant, layer)
    await tenant.write(shared, DOCS, b"x")
    for old, new in ((DOCS, DEEP), (DEEP, DOCS)):
        put = FileChange(ChangeKind.PUT, new, content=b"y")
        await change(tenant, shared, FileChange(ChangeKind.DELETE, old), put)
        assert await tenant.read(new) == b"y"
    assert await clashes(tenant) == []


async def test_an_agents_file_stops_a_move_of_its_template(tenant: OverlayTenant) -> None:
    own = await tenant.agent_stack()
    await tenant.write(tenant.sales, Path("plan"), b"x")
    await tenant.write(own, DEEP, b"mine")
    with pytest.raises(Conflict, match=r"agent marco has docs/x\.md"):
        await change(tenant, tenant.sales, FileChange(ChangeKind.MOVE, DOCS, Path("plan")))
    await files.delete(tenant.ports, own, DEEP, tenant.owner)
    await change(tenant, tenant.sales, FileChange(ChangeKind.MOVE, DOCS, Path("plan")))
    assert await tenant.read(DOCS) == b"x"
