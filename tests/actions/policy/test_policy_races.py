"""Files that are written between the read and the commit of a policy change."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from tests.support.overlay_tenant import OverlayTenant
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents
from carrel.actions.files import files
from carrel.actions.overlay.path_clashes import check_path_clashes
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import ClassRuleModel, PolicyModel
from carrel.core.errors import Conflict, NotFound, ValidationError
from carrel.core.identifiers import Path, Stack
from carrel.core.maintenance.findings import FindingList
from carrel.core.overlay.file_classes import FileClass
from carrel.core.store.commit import Commit, Outcome
from carrel.core.store.record import RecordType
from carrel.ports import Ports
from carrel.ports.trees import Trees

pytestmark = pytest.mark.anyio
LAYERS = ("agent", "template", "defaults")


@pytest.fixture
def ports(anywhere: Ports) -> Ports:
    return anywhere


@pytest.fixture
async def tenant(ports: Ports) -> OverlayTenant:
    _, owner = await create_tenant(ports)
    return await OverlayTenant(ports, owner).open()


class PolicyTrees:
    """Trees that do some work of another writer before each commit of a policy."""

    def __init__(self, trees: Trees, work: Callable[[], Awaitable[object]]) -> None:
        self._trees, self._work = trees, work
        self.policy_commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trees, name)

    async def commit(self, commits: Sequence[Commit]) -> tuple[Outcome, ...]:
        changes = [change for commit in commits for change in commit.changes]
        if any(change.type is RecordType.POLICY for change in changes):
            self.policy_commits += 1
            await self._work()
        return await self._trees.commit(commits)


async def stack_of(tenant: OverlayTenant, layer: str) -> Stack:
    own = await tenant.agent_stack()
    return {"template": tenant.sales, "defaults": tenant.defaults, "agent": own}[layer]


async def pin(
    tenant: OverlayTenant,
    *patterns: str,
    work: Callable[[], Awaitable[object]] | None = None,
    **options: Any,
) -> int:
    """Pin patterns while another writer works; return the number of commits that were tried."""
    rules = tuple(ClassRuleModel(pattern, FileClass.PINNED) for pattern in patterns)
    trees = PolicyTrees(tenant.ports.trees, work) if work else None
    ports = dataclasses.replace(tenant.ports, trees=trees) if trees else tenant.ports
    await policies.put(ports, tenant.owner, PolicyModel(classes=rules), **options)
    return trees.policy_commits if trees else 1


def writes_once(
    tenant: OverlayTenant, stack: Stack, path: str, text: bytes = b"x"
) -> Callable[[], Awaitable[object]]:
    """Work that writes a file the first time."""
    written: list[str] = []

    async def work() -> None:
        if not written:
            written.append(path)
            await tenant.write(stack, Path(path), text)

    return work


async def clashes(tenant: OverlayTenant) -> list[str]:
    findings = FindingList()
    await check_path_clashes(tenant.ports, findings)
    return [f"{item.subject}: {item.text}" for item in findings.items]


@pytest.mark.parametrize(
    ("pattern", "existing", "variant"),
    [
        ("policies/**", "policies/x.md", "policies/X.md"),
        ("policies/**", "policies/x.md", "Policies/b.txt"),
        ("**/x.md", "docs/x.md", "Docs/b.txt"),
        ("**/x.md", "docs/b.txt", "Docs/x.md"),
        ("*.md", "notice.md", "Notice.MD"),
    ],
)
@pytest.mark.parametrize("layer", LAYERS)
async def test_a_variant_of_a_path_that_becomes_pinned(
    tenant: OverlayTenant, layer: str, pattern: str, existing: str, variant: str
) -> None:
    await tenant.write(tenant.sales, Path(existing), b"x")
    work = writes_once(tenant, await stack_of(tenant, layer), variant)
    with pytest.raises(Conflict, match="collide"):
        await pin(tenant, pattern, work=work, confirm=True)
    assert (await policies.get(tenant.ports, tenant.owner)).classes == ()
    assert await clashes(tenant) == []


@pytest.mark.parametrize("layer", LAYERS)
async def test_a_file_with_placeholders(tenant: OverlayTenant, layer: str) -> None:
    work = writes_once(tenant, await stack_of(tenant, layer), "rules/a.md", b"{{AGENT_NAME}}")
    with pytest.raises(Conflict, match=r"rules/a\.md"):
        await pin(tenant, "rules/**", work=work)


@pytest.mark.parametrize("layer", LAYERS)
async def test_placeholders_that_a_file_gets(tenant: OverlayTenant, layer: str) -> None:
    stack = await stack_of(tenant, layer)
    await tenant.write(stack, Path("rules/a.md"), b"plain")
    work = writes_once(tenant, stack, "rules/a.md", b"{{AGENT_NAME}}")
    with pytest.raises(Conflict, match=r"rules/a\.md"):
        await pin(tenant, "rules/**", work=work)


@pytest.mark.parametrize("layer", LAYERS)
async def test_a_file_that_becomes_pinned_is_served_as_before(
    tenant: OverlayTenant, layer: str
) -> None:
    stack = await stack_of(tenant, layer)
    work = writes_once(tenant, stack, "rules/a.md", b"new")
    assert await pin(tenant, "rules/**", work=work) == 2
    assert await tenant.read(Path("rules/a.md")) == b"new"


async def test_a_file_that_is_deleted_gets_no_pin(tenant: OverlayTenant) -> None:
    path = Path("rules/a.md")
    await tenant.write(tenant.sales, path, b"x")
    deleted: list[Path] = []

    async def delete() -> None:
        if not deleted:
            deleted.append(path)
            await files.delete(tenant.ports, tenant.sales, path, tenant.owner)

    assert await pin(tenant, "rules/**", work=delete) == 2
    with pytest.raises(NotFound):
        await tenant.read(path)


async def test_making_a_new_pinned_file_live_needs_a_reason(tenant: OverlayTenant) -> None:
    await pin(tenant, "rules/**")
    work = writes_once(tenant, tenant.sales, "rules/a.md")
    with pytest.raises(ValidationError, match="reason"):
        await pin(tenant, work=work)
    assert await pin(tenant, work=work, change_reason="no longer used") == 1


async def test_an_agent_that_is_created(tenant: OverlayTenant) -> None:
    await tenant.write(tenant.sales, Path("rules/a.md"), b"x")
    created: list[str] = []

    async def create() -> None:
        if not created:
            created.append("nina")
            await tenant.create_agent("nina", "Nina")

    assert await pin(tenant, "rules/**", work=create) == 2
    assert await tenant.read(Path("rules/a.md"), "nina") == b"x"
    assert await tenant.source(Path("rules/a.md"), "nina") == "template-pinned"


async def test_other_files_do_not_make_a_policy_change_decide_again(tenant: OverlayTenant) -> None:
    await tenant.write(tenant.sales, Path("rules/a.md"), b"x")
    own, number = await tenant.agent_stack(), 0

    async def work() -> None:
        nonlocal number
        number += 1
        await tenant.write(own, Path(f"notes/{number}.md"), b"x")
        await tenant.write(tenant.sales, Path("SOUL.md"), b"%d" % number)

    assert await pin(tenant, "rules/**", work=work) == 1


async def test_a_rule_for_no_class_change_ignores_files(tenant: OverlayTenant) -> None:
    await pin(tenant, "rules/**")
    own = await tenant.agent_stack()
    work = writes_once(tenant, own, "notes/a.md")
    assert await pin(tenant, "rules/**", work=work) == 1
    await agents.patch(tenant.ports, tenant.owner, "marco", {"name": "Marco Two"})
    assert await clashes(tenant) == []
