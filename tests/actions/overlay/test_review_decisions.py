"""Declines, merges, removals and roll backs of reviews, and accepts for a part of the agents."""

from __future__ import annotations

import pytest
from tests.support.overlay_tenant import RULES, SOUL, OverlayTenant
from tests.support.tenants import add_person, create_tenant, race

from carrel.actions.accounts import audit
from carrel.actions.agents import agents, templates
from carrel.actions.files import files
from carrel.actions.overlay import (
    bulk_reviews,
    pending_updates,
    pin_declines,
    pin_merges,
    pin_reviews,
    pinned_versions,
    review_history,
    review_undo,
)
from carrel.actions.overlay.pin_declines import DeclinedOffer
from carrel.actions.overlay.pin_merges import MergedOverride
from carrel.actions.overlay.review_history import ReviewFilter
from carrel.core.errors import Conflict, Forbidden, NotFound, ValidationError, WorkspaceConflict
from carrel.core.identifiers import Digest, digest
from carrel.core.overlay.pins import PinStatus
from carrel.core.overlay.review_records import FollowerPart, ReviewDecision, ReviewRecord
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
BETTER, BEST = b"be better", b"be best"


@pytest.fixture
def ports(anywhere: Ports) -> Ports:
    return anywhere


@pytest.fixture
async def tenant(ports: Ports) -> OverlayTenant:
    _, owner = await create_tenant(ports)
    return await OverlayTenant(ports, owner).open()


async def pin_of(tenant: OverlayTenant, name: str = "marco") -> PinStatus:
    reviews = await pin_reviews.load_reviews(tenant.ports, tenant.owner, name)
    return next(review.pin for review in reviews if review.pin.path == RULES)


async def decline(tenant: OverlayTenant, offered: bytes | None, reason: str = "not yet") -> None:
    offer = DeclinedOffer(digest(offered) if offered is not None else None, reason)
    await pin_declines.decline(tenant.ports, tenant.owner, "marco", RULES, offer)


async def accept(tenant: OverlayTenant, offered: bytes | None) -> None:
    reviewed = digest(offered) if offered is not None else None
    await pin_reviews.accept(tenant.ports, tenant.owner, "marco", RULES, reviewed)


async def newest_review(tenant: OverlayTenant) -> tuple[str, ReviewRecord]:
    page = await review_history.list_reviews(tenant.ports, tenant.owner, ReviewFilter())
    return page.reviews[0]


async def pending(tenant: OverlayTenant) -> int:
    record = await agents.get(tenant.ports, tenant.owner, "marco")
    listed = await pending_updates.list_pending_pins(tenant.ports, tenant.owner.tenant, [record])
    return sum(pin.path == RULES for pins in listed for pin in pins)


async def test_a_declined_update_is_not_offered_again_and_the_next_one_is(
    tenant: OverlayTenant,
) -> None:
    await tenant.write(tenant.sales, RULES, BETTER)
    assert await pending(tenant) == 1
    await decline(tenant, BETTER, "too\nsoon")
    pin = await pin_of(tenant)
    assert (pin.update_available, pin.is_declined, await pending(tenant)) == (False, True, 0)
    file = await files.get_file(tenant.ports, await tenant.agent_stack(), RULES)
    assert not file.has_update
    assert await tenant.read(RULES) == b"be good"
    [entry, *_] = (await audit.list_audit_entries(tenant.ports, tenant.owner, limit=1)).items
    assert entry.reason == f"decline GUARDRAILS.md, {digest(BETTER)}: too soon"
    _, review = await newest_review(tenant)
    assert (review.decision, review.reason, review.author) == (
        ReviewDecision.DECLINED,
        "too soon",
        tenant.owner.name,
    )
    await tenant.write(tenant.sales, RULES, BEST)
    assert (await pin_of(tenant)).update_available
    await tenant.write(tenant.sales, RULES, BETTER)
    assert not (await pin_of(tenant)).update_available
    await accept(tenant, BETTER)
    assert await tenant.read(RULES) == BETTER


async def test_a_decline_survives_an_override_its_revert_and_another_template(
    tenant: OverlayTenant,
) -> None:
    own = await tenant.agent_stack()
    await tenant.write(tenant.sales, RULES, BETTER)
    await decline(tenant, BETTER)
    await tenant.write(own, RULES, b"mine", accept_template_update=True)
    assert (await pin_of(tenant)).is_declined
    await files.delete(tenant.ports, own, RULES, tenant.owner)
    assert (await pin_of(tenant)).is_declined
    await agents.patch(tenant.ports, tenant.owner, "marco", {"name": "Marcello"})
    assert (await pin_of(tenant)).is_declined
    other = await templates.create(tenant.ports, tenant.owner, "care", "Care")
    await agents.patch(tenant.ports, tenant.owner, "marco", {"template_id": other.id})
    assert not (await pin_of(tenant)).update_available
    await agents.patch(tenant.ports, tenant.owner, "marco", {"template_id": tenant.template.id})
    assert (await pin_of(tenant)).is_declined


async def test_a_file_that_was_never_accepted_can_be_declined(tenant: OverlayTenant) -> None:
    await tenant.write(tenant.sales, RULES, BETTER)
    late = RULES.__class__("CAPABILITIES.md")
    await tenant.write(tenant.sales, late, b"can")
    record = DeclinedOffer(digest(b"can"), "no")
    pin = await pin_declines.decline(tenant.ports, tenant.owner, "marco", late, record)
    assert (pin.pinned is None or pin.pinned.digest != digest(b"can"), pin.is_declined) == (
        True,
        True,
    )
    id, _ = await newest_review(tenant)
    await review_undo.roll_back_review(tenant.ports, tenant.owner, id)
    reviews = await pin_reviews.load_reviews(tenant.ports, tenant.owner, "marco")
    assert next(r.pin for r in reviews if r.pin.path == late).update_available


async def test_a_decline_needs_a_reason_an_offer_and_a_person_who_may_review(
    tenant: OverlayTenant,
) -> None:
    with pytest.raises(NotFound):
        await decline(tenant, b"be good")
    await tenant.write(tenant.sales, RULES, BETTER)
    with pytest.raises(ValidationError):
        await decline(tenant, BETTER, " \n")
    with pytest.raises(WorkspaceConflict):
        await decline(tenant, BEST)
    _, member = await add_person(tenant.ports, tenant.owner, "mem")
    with pytest.raises(Forbidden):
        offer = DeclinedOffer(digest(BETTER), "no")
        await pin_declines.decline(tenant.ports, member, "marco", RULES, offer)


async def test_the_removal_of_a_pinned_file_is_offered_accepted_and_rolled_back(
    tenant: OverlayTenant,
) -> None:
    await files.delete(tenant.ports, tenant.defaults, RULES, tenant.owner)
    assert await tenant.read(RULES) == b"be good"
    pin = await pin_of(tenant)
    assert (pin.is_removal, pin.update_available, await pending(tenant)) == (True, True, 1)
    await decline(tenant, None)
    assert await pending(tenant) == 0
    await accept(tenant, None)
    with pytest.raises(NotFound):
        await tenant.read(RULES)
    listing = await files.list_files(tenant.ports, await tenant.agent_stack())
    assert RULES not in listing.files
    assert await pending(tenant) == 0
    id, _ = await newest_review(tenant)
    await review_undo.roll_back_review(tenant.ports, tenant.owner, id)
    assert await tenant.read(RULES) == b"be good"
    assert (await pin_of(tenant)).is_declined
    await accept(tenant, None)
    await tenant.write(tenant.sales, RULES, BETTER)
    with pytest.raises(NotFound):
        await tenant.read(RULES)
    assert (await pin_of(tenant)).update_available
    await accept(tenant, BETTER)
    assert await tenant.read(RULES) == BETTER


async def test_an_update_is_merged_into_the_override_and_the_pin_advances(
    tenant: OverlayTenant,
) -> None:
    own = await tenant.agent_stack()
    for text, stack in ((b"a\nb\nc\nd\n", tenant.sales), (b"a\nb\nc\nd\n", None)):
        await tenant.write(stack, RULES, text) if stack else await accept(tenant, text)
    with pytest.raises(NotFound):
        await pin_merges.propose_merge(tenant.ports, tenant.owner, "marco", RULES)
    await tenant.write(own, RULES, b"a\nmine\nc\nd\n", accept_template_update=True)
    await tenant.write(tenant.sales, RULES, b"a\nb\nc\ntheirs\n")
    proposal = await pin_merges.propose_merge(tenant.ports, tenant.owner, "marco", RULES)
    assert (proposal.merged.text, proposal.merged.conflicts) == ("a\nmine\nc\ntheirs\n", 0)

    async def merge(offered: Digest, text: str, if_match: str) -> PinStatus:
        merged = MergedOverride(offered, text, if_match)
        return await pin_merges.merge(tenant.ports, tenant.owner, "marco", RULES, merged)

    with pytest.raises(WorkspaceConflict):
        await merge(digest(b"stale"), proposal.merged.text, proposal.etag)
    with pytest.raises(WorkspaceConflict):
        await merge(proposal.offered, proposal.merged.text, '"v99.a"')
    with pytest.raises(ValidationError):
        await merge(proposal.offered, "<<<<<<< override\nx\n>>>>>>> offered\n", proposal.etag)
    pin = await merge(proposal.offered, proposal.merged.text, proposal.etag)
    assert pin.overridden
    assert pin.pinned is not None
    assert (pin.pinned.digest, pin.update_available) == (proposal.offered, False)
    assert await tenant.read(RULES) == b"a\nmine\nc\ntheirs\n"
    await files.delete(tenant.ports, own, RULES, tenant.owner)
    assert await tenant.read(RULES) == b"a\nb\nc\ntheirs\n"


async def test_rolling_back_an_accept_restores_the_override_that_it_dropped(
    tenant: OverlayTenant,
) -> None:
    own = await tenant.agent_stack()
    await tenant.write(own, RULES, b"mine", accept_template_update=True)
    await tenant.write(tenant.sales, RULES, BETTER)
    await accept(tenant, BETTER)
    id, _ = await newest_review(tenant)
    result = await review_undo.roll_back_review(tenant.ports, tenant.owner, id)
    assert [outcome.changed for outcome in result.outcomes] == [True]
    assert await tenant.read(RULES) == b"mine"
    pin = await pin_of(tenant)
    assert (pin.overridden, pin.update_available) == (True, True)
    page = await review_history.list_reviews(tenant.ports, tenant.owner, ReviewFilter())
    assert [review.decision for _, review in page.reviews] == ["rolled-back", "accepted"]
    assert (page.total, page.reviews[1][1].rolled_back_by) == (2, result.id)
    with pytest.raises(Conflict):
        assert result.id is not None
        await review_undo.roll_back_review(tenant.ports, tenant.owner, result.id)


async def test_a_roll_back_leaves_agents_that_changed_since(tenant: OverlayTenant) -> None:
    await tenant.create_agent("vera", "Vera")
    await tenant.write(tenant.sales, RULES, BETTER)
    review = await bulk_reviews.accept_part(
        tenant.ports, tenant.owner, "sales", RULES, digest(BETTER)
    )
    own = await tenant.agent_stack()
    await tenant.write(own, RULES, b"mine", accept_template_update=True)
    assert review.id is not None
    result = await review_undo.roll_back_review(tenant.ports, tenant.owner, review.id)
    assert sorted(outcome.changed for outcome in result.outcomes) == [False, True]
    assert (await tenant.read(RULES), await tenant.read(RULES, "vera")) == (b"mine", b"be good")


async def test_a_part_is_the_same_choice_twice_and_a_larger_one_contains_it(
    tenant: OverlayTenant,
) -> None:
    for number in range(9):
        await tenant.create_agent(f"agent-{number}", "Agent")
    await tenant.write(tenant.sales, RULES, BETTER)

    async def accept_part(part: FollowerPart) -> bulk_reviews.BulkReview:
        return await bulk_reviews.accept_part(
            tenant.ports, tenant.owner, "sales", RULES, digest(BETTER), part
        )

    first = await accept_part(FollowerPart(share=20))
    assert ([outcome.changed for outcome in first.outcomes], len(first.waiting)) == ([True] * 2, 8)
    again = await accept_part(FollowerPart(share=20))
    assert {o.agent for o in again.outcomes} == {o.agent for o in first.outcomes}
    assert ([outcome.changed for outcome in again.outcomes], again.id) == ([False] * 2, None)
    counted = await pinned_versions.count_pinned_versions(
        tenant.ports, tenant.owner, "sales", RULES
    )
    assert [(item.sha256, item.agents) for item in counted.versions] == [
        (digest(BETTER), 2),
        (digest(b"be good"), 8),
    ]
    wider = await accept_part(FollowerPart(count=5))
    assert {o.agent for o in wider.outcomes} > {o.agent for o in first.outcomes}
    listed = await accept_part(FollowerPart(agents=("marco",)))
    assert [outcome.agent for outcome in listed.outcomes] == [tenant.agent.id]
    await agents.patch(tenant.ports, tenant.owner, "agent-3", {"tags": ("beta",)})
    with_tag = await accept_part(FollowerPart(tag="beta"))
    assert len(with_tag.outcomes) == 1
    with pytest.raises(NotFound):
        await accept_part(FollowerPart(agents=("nobody",)))
    rest = await bulk_reviews.accept_part(
        tenant.ports, tenant.owner, "sales", RULES, digest(BETTER)
    )
    assert rest.waiting == ()
    counted = await pinned_versions.count_pinned_versions(
        tenant.ports, tenant.owner, "sales", RULES
    )
    assert [item.agents for item in counted.versions] == [10]


async def test_an_update_is_declined_for_all_and_offered_again_by_a_roll_back(
    tenant: OverlayTenant,
) -> None:
    await tenant.create_agent("vera", "Vera")
    await tenant.write(tenant.sales, RULES, BETTER)
    await accept(tenant, BETTER)
    review = await bulk_reviews.decline_for_all(
        tenant.ports, tenant.owner, "sales", RULES, digest(BETTER), "wait"
    )
    assert [outcome.changed for outcome in review.outcomes] == [True]
    assert (await pin_of(tenant, "vera")).is_declined
    assert review.id is not None
    await review_undo.roll_back_review(tenant.ports, tenant.owner, review.id)
    assert (await pin_of(tenant, "vera")).update_available
    assert await tenant.read(RULES) == BETTER


async def test_of_an_accept_and_a_decline_at_once_the_later_stands(tenant: OverlayTenant) -> None:
    await tenant.write(tenant.sales, RULES, BETTER)
    _, lost = await race(accept(tenant, BETTER), decline(tenant, BETTER))
    assert all(isinstance(error, NotFound) for error in lost)
    assert await tenant.read(RULES) == BETTER
    assert not (await pin_of(tenant)).update_available


async def test_a_file_that_is_not_pinned_is_neither_declined_nor_merged(
    tenant: OverlayTenant,
) -> None:
    offer = DeclinedOffer(digest(b"x"), "no")
    with pytest.raises(ValidationError):
        await pin_declines.decline(tenant.ports, tenant.owner, "marco", SOUL, offer)
    with pytest.raises(ValidationError):
        await pin_merges.propose_merge(tenant.ports, tenant.owner, "marco", SOUL)
