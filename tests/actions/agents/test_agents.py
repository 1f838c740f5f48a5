"""Agents and the templates that they follow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from tests.support.tenants import create_tenant, race, start_after_yields

from carrel.actions.agents import agents, overview, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.overlay import stacks
from carrel.core.access import Actor
from carrel.core.agents.agent import by_template_index
from carrel.core.errors import Conflict, NotFound, ValidationError
from carrel.core.identifiers import Scope, ScopeKind
from carrel.core.store.record import Record, RecordType
from carrel.core.text_validation import RESERVED_SLUGS
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
Create = Callable[[Ports, Actor, str, str], Awaitable[Record]]


async def create_agent(ports: Ports, actor: Actor, slug: str, name: str) -> Record:
    return await agents.create(ports, actor, NewAgent(slug, name))


CREATE: dict[str, Create] = {"agent": create_agent, "template": templates.create}


async def test_an_agent_follows_a_template_by_id_or_slug(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    sales = await templates.create(ports, owner, "sales", "Sales")
    for number, name in enumerate((sales.id, "sales")):
        agent = await agents.create(ports, owner, NewAgent(f"marco-{number}", "Marco", name))
        assert agent.body["templateId"] == sales.id
        assert await stacks.agent_stack(ports, owner, agent.id) == (
            Scope(owner.tenant, ScopeKind.AGENT, agent.id),
            Scope(owner.tenant, ScopeKind.PINS, agent.body["pins"]),
            Scope(owner.tenant, ScopeKind.TEMPLATE, sales.id),
            Scope(owner.tenant, ScopeKind.DEFAULTS, ""),
        )


async def test_an_agent_needs_no_template_but_an_existing_one_if_named(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, other = await create_tenant(ports, "globex")
    theirs = await templates.create(ports, other, "sales", "Sales")
    agent = await create_agent(ports, owner, "marco", "Marco")
    kinds = [scope.kind for scope in await stacks.agent_stack(ports, owner, "marco")]
    assert kinds == [ScopeKind.AGENT, ScopeKind.PINS, ScopeKind.DEFAULTS]
    assert (
        agent == await agents.get(ports, owner, "marco") == await agents.get(ports, owner, agent.id)
    )
    for name in ("sales", theirs.id, "a\x00", ""):
        with pytest.raises(NotFound):
            await agents.create(ports, owner, NewAgent("other", "Other", name))


@pytest.mark.parametrize("create", CREATE.values(), ids=CREATE)
@pytest.mark.parametrize("slug", ["", "A", "a_b", "a\n", "_catalog", *sorted(RESERVED_SLUGS)])
async def test_an_invalid_or_reserved_slug_is_refused(
    ports: Ports, create: Create, slug: str
) -> None:
    _, owner = await create_tenant(ports)
    with pytest.raises(ValidationError):
        await create(ports, owner, slug, "Name")


@pytest.mark.parametrize("create", CREATE.values(), ids=CREATE)
async def test_of_concurrent_creates_with_one_slug_exactly_one_succeeds(
    ports: Ports, create: Create
) -> None:
    _, owner = await create_tenant(ports)
    _, other = await create_tenant(ports, "globex")
    done, refused = await race(*(create(ports, owner, "marco", "Marco") for _ in range(4)))
    assert len(done) == 1
    assert [reason.details for reason in refused if isinstance(reason, Conflict)] == [
        {"slug": "marco"}
    ] * 3
    await create(ports, other, "marco", "Marco")


async def test_a_template_with_followers_cannot_be_deleted(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    await templates.create(ports, owner, "sales", "Sales")
    marco = await agents.create(ports, owner, NewAgent("marco", "Marco", "sales"))
    with pytest.raises(Conflict):
        await templates.delete(ports, owner, "sales")
    await agents.delete(ports, owner, marco.id)
    await templates.delete(ports, owner, "sales")
    with pytest.raises(NotFound):
        await templates.get(ports, owner, "sales")


async def test_no_agent_follows_a_template_deleted_at_the_same_time(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    for turns in range(-8, 8):
        slug = f"sales-{turns % 16}"
        template = await templates.create(ports, owner, slug, "Sales")
        new = NewAgent(f"marco-{turns % 16}", "Marco", slug)
        done, refused = await race(
            start_after_yields(turns, agents.create(ports, owner, new)),
            start_after_yields(-turns, templates.delete(ports, owner, slug)),
        )
        assert len(done) == 1
        assert type(refused[0]) in {NotFound, Conflict}
        [stored] = await ports.records.get(owner.tenant, RecordType.TEMPLATE, [template.id])
        index_key = by_template_index(template.id)
        followers = await ports.records.list(owner.tenant, RecordType.AGENT, index_key=index_key)
        assert bool(stored) == bool(followers)


async def test_agents_and_templates_of_another_tenant_are_not_found(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, other = await create_tenant(ports, "globex")
    agent = await create_agent(ports, other, "marco", "Marco")
    template = await templates.create(ports, other, "sales", "Sales")
    for name in ("marco", agent.id):
        with pytest.raises(NotFound):
            await agents.get(ports, owner, name)
        with pytest.raises(NotFound):
            await agents.delete(ports, owner, name)
    for name in ("sales", template.id):
        with pytest.raises(NotFound):
            await templates.get(ports, owner, name)
        with pytest.raises(NotFound):
            await templates.delete(ports, owner, name)
    assert (await overview.list_agents(ports, owner)).items == ()
    assert (await templates.list_templates(ports, owner)).items == ()


async def test_a_slug_is_free_again_after_its_agent_is_deleted(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    first = await create_agent(ports, owner, "marco", "Marco")
    await agents.delete(ports, owner, "marco")
    second = await create_agent(ports, owner, "marco", "Marco")
    assert first.id != second.id
    assert (await overview.list_agents(ports, owner)).items == (second,)


@pytest.mark.parametrize("name", ["'", "\u201c\u201d", "\uff08Bob\uff09"])
async def test_a_name_that_identity_would_not_show_is_refused(ports: Ports, name: str) -> None:
    _, owner = await create_tenant(ports)
    with pytest.raises(ValidationError, match="name must"):
        await create_agent(ports, owner, "nina", name)
    marco = await create_agent(ports, owner, "marco", "Marco")
    with pytest.raises(ValidationError, match="name must"):
        await agents.patch(ports, owner, "marco", {"name": name})
    assert (await agents.get(ports, owner, "marco")).revision == marco.revision
