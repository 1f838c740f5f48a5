"""File or directory is decided over all layers; clashes from before are reported."""

from __future__ import annotations

import pytest
from tests.support.overlay_tenant import OverlayTenant
from tests.support.tenants import create_tenant

from carrel import defaults
from carrel.actions.files import files
from carrel.actions.overlay import default_files, edit_impact, pin_reviews
from carrel.actions.overlay.path_clashes import LayerClash, check_path_clashes
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import ClassRuleModel, PolicyModel
from carrel.core.errors import Conflict
from carrel.core.identifiers import Path, Scope, digest
from carrel.core.maintenance.findings import FindingList
from carrel.core.overlay.default_files import DefaultFileState
from carrel.core.overlay.file_classes import FileClass
from carrel.core.store.commit import Commit, Write
from carrel.core.store.entry import Entry
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
EXTRA, BELOW = Path("EXTRA.md"), Path("EXTRA.md/x")


@pytest.fixture
def ports(anywhere: Ports) -> Ports:
    return anywhere


@pytest.fixture
async def tenant(ports: Ports) -> OverlayTenant:
    _, owner = await create_tenant(ports)
    return await OverlayTenant(ports, owner).open()


async def write_unchecked(ports: Ports, scope: Scope, path: Path) -> None:
    """Write a file as releases did that checked one layer only."""
    [blob] = await ports.blobs.put([b"x"])
    commit = Commit((Write(scope, path, Entry(blob)),), "carrel", "write", ports.clock.now())
    await ports.trees.commit([commit])


def package_extra(monkeypatch: pytest.MonkeyPatch, version: int, text: bytes = b"new") -> None:
    packaged = {**defaults.FILES, "EXTRA.md": text}
    monkeypatch.setattr(default_files, "FILES", packaged)
    monkeypatch.setattr(default_files, "VERSION", version)


@pytest.mark.parametrize("layer", ["defaults", "template", "agent"])
async def test_a_new_default_is_only_offered_where_a_layer_has_a_directory(
    tenant: OverlayTenant, monkeypatch: pytest.MonkeyPatch, layer: str
) -> None:
    ports, owner = tenant.ports, tenant.owner
    stacks = {"defaults": tenant.defaults, "template": tenant.sales}
    stack = stacks.get(layer) or await tenant.agent_stack()
    await tenant.write(stack, BELOW, b"mine")
    package_extra(monkeypatch, defaults.VERSION + 1)
    [update] = [update async for update in default_files.update_all_tenants(ports)]
    assert (update.written, update.offers, update.problem) == ((), (EXTRA,), None)
    status = await default_files.load_status(ports, owner)
    assert status.plan.states[EXTRA] is DefaultFileState.EDITED
    [tree] = await ports.trees.read(tenant.defaults)
    assert tree.entry(EXTRA) is None
    with pytest.raises(Conflict, match=r"EXTRA\.md/x"):
        await default_files.update(ports, owner, accept_paths=[EXTRA])
    await files.delete(ports, stack, BELOW, owner)
    [update] = [update async for update in default_files.update_all_tenants(ports)]
    assert update.written == (EXTRA,)


async def test_a_new_default_that_collides_in_letter_case_is_only_offered(
    tenant: OverlayTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports, owner = tenant.ports, tenant.owner
    rule = ClassRuleModel("*.md", FileClass.PINNED)
    await policies.put(ports, owner, PolicyModel(classes=(rule,)), confirm=True)
    await tenant.write(tenant.sales, Path("extra.md"), b"mine")
    package_extra(monkeypatch, defaults.VERSION + 1)
    [update] = [update async for update in default_files.update_all_tenants(ports)]
    assert (update.written, update.offers, update.problem) == ((), (EXTRA,), None)


async def test_clashes_from_before_are_reported_by_doctor_and_impact(
    tenant: OverlayTenant,
) -> None:
    ports = tenant.ports
    clean = FindingList()
    await check_path_clashes(ports, clean)
    assert clean.items == []
    await write_unchecked(ports, tenant.defaults[0], BELOW)
    await write_unchecked(ports, tenant.sales[0], EXTRA)
    await write_unchecked(ports, (await tenant.agent_stack())[0], Path("SOUL.md/mine"))
    findings = FindingList()
    await check_path_clashes(ports, findings)
    assert [(item.severity.value, item.subject, item.text) for item in findings.items] == [
        (
            "warning",
            "template sales of acme",
            "EXTRA.md is a file of its template and a directory of its defaults",
        ),
        (
            "warning",
            "agent marco of acme",
            "SOUL.md is a file of its template and a directory of its agent",
        ),
    ]
    impact = await edit_impact.load_impact(ports, tenant.owner, tenant.sales, EXTRA)
    assert impact.clashes == (LayerClash("defaults", BELOW),)
    impact = await edit_impact.load_impact(ports, tenant.owner, tenant.defaults, BELOW)
    assert impact.clashes == (LayerClash("template", EXTRA),)
    impact = await edit_impact.load_impact(ports, tenant.owner, tenant.sales, Path("SOUL.md"))
    assert impact.clashes == (LayerClash("agent marco", Path("SOUL.md/mine")),)


async def test_collisions_in_letter_case_from_before_are_reported_by_doctor_and_impact(
    tenant: OverlayTenant,
) -> None:
    ports, owner = tenant.ports, tenant.owner
    rule = ClassRuleModel("law/**", FileClass.PINNED)
    await policies.put(ports, owner, PolicyModel(classes=(rule,)))
    await write_unchecked(ports, tenant.defaults[0], Path("law/a.md"))
    await write_unchecked(ports, tenant.sales[0], Path("Law/b.md"))
    await write_unchecked(ports, (await tenant.agent_stack())[0], Path("law/A.md"))
    findings = FindingList()
    await check_path_clashes(ports, findings)
    problem = "collides on some file systems with"
    assert [(item.subject, item.text) for item in findings.items] == [
        ("template sales of acme", f"Law/b.md {problem} law/a.md"),
        ("agent marco of acme", f"Law/b.md {problem} law/A.md"),
        ("agent marco of acme", f"law/a.md {problem} law/A.md"),
    ]
    impact = await edit_impact.load_impact(ports, owner, tenant.defaults, Path("law/a.md"))
    assert impact.clashes == (
        LayerClash("template", Path("Law/b.md")),
        LayerClash("agent marco", Path("law/A.md")),
    )
    await policies.put(ports, owner, PolicyModel(classes=(rule,), run_retention_days=3))
    await files.delete(ports, tenant.sales, Path("Law/b.md"), owner)
    await files.delete(ports, tenant.defaults, Path("law/a.md"), owner)
    fixed = FindingList()
    await check_path_clashes(ports, fixed)
    assert fixed.items == []


async def test_a_first_accept_checks_the_agents_files(tenant: OverlayTenant) -> None:
    ports, owner = tenant.ports, tenant.owner
    await policies.put(
        ports, owner, PolicyModel(classes=(ClassRuleModel("EXTRA.md", FileClass.PINNED),))
    )
    await tenant.write(await tenant.agent_stack(), BELOW, b"mine")
    await write_unchecked(ports, tenant.sales[0], EXTRA)
    with pytest.raises(Conflict, match=r"EXTRA\.md/x"):
        await pin_reviews.accept(ports, owner, "marco", EXTRA, digest(b"x"))
