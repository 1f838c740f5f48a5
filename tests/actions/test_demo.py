"""Something to look at on every screen, put there once, and sound."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.support.empty_stores import Stores
from tests.support.stores import ports_over

from carrel.actions import demo, inbox, items
from carrel.actions.accounts import audit, secrets, tenants
from carrel.actions.agents import agents, overview, templates
from carrel.actions.events import webhooks
from carrel.actions.maintenance.integrity import check_secrets, check_store
from carrel.actions.memory import dreams, memories
from carrel.actions.overlay import pins, stacks
from carrel.actions.runs import runs
from carrel.actions.sandbox import sandboxes, workspaces
from carrel.actions.sessions import sessions
from carrel.core.access import Actor, Role
from carrel.core.memory.dream_records import DreamStatus as Dreamed
from carrel.core.runs import RunStatus
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


async def furnished(ports: Ports) -> Actor:
    await tenants.bootstrap(ports)
    owner = await tenants.get_first_owner(ports, tenants.DEFAULT_TENANT_SLUG)
    assert await demo.create_demo(ports, owner)
    assert not await demo.create_demo(ports, owner)
    return Actor(owner.tenant, owner.id, role=Role.OWNER, person=owner.id)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_the_doctor_finds_nothing_wrong_with_it(stores: Stores, kind: str) -> None:
    async with stores.open(kind) as shelter:
        ports = ports_over(shelter.store)
        await furnished(ports)
        objects, now = shelter.objects, ports.clock.now()
        findings = await check_store(shelter.store.maintenance, objects, now=now, grace=0)
        await check_secrets(ports, findings)
        assert findings.items == []


@pytest.fixture
async def mara(anywhere: Ports) -> Actor:
    return await furnished(anywhere)


async def test_there_is_something_of_everything_and_it_is_put_there_once(
    anywhere: Ports, mara: Actor
) -> None:
    ports = anywhere
    assert len((await templates.list_templates(ports, mara)).items) == 3
    staff = (await agents.list_agents(ports, mara)).items
    assert len(staff) >= 12
    waiting = await inbox.load_inbox(ports, mara)
    assert waiting.pins.count >= 4
    assert (waiting.approvals.count, waiting.dreams.count) == (1, 1)
    assert (await inbox.load_inbox(ports, mara, mine=True)).pins.count == 0
    assert sum(await overview.count_overrides(ports, mara, staff)) >= 3
    found = (await runs.list_runs(ports, mara)).items
    assert set(Counter(run.status for run in found)) == set(RunStatus)
    assert any(run.parent for run in found) and any(run.replay_of for run in found)
    assert (await sessions.search(ports, mara, "iris", "charged twice"))[0].entry.sequence == 1
    told = await dreams.list_dreams(ports, mara, "otto")
    assert told[0].status is Dreamed.DONE and told[0].promoted and told[0].reasons
    assert len((await memories.list_memories(ports, mara, "otto")).items) == 5
    for agent in ("iris", "page", "scout", "quill"):
        assert (await items.list_items(ports, mara, agent)).items
    assert len(await sandboxes.list_sandboxes(ports, mara)) == 1
    for one in await workspaces.list_workspaces(ports, mara):
        [tree] = await ports.trees.read(await stacks.workspace_stack(ports, mara, one.id))
        assert tree.heads
    assert (await secrets.list_secrets(ports, mara)).items
    [hook] = (await webhooks.list_webhooks(ports, mara)).items
    assert not hook.body["active"]
    assert (await audit.list_audit_entries(ports, mara)).items


async def test_what_waits_tells_why(anywhere: Ports, mara: Actor) -> None:
    [rules] = [
        one.pin
        for one in await pins.load_reviews(anywhere, mara, "otto")
        if one.pin.path.text == "GUARDRAILS.md"
    ]
    assert rules.overridden and rules.update_available
    assert rules.latest_from and rules.latest_head
    ask = (rules.latest_from, rules.path, rules.latest_head.version)
    [told] = await anywhere.trees.versions([ask])
    assert told and "review" in told.reason
