"""What waits for people, over HTTP."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions import inbox as inboxes
from carrel.actions.inbox import Inbox, is_mine
from carrel.core.access import Actor, Permission
from carrel.core.errors import Forbidden
from carrel.core.memory.dream_records import Dream
from carrel.core.overlay.pins import PinStatus
from carrel.core.store.record import Record
from carrel.core.store.tree import Blob
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Sha256, When, rfc3339
from carrel.server.rest.sandbox.approvals import ApprovalModel, approval_shown

Many = Annotated[int, Meta(ge=0)]


class InboxQuery(RequestModel, frozen=True):
    mine: Annotated[
        bool,
        Meta(description="Only of agents that work for the person who asks, or belong to them."),
    ] = False


class PinWaiting(ResponseModel, frozen=True):
    """An update that somebody has to look at."""

    agent_id: str
    agent_name: str
    agent_slug: str
    template_id: str | None
    template_name: str | None
    path: str
    pinned_sha256: Sha256 | None
    latest_sha256: Sha256
    newly_offered: bool
    """Nothing of it was reviewed yet."""
    mine: bool
    """The agent works for whoever asks, or belongs to them."""


class DreamWaiting(ResponseModel, frozen=True):
    """A dream that waits for a review."""

    agent_id: str
    agent_name: str
    dream_id: str
    at: When
    promoted: Many
    """How many memories it would promote."""
    mine: bool


class InboxCounts(ResponseModel, frozen=True):
    """Of all that waits, also where not all of it is told."""

    pins: Many
    approvals: Many
    dreams: Many


class Waiting(ResponseModel, frozen=True):
    """At most 500 of each."""

    pins: list[PinWaiting]
    approvals: list[ApprovalModel]
    dreams: list[DreamWaiting]
    counts: InboxCounts


def _hex(blob: Blob) -> str:
    return blob.digest.removeprefix("sha256:")


def _pin(actor: Actor, found: Inbox, agent: Record, pin: PinStatus) -> PinWaiting:
    template = agent.body.get("templateId")
    assert pin.latest is not None, "what waits is offered"
    return PinWaiting(
        agent_id=agent.id,
        agent_name=agent.body["name"],
        agent_slug=agent.body["slug"],
        template_id=template,
        template_name=found.templates.get(template) if template else None,
        path=pin.path.text,
        pinned_sha256=_hex(pin.pinned) if pin.pinned else None,
        latest_sha256=_hex(pin.latest),
        newly_offered=pin.pinned is None,
        mine=is_mine(actor, agent),
    )


def _dream(actor: Actor, agent: Record, dream: Dream) -> DreamWaiting:
    return DreamWaiting(
        agent_id=agent.id,
        agent_name=agent.body["name"],
        dream_id=dream.id,
        at=rfc3339(dream.started),
        promoted=len(dream.promoted),
        mine=is_mine(actor, agent),
    )


@endpoint(
    "GET",
    "/v1/inbox",
    query=InboxQuery,
    permission=Permission.TENANT_READ,
    responses={200: Waiting},
    refusals=(Forbidden,),
    id="inbox",
    tag="Inbox",
)
async def inbox(call: Request[None, InboxQuery]) -> Response:
    """What waits for people: updates of pinned files, calls that ask first, dreams to look at.

    Needs `workspace:read` too.
    """
    actor = call.actor
    actor.require(Permission.WORKSPACE_READ)
    found = await inboxes.inbox(call.ports, actor, mine=call.query.mine)
    counts = InboxCounts(
        pins=found.pins.count, approvals=found.approvals.count, dreams=found.dreams.count
    )
    waiting = Waiting(
        pins=[_pin(actor, found, agent, pin) for agent, pin in found.pins.pins],
        approvals=[approval_shown(one) for one in found.approvals.approvals],
        dreams=[_dream(actor, agent, dream) for agent, dream in found.dreams.dreams],
        counts=counts,
    )
    return Response.json(waiting)


ENDPOINTS: Final = (inbox,)
