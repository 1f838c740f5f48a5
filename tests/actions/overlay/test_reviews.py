"""Pins through reviews, overrides and policy changes, and who may change them."""

from __future__ import annotations

import pytest
from tests.support.overlay_tenant import IDENTITY, NOTICE, RULES, SOUL, USER, OverlayTenant
from tests.support.tenants import add_person, create_tenant

from carrel.actions.accounts import audit, keys, people
from carrel.actions.accounts.credentials import authenticate
from carrel.actions.accounts.keys import KeySpec
from carrel.actions.agents import agents, templates
from carrel.actions.files import files, history
from carrel.actions.overlay import bulk_reviews, pin_reviews
from carrel.actions.policy import policies
from carrel.actions.policy.policy_models import ClassRuleModel, LimitsModel, PolicyModel
from carrel.core.access import Actor, CredentialKind
from carrel.core.agents.agent import agent_from_record
from carrel.core.errors import Forbidden, NotFound, ValidationError
from carrel.core.identifiers import Path, digest
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


async def test_explain_states_why_a_pinned_or_managed_file_has_its_content(
    tenant: OverlayTenant,
) -> None:
    ports, own = tenant.ports, await tenant.agent_stack()

    async def reason(path: Path) -> str:
        return (await history.explain(ports, own, path)).reason

    assert await reason(SOUL) == "template wins, since agent has no such file"
    assert await reason(RULES) == "pinned: the reviewed version"
    layers = (await history.explain(ports, own, RULES)).layers
    assert [layer.scope.kind for layer in layers] == ["agent", "pins", "template", "defaults"]
    await tenant.write(tenant.sales, RULES, b"be better")
    assert "an update awaits review" in await reason(RULES)
    await tenant.write(own, RULES, b"mine", accept_template_update=True)
    assert "overridden for this agent; an update awaits review" in await reason(RULES)
    assert await reason(USER) == "managed; without a paired human, defaults applies"
    ann, _ = await add_person(ports, tenant.owner, "ann")
    await agents.patch(ports, tenant.owner, "marco", {"human_pair_id": ann.id})
    assert await reason(USER) == "managed: written from the profile of the paired human"
    await policies.put(
        ports, tenant.owner, PolicyModel(classes=(ClassRuleModel("NOTICE.md", FileClass.PINNED),))
    )
    assert await reason(NOTICE) == "no layer has it"
    await tenant.write(tenant.sales, NOTICE, b"mind the gap")
    assert await reason(NOTICE) == "pinned; awaits its first review"


async def test_the_audit_has_every_review_and_override(tenant: OverlayTenant) -> None:
    ports, owner, own = tenant.ports, tenant.owner, await tenant.agent_stack()
    await tenant.write(own, SOUL, b"mine")
    before = (await audit.list_audit_entries(ports, owner)).items
    await tenant.write(tenant.sales, RULES, b"be better")
    await tenant.write(own, RULES, b"mine", accept_template_update=True)
    await files.delete(ports, own, RULES, owner)
    better, good = digest(b"be better"), digest(b"be good")
    await pin_reviews.accept(ports, owner, "marco", RULES, better)
    await pin_reviews.roll_back(ports, owner, "marco", RULES)
    await bulk_reviews.accept_for_all(ports, owner, "sales", RULES, better)

    entries = [
        entry
        for entry in (await audit.list_audit_entries(ports, owner)).items
        if entry not in before and entry.subjects[0].startswith("agent/")
    ]

    assert [entry.reason for entry in reversed(entries)] == [
        "put GUARDRAILS.md",
        "delete GUARDRAILS.md",
        f"accept GUARDRAILS.md, from {good} to {better}",
        f"roll GUARDRAILS.md back to its version 3, from {better} to {good}",
        f"accept GUARDRAILS.md, from {good} to {better}, for all",
    ]
    agent = f"agent/{tenant.agent.id}"
    assert {entry.subjects for entry in entries} == {(agent, f"file/{agent}/GUARDRAILS.md")}
    assert {entry.author for entry in entries} == {owner.name}


async def agent_key(tenant: OverlayTenant) -> Actor:
    spec = KeySpec("marco's", CredentialKind.AGENT, agent=tenant.agent.id)
    return await authenticate(
        tenant.ports, (await keys.create(tenant.ports, tenant.owner, spec)).token
    )


async def test_an_agent_cannot_change_its_name_by_an_edit(tenant: OverlayTenant) -> None:
    marco, own = await agent_key(tenant), await tenant.agent_stack()
    await tenant.write(tenant.sales, IDENTITY, b"- **Name:** Fixed\n")
    await agents.patch(tenant.ports, tenant.owner, "marco", {"name": "Three"})
    assert await tenant.read(IDENTITY) == b"- **Name:** Three\n"
    hidden = b"<!--\n- **Name:** Three\n-->\n- **Name:** Evil\n"
    for text in (b"- **Name:** Evil\n", hidden, b"- **Name:** Three\n* name: Evil\n", b"", b"\xff"):
        with pytest.raises(Forbidden):
            await tenant.write(own, IDENTITY, text, marco)
    with pytest.raises(Forbidden):
        await files.delete(tenant.ports, own, IDENTITY, marco)
    await tenant.write(own, IDENTITY, b"- **Name:** Three\n- **Vibe:** calm\n", marco)
    await tenant.write(tenant.sales, IDENTITY, b"# I\n- **Name:** {{AGENT_NAME}}\n")
    await files.delete(tenant.ports, own, IDENTITY, marco)
    assert await tenant.read(IDENTITY) == b"# I\n- **Name:** Three\n"


async def test_no_policy_lets_an_agent_override_its_own_guardrails(tenant: OverlayTenant) -> None:
    marco, own = await agent_key(tenant), await tenant.agent_stack()
    await policies.put(tenant.ports, tenant.owner, PolicyModel(agent_writable=("**",)))
    await tenant.write(own, SOUL, b"mine", marco)
    with pytest.raises(Forbidden, match="guardrails"):
        await tenant.write(own, RULES, b"mine", marco, accept_template_update=True)
    await tenant.write(own, RULES, b"theirs", accept_template_update=True)
    with pytest.raises(Forbidden):
        await files.delete(tenant.ports, own, RULES, marco)


async def test_repeated_rollbacks_go_further_back_until_no_version_is_left(
    tenant: OverlayTenant,
) -> None:
    ports, owner = tenant.ports, tenant.owner
    for text in (b"one", b"two", b"three"):
        await tenant.write(tenant.sales, RULES, text)
        await pin_reviews.accept(ports, owner, "marco", RULES, digest(text))
    for text in (b"two", b"one", b"be good"):
        await pin_reviews.roll_back(ports, owner, "marco", RULES)
        assert await tenant.read(RULES) == text
    with pytest.raises(NotFound):
        await pin_reviews.roll_back(ports, owner, "marco", RULES)
    await pin_reviews.accept(ports, owner, "marco", RULES, digest(b"three"))
    await pin_reviews.roll_back(ports, owner, "marco", RULES)
    assert await tenant.read(RULES) == b"be good"

    await policies.put(ports, owner, PolicyModel(limits=LimitsModel(max_versions=1)))
    for text in (b"four", b"five"):
        await tenant.write(tenant.sales, RULES, text)
        await pin_reviews.accept(ports, owner, "marco", RULES, digest(text))
    with pytest.raises(NotFound):
        await pin_reviews.roll_back(ports, owner, "marco", RULES)
    assert await tenant.read(RULES) == b"five"


async def test_a_pin_without_a_layer_below_is_kept_as_an_override_when_loosened(
    tenant: OverlayTenant,
) -> None:
    ports, owner = tenant.ports, tenant.owner
    pinning = PolicyModel(classes=(ClassRuleModel("NOTICE.md", FileClass.PINNED),))
    await policies.put(ports, owner, pinning)
    await tenant.write(tenant.sales, NOTICE, b"mind the gap")
    await tenant.create_agent("polo", "Polo")
    await tenant.write(await tenant.agent_stack(), NOTICE, b"mine", accept_template_update=True)
    for name in ("marco", "polo"):
        await agents.patch(ports, owner, name, {"template_id": None})
    await templates.delete(ports, owner, "sales")
    assert await tenant.read(NOTICE, "polo") == b"mind the gap"
    with pytest.raises(ValidationError, match="reason"):
        await policies.put(ports, owner, PolicyModel())
    await policies.put(ports, owner, PolicyModel(), "only a notice")
    assert await tenant.read(NOTICE, "polo") == b"mind the gap"
    assert await tenant.source(NOTICE, "polo") == "agent-override"
    assert await tenant.read(NOTICE) == b"mine"
    await policies.put(ports, owner, pinning)
    assert await tenant.read(NOTICE, "polo") == b"mind the gap"


async def test_the_initial_pin_of_an_agent_has_a_version_and_a_history(
    tenant: OverlayTenant,
) -> None:
    ports, own = tenant.ports, await tenant.agent_stack()
    file, content = await files.read_version(ports, own, RULES, 1)
    assert (content, file.version) == (b"be good", 1)
    [line] = (await history.list_versions(ports, own, RULES)).items
    assert line.row.head.entry
    await tenant.write(tenant.sales, RULES, b"be better")
    await pin_reviews.accept(ports, tenant.owner, "marco", RULES, digest(b"be better"))
    assert (await files.read_version(ports, own, RULES, 2))[1] == b"be better"
    await pin_reviews.roll_back(ports, tenant.owner, "marco", RULES)
    newest = (await history.list_versions(ports, own, RULES)).items[0]
    assert newest.row.reason.startswith("roll GUARDRAILS.md back to its initial pin, from")


async def test_deleting_a_person_clears_owner_and_human_pair(tenant: OverlayTenant) -> None:
    ports, owner = tenant.ports, tenant.owner
    ann, _ = await add_person(ports, owner, "ann")
    bob, _ = await add_person(ports, owner, "bob")
    await agents.patch(ports, owner, "marco", {"owner_id": ann.id, "human_pair_id": bob.id})
    await people.delete(ports, owner, ann.id)
    fields = agent_from_record(await agents.get(ports, owner, "marco"))
    assert (fields.owner_id, fields.human_pair_id) == (None, bob.id)
    await agents.patch(ports, owner, "marco", {"owner_id": bob.id})
    await people.delete(ports, owner, bob.id)
    fields = agent_from_record(await agents.get(ports, owner, "marco"))
    assert (fields.owner_id, fields.human_pair_id) == (None, None)
