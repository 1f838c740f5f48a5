"""Comparisons of agents, layers, runs and versions: statuses, diffs, pages and permission."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.support.overlay_tenant import SOUL, OverlayTenant
from tests.support.stores import advance_clock
from tests.support.tenants import create_tenant

from carrel.actions import comparison
from carrel.actions.comparison import Comparison, ComparisonRequest
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import LimitsModel, PolicyModel
from carrel.actions.runs import runs
from carrel.actions.runs.run_request import RunRequest
from carrel.core.access import Permission
from carrel.core.comparison import ComparisonStatus
from carrel.core.errors import Forbidden, NotFound
from carrel.core.identifiers import Path
from carrel.core.sessions.session import format_timestamp
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
NOTE = Path("docs/note.md")


@pytest.fixture
async def acme(ports: Ports) -> OverlayTenant:
    _, owner = await create_tenant(ports)
    return await OverlayTenant(ports, owner).open()


async def compare(acme: OverlayTenant, left: str, right: str, **more: Any) -> Comparison:
    return await comparison.compare(acme.ports, acme.owner, ComparisonRequest(left, right, **more))


def statuses(result: Comparison, *, same: bool = False) -> Mapping[str, str]:
    return {
        row.path.text: str(row.status)
        for row in result.items
        if same or row.status is not ComparisonStatus.SAME
    }


async def test_two_agents_differ_in_their_files_and_rendered_names(acme: OverlayTenant) -> None:
    await acme.create_agent("polo", "Polo")
    await acme.write(await acme.agent_stack(), NOTE, b"mine\n")

    result = await compare(acme, "agent:marco", "agent:polo", diff=True)
    assert statuses(result) == {
        "IDENTITY.md": "changed",
        "SOUL.md": "changed",
        "USER.md": "changed",
        "docs/note.md": "only-left",
    }
    soul = next(row for row in result.items if row.path == SOUL)
    assert "-Marco is brisk" in (soul.diff or "")
    assert "+Polo is brisk" in (soul.diff or "")
    assert result.counts[ComparisonStatus.CHANGED] == 3
    assert (result.left.name, result.right.name) == ("Marco", "Polo")

    raw = await compare(acme, "agent:marco", "agent:polo", raw=True)
    assert statuses(raw) == {"docs/note.md": "only-left"}


async def test_a_template_is_compared_with_what_it_inherits(acme: OverlayTenant) -> None:
    result = await compare(acme, "template:sales", "defaults")
    assert statuses(result)["SOUL.md"] in {"changed", "only-left"}
    assert statuses(result, same=True)["GUARDRAILS.md"] == "same"


async def test_an_override_is_compared_with_its_template(acme: OverlayTenant) -> None:
    await acme.write(await acme.agent_stack(), SOUL, b"slow\n")
    result = await compare(acme, "template:sales/SOUL.md", "agent:marco", diff=True, raw=True)
    [row] = result.items
    assert (str(row.status), row.path) == ("changed", SOUL)
    assert "+slow" in (row.diff or "")


async def test_two_runs_and_a_run_with_now(acme: OverlayTenant) -> None:
    first = await runs.start(acme.ports, acme.owner, RunRequest(agent="marco"))
    await acme.write(acme.sales, SOUL, b"calm\n")
    second = await runs.start(acme.ports, acme.owner, RunRequest(agent="marco"))
    assert statuses(await compare(acme, f"run:{first.id}", f"run:{second.id}")) == {
        "SOUL.md": "changed"
    }
    assert statuses(await compare(acme, f"run:{second.id}", "agent:marco")) == {}
    narrowed = await compare(acme, f"run:{first.id}/SOUL.md", f"run:{second.id}")
    assert statuses(narrowed) == {"SOUL.md": "changed"}


async def test_two_versions_of_a_file_and_two_files(acme: OverlayTenant) -> None:
    await acme.write(acme.sales, NOTE, b"one\n")
    await acme.write(acme.sales, NOTE, b"two\n")
    result = await compare(
        acme, f"template:sales/{NOTE}@v1", f"template:sales/{NOTE}@v2", diff=True
    )
    assert [
        (row.left and row.left.version, row.right and row.right.version) for row in result.items
    ] == [(1, 2)]
    assert "-one" in (result.items[0].diff or "")
    other = await compare(acme, f"template:sales/{NOTE}", "template:sales/SOUL.md")
    assert [str(row.status) for row in other.items] == ["changed"]
    with pytest.raises(NotFound):
        await compare(acme, f"template:sales/{NOTE}@v9", "defaults")


async def test_an_agent_now_and_then(acme: OverlayTenant) -> None:
    then = format_timestamp(acme.ports.clock.now())
    advance_clock(acme.ports, 60_000)
    await acme.write(acme.sales, SOUL, b"calm\n")
    await acme.write(await acme.agent_stack(), NOTE, b"new\n")
    result = await compare(acme, f"agent:marco@{then}", "agent:marco@now", diff=True)
    assert statuses(result) == {"SOUL.md": "changed", "docs/note.md": "only-right"}
    assert statuses(await compare(acme, "agent:marco", "agent:marco")) == {}


async def test_a_pruned_version_is_unknown_and_never_shown_as_absent(
    acme: OverlayTenant,
) -> None:
    await policies.put(acme.ports, acme.owner, PolicyModel(limits=LimitsModel(max_versions=1)))
    await acme.write(acme.sales, NOTE, b"one\n")
    then = format_timestamp(acme.ports.clock.now())
    advance_clock(acme.ports, 60_000)
    for text in (b"two\n", b"three\n"):
        await acme.write(acme.sales, NOTE, text)
    result = await compare(acme, f"template:sales@{then}", "template:sales", diff=True)
    assert statuses(result) == {"docs/note.md": "unknown"}
    assert result.counts[ComparisonStatus.UNKNOWN] == 1
    [only] = (await compare(acme, f"template:sales/{NOTE}@{then}", "template:sales")).items
    assert only.status is ComparisonStatus.UNKNOWN


async def test_pages_follow_each_other_and_statuses_filter(acme: OverlayTenant) -> None:
    for n in range(5):
        await acme.write(acme.sales, Path(f"docs/{n}.md"), b"text\n")
    only_left = frozenset({ComparisonStatus.ONLY_LEFT})
    options: dict[str, Any] = {"statuses": only_left, "prefix": "docs/", "limit": 2}
    paths: list[str] = []
    after: str | None = ""
    while after is not None:
        page = await compare(acme, "template:sales", "defaults", after=after, **options)
        assert page.counts == {ComparisonStatus.ONLY_LEFT: 5}
        paths += [row.path.text for row in page.items]
        after = page.next
    assert paths == [f"docs/{n}.md" for n in range(5)]


async def test_large_diffs_are_cut_and_end_a_page(
    acme: OverlayTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "MAX_DIFF_CHARS", 100)
    monkeypatch.setattr(comparison, "_MAX_PAGE_CHARS", 150)
    monkeypatch.setattr(comparison, "_MAX_DIFFED_BYTES", 5000)
    for n in range(3):
        await acme.write(acme.sales, Path(f"docs/{n}.md"), b"text\n" * 200)
    await acme.write(acme.sales, Path("docs/9.md"), b"text\n" * 2000)
    page = await compare(acme, "template:sales", "defaults", prefix="docs/", diff=True)
    assert [len(row.diff or "") for row in page.items] == [100, 100]
    assert all(row.diff_truncated for row in page.items)
    rest = await compare(
        acme, "template:sales", "defaults", prefix="docs/", diff=True, after=page.next
    )
    assert [(row.path.text, row.diff) for row in rest.items][-1] == ("docs/9.md", None)


async def test_each_side_needs_permission(acme: OverlayTenant) -> None:
    other_tenant = replace(acme.owner, tenant="globex")
    request = ComparisonRequest("agent:marco", "defaults")
    with pytest.raises(NotFound):
        await comparison.compare(acme.ports, other_tenant, request)
    run = await runs.start(acme.ports, acme.owner, RunRequest(agent="marco"))
    few = replace(acme.owner, permissions=frozenset({Permission.WORKSPACE_READ}))
    with pytest.raises(Forbidden):
        await comparison.compare(acme.ports, few, ComparisonRequest(f"run:{run.id}", "defaults"))
