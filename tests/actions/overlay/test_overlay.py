"""Agents over templates over defaults: what they are shown, and what follows from a change."""

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
from carrel.actions.overlay import pins
from carrel.actions.policy import policies
from carrel.actions.policy.policies import ClassRuleModel, LimitsModel, PolicyModel
from carrel.actions.runs import runs, snapshots
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
async def office(ports: Ports) -> OverlayTenant:
    _, owner = await create_tenant(ports)
    return await OverlayTenant(ports, owner).open()


async def test_a_live_edit_is_seen_by_the_next_read_and_a_pinned_one_only_once_accepted(
    office: OverlayTenant,
) -> None:
    assert await office.read(SOUL) == b"Marco is brisk"
    assert (await office.read(RULES), await office.source(RULES)) == (b"be good", "template-pinned")
    await office.write(office.sales, SOUL, b"{{AGENT_NAME}} is calm")
    assert await office.read(SOUL) == b"Marco is calm"

    other = await templates.create(office.ports, office.owner, "care", "Care")
    await office.write(office.sales, RULES, b"be better")
    await office.write(office.sales, RULES, b"be best")
    await agents.patch(office.ports, office.owner, "marco", {"name": "Polo"})
    await agents.patch(office.ports, office.owner, "marco", {"templateId": other.id})
    await templates.delete(office.ports, office.owner, "sales")
    assert await office.read(RULES) == b"be good"
    await agents.patch(office.ports, office.owner, "marco", {"templateId": None})
    assert await office.read(RULES) == b"be good"


async def test_accept_is_bound_to_what_was_reviewed_and_can_be_taken_back(
    office: OverlayTenant,
) -> None:
    ports, owner = office.ports, office.owner
    await office.write(office.sales, RULES, b"be better")
    [status] = [
        one for one in await pins.load_reviews(ports, owner, "marco") if one.pin.path == RULES
    ]
    assert (status.pinned, status.latest) == (b"be good", b"be better")
    assert status.pin.update_available
    await office.write(office.sales, RULES, b"be best")
    with pytest.raises(WorkspaceConflict):
        await pins.accept(ports, owner, "marco", RULES, digest(b"be better"))
    assert await office.read(RULES) == b"be good"

    await office.write(await office.agent_stack(), RULES, b"mine", accept_template_update=True)
    assert await office.source(RULES) == "agent-override-pinned"
    pin = await pins.accept(ports, owner, "marco", RULES, digest(b"be best"))
    assert not pin.update_available
    assert not pin.overridden
    assert await office.read(RULES) == b"be best"
    await pins.roll_back(ports, owner, "marco", RULES)
    assert await office.read(RULES) == b"be good"


async def test_reviewing_is_for_owners_and_admins_in_person(office: OverlayTenant) -> None:
    ports, owner = office.ports, office.owner
    _, admin = await add_person(ports, owner, "bob", Role.ADMIN)
    _, member = await add_person(ports, owner, "eve")
    machine = await authenticate(
        ports, (await keys.create(ports, owner, KeySpec("ci", CredentialKind.SERVICE))).token
    )
    await office.write(office.sales, RULES, b"be better")
    reviewed = digest(b"be better")
    for actor in (member, machine):
        with pytest.raises(Forbidden):
            await pins.accept(ports, actor, "marco", RULES, reviewed)
        with pytest.raises(Forbidden):
            await pins.accept_for_all(ports, actor, "sales", RULES, reviewed)
    with pytest.raises(ValidationError):
        await pins.accept(ports, admin, "marco", SOUL, reviewed)
    assert not (await pins.accept(ports, admin, "marco", RULES, reviewed)).update_available


async def test_accepting_for_all_gives_one_outcome_an_agent(office: OverlayTenant) -> None:
    ports, owner = office.ports, office.owner
    for n in range(5):
        await office.create_agent(f"agent-{n}", f"Agent {n}")
    await office.write(office.sales, RULES, b"be better")
    await pins.accept(ports, owner, "agent-0", RULES, digest(b"be better"))
    await office.write(
        await office.agent_stack("agent-1"), RULES, b"mine", accept_template_update=True
    )
    results = await pins.accept_for_all(ports, owner, "sales", RULES, digest(b"be better"))
    assert [result.problem for result in results] == [None] * 6
    assert [result.changed for result in results].count(False) == 1
    for name in ("marco", *(f"agent-{n}" for n in range(5))):
        assert await office.read(RULES, name) == b"be better"
    stale = await pins.accept_for_all(ports, owner, "sales", RULES, Digest("sha256:" + "0" * 64))
    assert all(isinstance(result.problem, WorkspaceConflict) for result in stale)


async def test_members_and_agents_write_only_what_they_may(office: OverlayTenant) -> None:
    ports, owner, own = office.ports, office.owner, await office.agent_stack()
    _, member = await add_person(ports, owner, "eve")
    holding = KeySpec("marco", CredentialKind.AGENT, agent=office.agent.id)
    marco = await authenticate(ports, (await keys.create(ports, owner, holding)).token)
    with pytest.raises(Forbidden):
        await office.write(own, SOUL, b"x", member)
    for path in ("SOUL.md", "GUARDRAILS.md", "USER.md", "AGENTS.md"):
        with pytest.raises(Forbidden):
            await office.write(own, Path(path), b"x", marco, accept_template_update=True)
    for path in ("memory/lessons.md", "notes/2026-11-15.md", "MEMORY.md"):
        await office.write(own, Path(path), b"mine", marco)
    await office.write(own, IDENTITY, b"# Me\n- **Name:** {{AGENT_NAME}}\n- **Vibe:** calm", marco)
    for text in (b"# Me\n- **Name:** Boss\n", b"# no name at all"):
        with pytest.raises(Forbidden, match="not its name"):
            await office.write(own, IDENTITY, text, marco)
    for path in ("guardrails.md", "user.MD", "Platform.md"):
        for stack in (own, office.sales, office.defaults):
            with pytest.raises(ValidationError, match="collides on some file systems"):
                await office.write(stack, Path(path), b"x")
    for guarded in (RULES, USER):
        with pytest.raises(Forbidden):
            await office.write(own, guarded, b"x")
        with pytest.raises((Forbidden, NotFound)):
            await files.delete(ports, own, guarded, owner)


async def test_the_humans_file_follows_every_fact_it_tells(office: OverlayTenant) -> None:
    ports, owner = office.ports, office.owner
    bob, _ = await add_person(ports, owner, "bob")
    unpaired = b"- **Human:** \xe2\x80\x94, \xe2\x80\x94, of Acme, served by Marco\n"
    assert await office.read(USER) == unpaired
    assert await office.source(USER) == "defaults"

    await agents.patch(ports, owner, "marco", {"humanPairId": bob.id})
    assert await office.read(USER) == b"- **Human:** Bob, \xe2\x80\x94, of Acme, served by Marco\n"
    assert await office.source(USER) == "agent-override"
    await people.patch(ports, owner, bob.id, {"title": "Cook", "name": "Bobby"})
    assert await office.read(USER) == b"- **Human:** Bobby, Cook, of Acme, served by Marco\n"
    await agents.patch(ports, owner, "marco", {"name": "Polo"})
    await tenants.rename(ports, owner, "Globex")
    assert await office.read(USER) == b"- **Human:** Bobby, Cook, of Globex, served by Polo\n"
    await people.delete(ports, owner, bob.id)
    gone = unpaired.replace(b"Acme", b"Globex").replace(b"Marco", b"Polo")
    assert await office.read(USER) == gone
    with pytest.raises(NotFound):
        await agents.patch(ports, owner, "marco", {"humanPairId": bob.id})


async def test_the_humans_file_follows_its_template_at_the_next_read(office: OverlayTenant) -> None:
    ports, owner = office.ports, office.owner
    bob, _ = await add_person(ports, owner, "bob")
    await agents.patch(ports, owner, "marco", {"humanPairId": bob.id})
    for stack, source in ((office.defaults, "defaults"), (office.sales, "template")):
        await office.write(stack, USER, b"{{HUMAN_NAME}}, says the " + source.encode())
        assert await office.read(USER) == b"Bob, says the " + source.encode()
        assert await office.source(USER) == source
        shown = await files.get_file(ports, await office.agent_stack(), USER)
        assert shown.available_update is None
    await people.patch(ports, owner, bob.id, {"name": "Rob"})
    assert await office.read(USER) == b"Rob, says the template"
    assert await office.source(USER) == "agent-override"
    await office.write(office.sales, USER, b"Rob, says the template")
    assert await office.source(USER) == "template"
    await people.patch(ports, owner, bob.id, {"title": "Cook"})
    assert await office.source(USER) == "agent-override"


async def test_no_change_makes_a_file_larger_than_a_file_may_be(office: OverlayTenant) -> None:
    ports, owner = office.ports, office.owner
    bob, _ = await add_person(ports, owner, "bob")
    long, most = "B" * 200, 1000
    await office.write(office.sales, USER, b"{{HUMAN_NAME}}{{TENANT_NAME}}{{AGENT_NAME}} " * 5)
    await policies.put(ports, owner, PolicyModel(limits=LimitsModel(max_file_bytes=most)))

    async def refused(change: Awaitable[object]) -> None:
        with pytest.raises(WorkspaceTooLarge, match=r"USER\.md of agent marco") as told:
            await change
        assert told.value.details["maxBytes"] == most
        assert told.value.details["providedBytes"] > most

    await agents.patch(ports, owner, "marco", {"humanPairId": bob.id})
    before = await office.read(USER)
    await refused(people.patch(ports, owner, bob.id, {"name": long}))
    await refused(agents.patch(ports, owner, "marco", {"name": long}))
    await refused(tenants.rename(ports, owner, long))
    assert await office.read(USER) == before
    assert (await people.get(ports, owner, bob.id)).body["name"] == "Bob"

    large = b"- **Name:** Marco\n".ljust(most, b"x")
    await office.write(await office.agent_stack(), IDENTITY, large)
    with pytest.raises(WorkspaceTooLarge, match=r"IDENTITY\.md of agent marco"):
        await agents.patch(ports, owner, "marco", {"name": "Leonardo"})
    await agents.patch(ports, owner, "marco", {"name": "Polo"})
    assert await office.read(IDENTITY) == large.replace(b"Marco", b"Polo")

    await policies.put(ports, owner, PolicyModel(limits=LimitsModel(max_file_bytes=10)))
    await people.patch(ports, owner, bob.id, {"title": "Cook"})


async def test_a_rename_reaches_identity_and_an_inherited_token_makes_no_override(
    office: OverlayTenant,
) -> None:
    ports, owner = office.ports, office.owner
    await agents.patch(ports, owner, "marco", {"name": "Polo"})
    assert await office.read(IDENTITY) == b"# Me\n\n- **Name:** Polo\n"
    assert await office.source(IDENTITY) == "defaults"
    await office.write(
        await office.agent_stack(), IDENTITY, b"# I\r\n- **Name:** Polo\r\n- **Vibe:** calm"
    )
    await agents.patch(ports, owner, "marco", {"name": "Ada"})
    assert await office.read(IDENTITY) == b"# I\r\n- **Name:** Ada\r\n- **Vibe:** calm"


async def test_making_a_file_pinned_holds_it_for_everybody_and_loosening_needs_a_reason(
    office: OverlayTenant,
) -> None:
    ports, owner = office.ports, office.owner
    tight = PolicyModel(classes=(ClassRuleModel("SOUL.md", FileClass.PINNED),))
    await office.create_agent("polo", "Polo")
    await office.write(await office.agent_stack("polo"), SOUL, b"polo's own")
    await policies.put(ports, owner, tight)
    await office.write(office.sales, SOUL, b"changed")
    assert await office.read(SOUL) == b"{{AGENT_NAME}} is brisk"
    assert await office.read(SOUL, "polo") == b"polo's own"
    await files.delete(ports, await office.agent_stack("polo"), SOUL, owner)
    assert await office.read(SOUL, "polo") == b"{{AGENT_NAME}} is brisk"
    with pytest.raises(ValidationError, match="reason"):
        await policies.put(ports, owner, PolicyModel())
    await policies.put(ports, owner, PolicyModel(), "it is only a voice")
    assert (await office.read(SOUL), await office.source(SOUL)) == (b"changed", "template")
    await office.write(office.sales, SOUL, b"changed again")
    await policies.put(ports, owner, tight)
    await office.write(office.sales, SOUL, b"and again")
    assert await office.read(SOUL) == await office.read(SOUL, "polo") == b"changed again"


async def test_a_pin_does_not_come_back_when_its_file_has_gone_meanwhile(
    office: OverlayTenant,
) -> None:
    ports, owner = office.ports, office.owner
    tight = PolicyModel(classes=(ClassRuleModel("NOTICE.md", FileClass.PINNED),))
    await office.write(office.sales, NOTICE, b"mind the gap")
    await policies.put(ports, owner, tight)
    await office.create_agent("polo", "Polo")
    await policies.put(ports, owner, PolicyModel(), "it is only a notice")
    await files.delete(ports, office.sales, NOTICE, owner)
    for policy in (PolicyModel(), tight):
        await policies.put(ports, owner, policy)
        for name in ("marco", "polo"):
            with pytest.raises(NotFound):
                await office.read(NOTICE, name)
    assert await office.read(RULES, "polo") == b"be good"
    await office.write(office.sales, NOTICE, b"mind the step")
    [notice] = [
        one for one in await pins.load_reviews(ports, owner, "polo") if one.pin.path == NOTICE
    ]
    assert (notice.pinned, notice.latest) == (None, b"mind the step")


async def test_an_agent_is_made_over_a_guardrail_that_its_template_once_had(
    office: OverlayTenant,
) -> None:
    await office.write(office.sales, RULES, b"be bold")
    await files.delete(office.ports, office.sales, RULES, office.owner)
    await office.create_agent("polo", "Polo")
    assert await office.read(RULES, "polo") == b"be good"


async def test_a_pinned_identity_is_renamed_over_its_pin_and_can_go_back(
    office: OverlayTenant,
) -> None:
    ports, owner = office.ports, office.owner
    await office.write(office.sales, IDENTITY, b"- **Name:** {{AGENT_NAME}}\n- **Vibe:** calm\n")
    await policies.put(
        ports, owner, PolicyModel(classes=(ClassRuleModel("IDENTITY.md", FileClass.PINNED),))
    )
    await office.create_agent("polo", "Polo")
    for name in ("marco", "polo"):
        await agents.patch(ports, owner, name, {"name": "Ada"})
        assert await office.read(IDENTITY, name) == b"- **Name:** Ada\n- **Vibe:** calm\n"
        assert await office.source(IDENTITY, name) == "agent-override-pinned"
        await files.delete(ports, await office.agent_stack(name), IDENTITY, owner)
        assert await office.source(IDENTITY, name) == "template-pinned"


async def test_no_caller_fills_in_a_placeholder_or_frees_a_file_of_a_run(
    office: OverlayTenant,
) -> None:
    ports, owner = office.ports, office.owner
    for name in ("agent_name", "human_name", "class:000"):
        asked = runs.RunRequest(agent="marco", variables={name: "live GUARDRAILS.md"})
        with pytest.raises(ValidationError, match=name):
            await runs.start(ports, owner, asked)
    run = await runs.start(ports, owner, runs.RunRequest(agent="marco", variables={"topic": "x"}))
    assert run.variables["topic"] == "x"


async def test_a_run_reads_the_same_after_everything_has_changed(office: OverlayTenant) -> None:
    ports, owner = office.ports, office.owner
    run = await runs.start(ports, owner, runs.RunRequest(agent="marco"))
    seen = {
        path: (await snapshots.read_file(ports, run, path))
        for path in (SOUL, RULES, USER, IDENTITY)
    }
    before = {path: files.render_content(*found) for path, found in seen.items()}
    await agents.patch(ports, owner, "marco", {"name": "Polo", "templateId": None})
    await templates.delete(ports, owner, "sales")
    await policies.put(
        ports, owner, PolicyModel(classes=(ClassRuleModel("SOUL.md", FileClass.PINNED),))
    )
    await agents.delete(ports, owner, "marco")
    replayed = await runs.start(ports, owner, runs.RunRequest(replay_of=run.id))
    for one in (run, replayed):
        again = {
            path: files.render_content(*(await snapshots.read_file(ports, one, path)))
            for path in seen
        }
        assert again == before
    assert before[SOUL] == b"Marco is brisk"
