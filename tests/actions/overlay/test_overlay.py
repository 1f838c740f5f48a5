"""Agents over templates over defaults: resolved files and the effects of changes."""

from __future__ import annotations

from collections.abc import Awaitable

import pytest
from tests.support.overlay_tenant import IDENTITY, NOTICE, RULES, SOUL, USER, OverlayTenant
from tests.support.tenants import add_person, create_tenant

from carrel.actions.accounts import keys, people, tenants
from carrel.actions.accounts.credentials import authenticate
from carrel.actions.accounts.keys import KeySpec
from carrel.actions.agents import agents, templates
from carrel.actions.files import files
from carrel.actions.overlay import bulk_reviews, pin_reviews
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import ClassRuleModel, LimitsModel, PolicyModel
from carrel.actions.runs import runs, snapshots
from carrel.actions.runs.run_request import RunRequest
from carrel.core.access import CredentialKind, Role
from carrel.core.errors import (
    Forbidden,
    NotFound,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.core.identifiers import Digest, Path, digest
from carrel.core.overlay.file_classes import FileClass
from carrel.ports import Ports

pytestmark = pytest.mark.anyio


@pytest.fixture
def ports(anywhere: Ports) -> Ports:
    return anywhere


@pytest.fixture
async def tenant(ports: Ports) -> OverlayTenant:
    _, owner = await create_tenant(ports)
    return await OverlayTenant(ports, owner).open()


async def test_a_live_edit_applies_at_the_next_read_and_a_pinned_one_once_accepted(
    tenant: OverlayTenant,
) -> None:
    assert await tenant.read(SOUL) == b"Marco is brisk"
    assert (await tenant.read(RULES), await tenant.source(RULES)) == (b"be good", "template-pinned")
    await tenant.write(tenant.sales, SOUL, b"{{AGENT_NAME}} is calm")
    assert await tenant.read(SOUL) == b"Marco is calm"

    other = await templates.create(tenant.ports, tenant.owner, "care", "Care")
    await tenant.write(tenant.sales, RULES, b"be better")
    await tenant.write(tenant.sales, RULES, b"be best")
    await agents.patch(tenant.ports, tenant.owner, "marco", {"name": "Polo"})
    await agents.patch(tenant.ports, tenant.owner, "marco", {"template_id": other.id})
    await templates.delete(tenant.ports, tenant.owner, "sales")
    assert await tenant.read(RULES) == b"be good"
    await agents.patch(tenant.ports, tenant.owner, "marco", {"template_id": None})
    assert await tenant.read(RULES) == b"be good"


async def test_an_accept_is_bound_to_the_reviewed_version_and_can_be_rolled_back(
    tenant: OverlayTenant,
) -> None:
    ports, owner = tenant.ports, tenant.owner
    await tenant.write(tenant.sales, RULES, b"be better")
    [status] = [
        review
        for review in await pin_reviews.load_reviews(ports, owner, "marco")
        if review.pin.path == RULES
    ]
    assert (status.pinned, status.latest) == (b"be good", b"be better")
    assert status.pin.update_available
    await tenant.write(tenant.sales, RULES, b"be best")
    with pytest.raises(WorkspaceConflict):
        await pin_reviews.accept(ports, owner, "marco", RULES, digest(b"be better"))
    assert await tenant.read(RULES) == b"be good"

    await tenant.write(await tenant.agent_stack(), RULES, b"mine", accept_template_update=True)
    assert await tenant.source(RULES) == "agent-override-pinned"
    pin = await pin_reviews.accept(ports, owner, "marco", RULES, digest(b"be best"))
    assert not pin.update_available
    assert not pin.overridden
    assert await tenant.read(RULES) == b"be best"
    await pin_reviews.roll_back(ports, owner, "marco", RULES)
    assert await tenant.read(RULES) == b"be good"


async def test_only_owners_and_admins_in_person_review(tenant: OverlayTenant) -> None:
    ports, owner = tenant.ports, tenant.owner
    _, admin = await add_person(ports, owner, "bob", Role.ADMIN)
    _, member = await add_person(ports, owner, "eve")
    machine = await authenticate(
        ports, (await keys.create(ports, owner, KeySpec("ci", CredentialKind.SERVICE))).token
    )
    await tenant.write(tenant.sales, RULES, b"be better")
    reviewed = digest(b"be better")
    for actor in (member, machine):
        with pytest.raises(Forbidden):
            await pin_reviews.accept(ports, actor, "marco", RULES, reviewed)
        with pytest.raises(Forbidden):
            await bulk_reviews.accept_for_all(ports, actor, "sales", RULES, reviewed)
    with pytest.raises(ValidationError):
        await pin_reviews.accept(ports, admin, "marco", SOUL, reviewed)
    assert not (await pin_reviews.accept(ports, admin, "marco", RULES, reviewed)).update_available


async def test_accepting_for_all_gives_an_outcome_per_agent(tenant: OverlayTenant) -> None:
    ports, owner = tenant.ports, tenant.owner
    for n in range(5):
        await tenant.create_agent(f"agent-{n}", f"Agent {n}")
    await tenant.write(tenant.sales, RULES, b"be better")
    await pin_reviews.accept(ports, owner, "agent-0", RULES, digest(b"be better"))
    await tenant.write(
        await tenant.agent_stack("agent-1"), RULES, b"mine", accept_template_update=True
    )
    results = await bulk_reviews.accept_for_all(ports, owner, "sales", RULES, digest(b"be better"))
    assert [result.problem for result in results] == [None] * 6
    assert [result.changed for result in results].count(False) == 1
    for name in ("marco", *(f"agent-{n}" for n in range(5))):
        assert await tenant.read(RULES, name) == b"be better"
    stale = await bulk_reviews.accept_for_all(
        ports, owner, "sales", RULES, Digest("sha256:" + "0" * 64)
    )
    assert all(isinstance(result.problem, WorkspaceConflict) for result in stale)


async def test_members_and_agents_write_only_the_files_they_may(tenant: OverlayTenant) -> None:
    ports, owner, own = tenant.ports, tenant.owner, await tenant.agent_stack()
    _, member = await add_person(ports, owner, "eve")
    spec = KeySpec("marco", CredentialKind.AGENT, agent=tenant.agent.id)
    marco = await authenticate(ports, (await keys.create(ports, owner, spec)).token)
    with pytest.raises(Forbidden):
        await tenant.write(own, SOUL, b"x", member)
    for path in ("SOUL.md", "GUARDRAILS.md", "USER.md", "AGENTS.md"):
        with pytest.raises(Forbidden):
            await tenant.write(own, Path(path), b"x", marco, accept_template_update=True)
    for path in ("memory/lessons.md", "notes/2026-11-15.md", "MEMORY.md"):
        await tenant.write(own, Path(path), b"mine", marco)
    await tenant.write(own, IDENTITY, b"# Me\n- **Name:** {{AGENT_NAME}}\n- **Vibe:** calm", marco)
    for text in (b"# Me\n- **Name:** Boss\n", b"# no name at all"):
        with pytest.raises(Forbidden, match="not its name"):
            await tenant.write(own, IDENTITY, text, marco)
    for path in ("guardrails.md", "user.MD", "Platform.md"):
        for stack in (own, tenant.sales, tenant.defaults):
            with pytest.raises(ValidationError, match="collides on some file systems"):
                await tenant.write(stack, Path(path), b"x")
    for guarded in (RULES, USER):
        with pytest.raises(Forbidden):
            await tenant.write(own, guarded, b"x")
        with pytest.raises((Forbidden, NotFound)):
            await files.delete(ports, own, guarded, owner)


async def test_the_humans_file_follows_every_profile_change(tenant: OverlayTenant) -> None:
    ports, owner = tenant.ports, tenant.owner
    bob, _ = await add_person(ports, owner, "bob")
    unpaired = b"- **Human:** \xe2\x80\x94, \xe2\x80\x94, of Acme, served by Marco\n"
    assert await tenant.read(USER) == unpaired
    assert await tenant.source(USER) == "defaults"

    await agents.patch(ports, owner, "marco", {"human_pair_id": bob.id})
    assert await tenant.read(USER) == b"- **Human:** Bob, \xe2\x80\x94, of Acme, served by Marco\n"
    assert await tenant.source(USER) == "agent-override"
    await people.patch(ports, owner, bob.id, {"title": "Cook", "name": "Bobby"})
    assert await tenant.read(USER) == b"- **Human:** Bobby, Cook, of Acme, served by Marco\n"
    await agents.patch(ports, owner, "marco", {"name": "Polo"})
    await tenants.rename(ports, owner, "Globex")
    assert await tenant.read(USER) == b"- **Human:** Bobby, Cook, of Globex, served by Polo\n"
    await people.delete(ports, owner, bob.id)
    expected = unpaired.replace(b"Acme", b"Globex").replace(b"Marco", b"Polo")
    assert await tenant.read(USER) == expected
    with pytest.raises(NotFound):
        await agents.patch(ports, owner, "marco", {"human_pair_id": bob.id})


async def test_the_humans_file_follows_its_template_at_the_next_read(tenant: OverlayTenant) -> None:
    ports, owner = tenant.ports, tenant.owner
    bob, _ = await add_person(ports, owner, "bob")
    await agents.patch(ports, owner, "marco", {"human_pair_id": bob.id})
    for stack, source in ((tenant.defaults, "defaults"), (tenant.sales, "template")):
        await tenant.write(stack, USER, b"{{HUMAN_NAME}}, says the " + source.encode())
        assert await tenant.read(USER) == b"Bob, says the " + source.encode()
        assert await tenant.source(USER) == source
        file = await files.get_file(ports, await tenant.agent_stack(), USER)
        assert file.available_update is None
    await people.patch(ports, owner, bob.id, {"name": "Rob"})
    assert await tenant.read(USER) == b"Rob, says the template"
    assert await tenant.source(USER) == "agent-override"
    await tenant.write(tenant.sales, USER, b"Rob, says the template")
    assert await tenant.source(USER) == "template"
    await people.patch(ports, owner, bob.id, {"title": "Cook"})
    assert await tenant.source(USER) == "agent-override"


async def test_no_change_makes_a_managed_file_exceed_the_limit(tenant: OverlayTenant) -> None:
    ports, owner = tenant.ports, tenant.owner
    bob, _ = await add_person(ports, owner, "bob")
    long, limit = "B" * 200, 1000
    await tenant.write(tenant.sales, USER, b"{{HUMAN_NAME}}{{TENANT_NAME}}{{AGENT_NAME}} " * 5)
    await policies.put(ports, owner, PolicyModel(limits=LimitsModel(max_file_bytes=limit)))

    async def assert_too_large(change: Awaitable[object]) -> None:
        with pytest.raises(WorkspaceTooLarge, match=r"USER\.md of agent marco") as refusal:
            await change
        assert refusal.value.details["maxBytes"] == limit
        assert refusal.value.details["providedBytes"] > limit

    await agents.patch(ports, owner, "marco", {"human_pair_id": bob.id})
    before = await tenant.read(USER)
    await assert_too_large(people.patch(ports, owner, bob.id, {"name": long}))
    await assert_too_large(agents.patch(ports, owner, "marco", {"name": long}))
    await assert_too_large(tenants.rename(ports, owner, long))
    assert await tenant.read(USER) == before
    assert (await people.get(ports, owner, bob.id)).body["name"] == "Bob"

    large = b"- **Name:** Marco\n".ljust(limit, b"x")
    await tenant.write(await tenant.agent_stack(), IDENTITY, large)
    with pytest.raises(WorkspaceTooLarge, match=r"IDENTITY\.md of agent marco"):
        await agents.patch(ports, owner, "marco", {"name": "Leonardo"})
    await agents.patch(ports, owner, "marco", {"name": "Polo"})
    assert await tenant.read(IDENTITY) == large.replace(b"Marco", b"Polo")

    await policies.put(ports, owner, PolicyModel(limits=LimitsModel(max_file_bytes=10)))
    await people.patch(ports, owner, bob.id, {"title": "Cook"})


async def test_a_rename_reaches_identity_and_an_inherited_token_creates_no_override(
    tenant: OverlayTenant,
) -> None:
    ports, owner = tenant.ports, tenant.owner
    await agents.patch(ports, owner, "marco", {"name": "Polo"})
    assert await tenant.read(IDENTITY) == b"# Me\n\n- **Name:** Polo\n"
    assert await tenant.source(IDENTITY) == "defaults"
    await tenant.write(
        await tenant.agent_stack(), IDENTITY, b"# I\r\n- **Name:** Polo\r\n- **Vibe:** calm"
    )
    await agents.patch(ports, owner, "marco", {"name": "Ada"})
    assert await tenant.read(IDENTITY) == b"# I\r\n- **Name:** Ada\r\n- **Vibe:** calm"


async def test_a_rename_changes_the_identity_that_is_read_not_an_earlier_pin(
    tenant: OverlayTenant,
) -> None:
    ports, owner = tenant.ports, tenant.owner
    await tenant.write(tenant.sales, IDENTITY, b"- Name: Polo\n")
    pinning = PolicyModel(classes=(ClassRuleModel("IDENTITY.md", FileClass.PINNED),))
    await policies.put(ports, owner, pinning, confirm=True)
    await policies.put(ports, owner, PolicyModel(), "it is only a name")
    await tenant.write(tenant.sales, IDENTITY, b"- Name: {{AGENT_NAME}}\n- Vibe: new\n")
    await agents.patch(ports, owner, "marco", {"name": "Ada"})
    assert await tenant.source(IDENTITY) == "template"
    assert await tenant.read(IDENTITY) == b"- Name: Ada\n- Vibe: new\n"


async def test_a_rename_back_keeps_the_override_until_it_equals_the_template_again(
    tenant: OverlayTenant,
) -> None:
    ports, owner = tenant.ports, tenant.owner
    await tenant.write(tenant.sales, IDENTITY, b"- Name: Polo\n")
    await agents.patch(ports, owner, "marco", {"name": "Ada"})
    assert await tenant.source(IDENTITY) == "agent-override"
    await tenant.write(tenant.sales, IDENTITY, b"- Name: Zoe\n")
    await agents.patch(ports, owner, "marco", {"name": "Polo"})
    assert await tenant.read(IDENTITY) == b"- Name: Polo\n"
    assert await tenant.source(IDENTITY) == "agent-override"
    file = await files.get_file(ports, await tenant.agent_stack(), IDENTITY)
    assert file.available_update is not None
    await agents.patch(ports, owner, "marco", {"name": "Zoe"})
    assert (await tenant.read(IDENTITY), await tenant.source(IDENTITY)) == (
        b"- Name: Zoe\n",
        "template",
    )


async def test_a_rename_overrides_no_pinned_identity_that_awaits_its_first_review(
    tenant: OverlayTenant,
) -> None:
    ports, owner = tenant.ports, tenant.owner
    await files.delete(ports, tenant.defaults, IDENTITY, owner)
    pinning = PolicyModel(classes=(ClassRuleModel("IDENTITY.md", FileClass.PINNED),))
    await policies.put(ports, owner, pinning)
    await tenant.write(tenant.sales, IDENTITY, b"- Name: Polo\n")
    await agents.patch(ports, owner, "marco", {"name": "Ada"})
    with pytest.raises(NotFound):
        await tenant.read(IDENTITY)


async def test_pinning_a_file_holds_it_for_every_agent_and_loosening_needs_a_reason(
    tenant: OverlayTenant,
) -> None:
    ports, owner = tenant.ports, tenant.owner
    pinning = PolicyModel(classes=(ClassRuleModel("SOUL.md", FileClass.PINNED),))
    await tenant.create_agent("polo", "Polo")
    await tenant.write(await tenant.agent_stack("polo"), SOUL, b"polo's own")
    await policies.put(ports, owner, pinning, confirm=True)
    await tenant.write(tenant.sales, SOUL, b"changed")
    assert await tenant.read(SOUL) == b"{{AGENT_NAME}} is brisk"
    assert await tenant.read(SOUL, "polo") == b"polo's own"
    await files.delete(ports, await tenant.agent_stack("polo"), SOUL, owner)
    assert await tenant.read(SOUL, "polo") == b"{{AGENT_NAME}} is brisk"
    with pytest.raises(ValidationError, match="reason"):
        await policies.put(ports, owner, PolicyModel())
    await policies.put(ports, owner, PolicyModel(), "it is only a voice")
    assert (await tenant.read(SOUL), await tenant.source(SOUL)) == (b"changed", "template")
    await tenant.write(tenant.sales, SOUL, b"changed again")
    await policies.put(ports, owner, pinning)
    await tenant.write(tenant.sales, SOUL, b"and again")
    assert await tenant.read(SOUL) == await tenant.read(SOUL, "polo") == b"changed again"


async def test_a_pin_does_not_return_after_its_file_was_deleted(tenant: OverlayTenant) -> None:
    ports, owner = tenant.ports, tenant.owner
    pinning = PolicyModel(classes=(ClassRuleModel("NOTICE.md", FileClass.PINNED),))
    await tenant.write(tenant.sales, NOTICE, b"mind the gap")
    await policies.put(ports, owner, pinning)
    await tenant.create_agent("polo", "Polo")
    await policies.put(ports, owner, PolicyModel(), "it is only a notice")
    await files.delete(ports, tenant.sales, NOTICE, owner)
    for policy in (PolicyModel(), pinning):
        await policies.put(ports, owner, policy)
        for name in ("marco", "polo"):
            with pytest.raises(NotFound):
                await tenant.read(NOTICE, name)
    assert await tenant.read(RULES, "polo") == b"be good"
    await tenant.write(tenant.sales, NOTICE, b"mind the step")
    [notice] = [
        review
        for review in await pin_reviews.load_reviews(ports, owner, "polo")
        if review.pin.path == NOTICE
    ]
    assert (notice.pinned, notice.latest) == (None, b"mind the step")


async def test_a_new_agent_pins_the_default_of_a_guardrail_deleted_in_its_template(
    tenant: OverlayTenant,
) -> None:
    await tenant.write(tenant.sales, RULES, b"be bold")
    await files.delete(tenant.ports, tenant.sales, RULES, tenant.owner)
    await tenant.create_agent("polo", "Polo")
    assert await tenant.read(RULES, "polo") == b"be good"


async def test_a_pinned_identity_is_renamed_by_an_override_that_can_be_reverted(
    tenant: OverlayTenant,
) -> None:
    ports, owner = tenant.ports, tenant.owner
    await tenant.write(tenant.sales, IDENTITY, b"- **Name:** {{AGENT_NAME}}\n- **Vibe:** calm\n")
    pinning = PolicyModel(classes=(ClassRuleModel("IDENTITY.md", FileClass.PINNED),))
    await policies.put(ports, owner, pinning, confirm=True)
    await tenant.create_agent("polo", "Polo")
    for name in ("marco", "polo"):
        await agents.patch(ports, owner, name, {"name": "Ada"})
        assert await tenant.read(IDENTITY, name) == b"- **Name:** Ada\n- **Vibe:** calm\n"
        assert await tenant.source(IDENTITY, name) == "agent-override-pinned"
        await files.delete(ports, await tenant.agent_stack(name), IDENTITY, owner)
        assert await tenant.source(IDENTITY, name) == "template-pinned"


async def test_no_caller_sets_a_reserved_variable_of_a_run(tenant: OverlayTenant) -> None:
    ports, owner = tenant.ports, tenant.owner
    for name in ("agent_name", "human_name", "class:000"):
        request = RunRequest(agent="marco", variables={name: "live GUARDRAILS.md"})
        with pytest.raises(ValidationError, match=name):
            await runs.start(ports, owner, request)
    run = await runs.start(ports, owner, RunRequest(agent="marco", variables={"topic": "x"}))
    assert run.variables["topic"] == "x"


async def test_a_run_reads_the_same_after_everything_has_changed(tenant: OverlayTenant) -> None:
    ports, owner = tenant.ports, tenant.owner
    run = await runs.start(ports, owner, RunRequest(agent="marco"))
    loaded = {
        path: (await snapshots.read_file(ports, run, path))
        for path in (SOUL, RULES, USER, IDENTITY)
    }
    before = {path: files.render_content(*content) for path, content in loaded.items()}
    await agents.patch(ports, owner, "marco", {"name": "Polo", "template_id": None})
    await templates.delete(ports, owner, "sales")
    await policies.put(
        ports, owner, PolicyModel(classes=(ClassRuleModel("SOUL.md", FileClass.PINNED),))
    )
    replayed = await runs.start(ports, owner, RunRequest(replay_of=run.id))
    for item in (run, replayed):
        again = {
            path: files.render_content(*(await snapshots.read_file(ports, item, path)))
            for path in loaded
        }
        assert again == before
    assert before[SOUL] == b"Marco is brisk"
