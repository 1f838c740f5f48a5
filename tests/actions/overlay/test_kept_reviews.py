"""Reviews hold after a purge of the offered text and after a move to another template."""

from __future__ import annotations

import pytest
from tests.support.overlay_tenant import RULES, OverlayTenant
from tests.support.tenants import create_tenant

from carrel.actions.agents import agents, templates
from carrel.actions.files import files
from carrel.actions.maintenance.purge import PurgeRequest, purge_text
from carrel.actions.overlay import bulk_reviews, pin_declines, pin_reviews, review_undo
from carrel.actions.overlay.pin_declines import DeclinedOffer
from carrel.core.identifiers import digest
from carrel.core.overlay.pins import PinStatus
from carrel.core.store.entry import OFFERED_REMOVAL
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
WORD = "zanzibarquince"
OFFERED = f"be better, {WORD}".encode()


@pytest.fixture
async def tenant(anywhere: Ports) -> OverlayTenant:
    _, owner = await create_tenant(anywhere)
    return await OverlayTenant(anywhere, owner).open()


async def pin_of(tenant: OverlayTenant, name: str = "marco") -> PinStatus:
    reviews = await pin_reviews.load_reviews(tenant.ports, tenant.owner, name)
    return next(review.pin for review in reviews if review.pin.path == RULES)


async def decline(tenant: OverlayTenant, name: str, offered: bytes | None) -> None:
    offer = DeclinedOffer(digest(offered) if offered is not None else None, "not yet")
    await pin_declines.decline(tenant.ports, tenant.owner, name, RULES, offer)


async def purge(tenant: OverlayTenant) -> None:
    step = await purge_text(tenant.ports, tenant.owner, PurgeRequest(WORD))
    while step.cursor is not None:
        step = await purge_text(tenant.ports, tenant.owner, PurgeRequest(WORD, cursor=step.cursor))


async def test_a_decline_holds_after_a_purge_of_the_offered_text(tenant: OverlayTenant) -> None:
    await tenant.create_agent("vera", "Vera")
    await tenant.create_agent("otto", "Otto")
    own = await tenant.agent_stack("vera")
    await tenant.write(own, RULES, f"mine, {WORD}".encode(), accept_template_update=True)
    await tenant.write(tenant.sales, RULES, OFFERED)
    for name in ("marco", "vera"):
        await decline(tenant, name, OFFERED)

    await purge(tenant)

    for name in ("marco", "vera"):
        pin = await pin_of(tenant, name)
        assert pin.latest is not None
        assert pin.latest.digest != digest(OFFERED)
        assert (pin.is_declined, pin.update_available) == (True, False), name
    assert (await pin_of(tenant, "otto")).update_available
    assert WORD.encode() not in await tenant.read(RULES, "vera")
    await tenant.write(tenant.sales, RULES, b"be best")
    assert (await pin_of(tenant)).update_available


async def test_a_decline_of_a_default_that_a_template_shadows_holds_after_a_purge(
    tenant: OverlayTenant,
) -> None:
    await tenant.write(tenant.defaults, RULES, OFFERED)
    await decline(tenant, "marco", OFFERED)
    await tenant.write(tenant.sales, RULES, b"be best")
    await purge(tenant)
    await files.delete(tenant.ports, tenant.sales, RULES, tenant.owner)
    assert (await pin_of(tenant)).is_declined


async def test_a_decline_holds_after_a_purge_of_the_reviewed_text(tenant: OverlayTenant) -> None:
    await tenant.write(tenant.sales, RULES, OFFERED)
    await pin_reviews.accept(tenant.ports, tenant.owner, "marco", RULES, digest(OFFERED))
    await tenant.write(tenant.sales, RULES, b"be best")
    await decline(tenant, "marco", b"be best")
    await purge(tenant)
    assert (await pin_of(tenant)).is_declined


async def test_a_declined_removal_and_first_offer_hold_after_a_purge(
    tenant: OverlayTenant,
) -> None:
    await files.delete(tenant.ports, tenant.defaults, RULES, tenant.owner)
    await pin_reviews.accept(tenant.ports, tenant.owner, "marco", RULES, None)
    await tenant.write(tenant.sales, RULES, OFFERED)
    await decline(tenant, "marco", OFFERED)
    await purge(tenant)
    pin = await pin_of(tenant)
    assert (pin.pinned, pin.is_declined) == (None, True)
    assert pin.reviewed != OFFERED_REMOVAL


async def test_an_agent_that_left_the_template_is_rolled_back_with_the_others(
    tenant: OverlayTenant,
) -> None:
    moved = await tenant.create_agent("vera", "Vera")
    care = await templates.create(tenant.ports, tenant.owner, "care", "Care")
    await tenant.write(tenant.sales, RULES, b"be better")
    review = await bulk_reviews.accept_part(
        tenant.ports, tenant.owner, "sales", RULES, digest(b"be better")
    )
    await agents.patch(tenant.ports, tenant.owner, "vera", {"template_id": care.id})
    await tenant.create_agent("otto", "Otto")
    assert review.id is not None

    result = await review_undo.roll_back_review(tenant.ports, tenant.owner, review.id)

    assert {outcome.agent: outcome.changed for outcome in result.outcomes} == {
        tenant.agent.id: True,
        moved.id: True,
    }
    assert [outcome.agent for outcome in result.outcomes] == sorted([tenant.agent.id, moved.id])
    for name, text in (("marco", b"be good"), ("vera", b"be good"), ("otto", b"be better")):
        assert await tenant.read(RULES, name) == text


async def test_a_review_is_rolled_back_after_its_template_was_deleted(
    tenant: OverlayTenant,
) -> None:
    care = await templates.create(tenant.ports, tenant.owner, "care", "Care")
    await tenant.write(tenant.sales, RULES, b"be better")
    review = await bulk_reviews.accept_part(
        tenant.ports, tenant.owner, "sales", RULES, digest(b"be better")
    )
    await agents.patch(tenant.ports, tenant.owner, "marco", {"template_id": care.id})
    await templates.delete(tenant.ports, tenant.owner, tenant.template.id)
    assert review.id is not None
    await review_undo.roll_back_review(tenant.ports, tenant.owner, review.id)
    assert await tenant.read(RULES) == b"be good"
