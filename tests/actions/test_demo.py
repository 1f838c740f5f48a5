"""The demo data covers every screen, is created once and passes the store check."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.support.empty_stores import Stores
from tests.support.stores import ports_over

from carrel.actions import demo, inbox, items
from carrel.actions.accounts import audit, secrets, tenants
from carrel.actions.agents import overview, templates
from carrel.actions.events import webhooks
from carrel.actions.maintenance.integrity import check_secrets, check_store
from carrel.actions.memory import dreams, memories
from carrel.actions.overlay import pin_reviews, stacks
from carrel.actions.runs import runs
from carrel.actions.sandbox import sandboxes, workspaces
from carrel.actions.sessions import sessions
from carrel.core.access import Actor, Role
from carrel.core.memory.dream_records import DreamStatus
from carrel.core.runs import RunStatus
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


async def create_demo(ports: Ports) -> Actor:
    await tenants.bootstrap(ports)
    owner = await tenants.get_first_owner(ports, tenants.DEFAULT_TENANT_SLUG)
    assert await demo.create_demo(ports, owner)
    assert not await demo.create_demo(ports, owner)
    return Actor(owner.tenant, owner.id, role=Role.OWNER, person=owner.id)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_the_store_check_finds_no_problem_in_the_demo(stores: Stores, kind: str) -> None:
    async with stores.open(kind) as backend:
        ports = ports_over(backend.store)
        await create_demo(ports)
        objects, now = backend.objects, ports.clock.now()
        findings = await check_store(backend.store.maintenance, objects, now=now, grace=0)
        await check_secrets(ports, findings)
        assert findings.items == []


@pytest.fixture
async def mara(anywhere: Ports) -> Actor:
    return await create_demo(anywhere)


async def test_the_demo_has_data_of_every_kind(anywhere: Ports, mara: Actor) -> None:
    ports = anywhere
    assert len((await templates.list_templates(ports, mara)).items) == 3
    all_agents = (await overview.list_agents(ports, mara)).items
    assert len(all_agents) >= 12
    pending = await inbox.load_inbox(ports, mara)
    assert pending.counts.pins >= 4
    assert (pending.counts.approvals, pending.counts.dreams) == (1, 1)
    assert (await inbox.load_inbox(ports, mara, mine=True)).counts.pins == 0
    assert sum(await overview.count_overrides(ports, mara, all_agents)) >= 3
    all_runs = (await runs.list_runs(ports, mara)).items
    assert set(Counter(run.status for run in all_runs)) == set(RunStatus) - {RunStatus.ABANDONED}
    assert any(run.parent for run in all_runs) and any(run.replay_of for run in all_runs)
    assert (await sessions.search(ports, mara, "iris", "charged twice"))[0].entry.sequence == 1
    all_dreams = await dreams.list_dreams(ports, mara, "otto")
    assert (
        all_dreams[0].status is DreamStatus.DONE
        and all_dreams[0].promoted
        and all_dreams[0].reasons
    )
    assert len((await memories.list_memories(ports, mara, "otto")).items) == 5
    for agent in ("iris", "page", "scout", "quill"):
        assert (await items.list_items(ports, mara, agent)).items
    assert len(await sandboxes.list_sandboxes(ports, mara)) == 1
    for workspace in await workspaces.list_workspaces(ports, mara):
        [tree] = await ports.trees.read(await stacks.workspace_stack(ports, mara, workspace.id))
        assert tree.heads
    assert (await secrets.list_secrets(ports, mara)).items
    [hook] = (await webhooks.list_webhooks(ports, mara)).items
    assert not hook.body["active"]
    assert (await audit.list_audit_entries(ports, mara)).items


async def test_an_update_awaiting_review_has_a_reason(anywhere: Ports, mara: Actor) -> None:
    [rules] = [
        review.pin
        for review in await pin_reviews.load_reviews(anywhere, mara, "otto")
        if review.pin.path.text == "GUARDRAILS.md"
    ]
    assert rules.overridden and rules.update_available
    assert rules.latest_from and rules.latest_head
    requested = (rules.latest_from, rules.path, rules.latest_head.version)
    [version] = await anywhere.trees.versions([requested])
    assert version and "review" in version.reason
