"""REST endpoint for everything that awaits a person's decision."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions import inbox as inboxes
from carrel.actions.inbox import Inbox, is_callers_agent
from carrel.core.access import Actor, Permission
from carrel.core.agents.agent import agent_from_record
from carrel.core.errors import Forbidden
from carrel.core.memory.dream_records import Dream
from carrel.core.overlay.pins import PinStatus
from carrel.core.store.blob import Blob
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Rfc3339, Sha256, rfc3339
from carrel.server.rest.sandbox.approvals import ApprovalModel, approval_to_model

Count = Annotated[int, Meta(ge=0)]


class InboxQuery(RequestModel, frozen=True):
    mine: Annotated[
        bool,
        Meta(description="Only agents that are paired with the caller or owned by them."),
    ] = False


class InboxPinModel(ResponseModel, frozen=True):
    """A pinned update that awaits review."""

    agent_id: str
    agent_name: str
    agent_slug: str
    template_id: str | None
    template_name: str | None
    path: str
    pinned_sha256: Sha256 | None
    latest_sha256: Sha256
    newly_offered: bool
    """Whether no version of the file was reviewed yet."""
    mine: bool
    """Whether the agent is paired with the caller or owned by them."""


class InboxDreamModel(ResponseModel, frozen=True):
    """A dream that awaits review."""

    agent_id: str
    agent_name: str
    dream_id: str
    at: Rfc3339
    promoted: Count
    """Number of memories it would promote."""
    mine: bool


class InboxCountsModel(ResponseModel, frozen=True):
    """Totals, including items beyond the listed ones."""

    pins: Count
    approvals: Count
    dreams: Count


class InboxModel(ResponseModel, frozen=True):
    """At most 500 of each kind."""

    pins: list[InboxPinModel]
    approvals: list[ApprovalModel]
    dreams: list[InboxDreamModel]
    counts: InboxCountsModel


def _hex_digest(blob: Blob) -> str:
    return blob.digest.removeprefix("sha256:")


def _pin_to_model(actor: Actor, contents: Inbox, agent: Record, pin: PinStatus) -> InboxPinModel:
    fields = agent_from_record(agent)
    template = fields.template_id
    assert pin.latest is not None, "a pin in the inbox has a latest version"
    return InboxPinModel(
        agent_id=agent.id,
        agent_name=fields.name,
        agent_slug=fields.slug,
        template_id=template,
        template_name=contents.templates.get(template) if template else None,
        path=pin.path.text,
        pinned_sha256=_hex_digest(pin.pinned) if pin.pinned else None,
        latest_sha256=_hex_digest(pin.latest),
        newly_offered=pin.pinned is None,
        mine=is_callers_agent(actor, agent),
    )


def _dream_to_model(actor: Actor, agent: Record, dream: Dream) -> InboxDreamModel:
    return InboxDreamModel(
        agent_id=agent.id,
        agent_name=agent_from_record(agent).name,
        dream_id=dream.id,
        at=rfc3339(dream.started),
        promoted=len(dream.promoted),
        mine=is_callers_agent(actor, agent),
    )


@endpoint(
    "GET",
    "/v1/inbox",
    query=InboxQuery,
    permission=Permission.TENANT_READ,
    responses={200: InboxModel},
    refusals=(Forbidden,),
    id="inbox",
    tag="Inbox",
)
async def get_inbox(request: Request[None, InboxQuery]) -> Response:
    """List what awaits a decision: pinned updates, tool approvals and dreams.

    Also requires `workspace:read`.
    """
    actor = request.actor
    actor.require(Permission.WORKSPACE_READ)
    contents = await inboxes.load_inbox(request.ports, actor, mine=request.query.mine)
    counts = InboxCountsModel(
        pins=contents.pins.count, approvals=contents.approvals.count, dreams=contents.dreams.count
    )
    model = InboxModel(
        pins=[_pin_to_model(actor, contents, agent, pin) for agent, pin in contents.pins.pins],
        approvals=[
            await approval_to_model(request.ports, approval)
            for approval in contents.approvals.approvals
        ],
        dreams=[_dream_to_model(actor, agent, dream) for agent, dream in contents.dreams.dreams],
        counts=counts,
    )
    return Response.json(model)


ENDPOINTS: Final = (get_inbox,)
