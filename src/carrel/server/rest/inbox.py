"""REST endpoints for everything that awaits a person's decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from msgspec import Meta

from carrel.actions import inbox as inboxes
from carrel.actions.fleet.fleet_counts import load_template_names
from carrel.actions.fleet.waiting_pins import WaitingPin
from carrel.actions.fleet.waiting_work import WaitingRecord
from carrel.actions.inbox import InboxGroup, is_callers_agent
from carrel.core.access import Actor, Permission
from carrel.core.agents.agent import agent_from_record
from carrel.core.approvals import approval_from_record
from carrel.core.errors import Forbidden, NotFound, ValidationError
from carrel.core.identifiers import Path, ScopeKind
from carrel.core.memory.dream_records import dream_from_record
from carrel.core.store.blob import Blob
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import MAX_PAGE_ITEMS, PageQuery
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Rfc3339, Sha256, rfc3339
from carrel.server.rest.sandbox.approvals import ApprovalModel, approval_to_model

Count = Annotated[int, Meta(ge=0)]


Mine = Annotated[
    bool, Meta(description="Only agents that are paired with the caller or owned by them.")
]


class InboxQuery(RequestModel, frozen=True):
    mine: Mine = False
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_ITEMS, description="Listed of each kind.")] = 100


class InboxPinsQuery(PageQuery, frozen=True):
    mine: Mine = False
    path: Annotated[str, Meta(min_length=1, description="Only updates of this file.")] | None = None
    offered_by: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=128,
                description="Only updates from this template, by id or slug, or from `defaults`.",
            ),
        ]
        | None
    ) = None
    overridden: Annotated[
        bool, Meta(description="Only agents whose own override an accept would drop.")
    ] = False


class InboxDreamsQuery(PageQuery, frozen=True):
    mine: Mine = False


class InboxGroupModel(ResponseModel, frozen=True):
    """One update of a pinned file, and for how many agents it waits."""

    path: str
    template_id: str | None
    """Template that the update comes from; null for the defaults."""
    template_name: str | None
    latest_sha256: Sha256 | None
    """Null if the file was removed in the layers below."""
    count: Count
    overridden: Count
    """Agents whose own override an accept would drop."""
    newly_offered: Count
    """Agents for which no version of the file was reviewed yet."""


class InboxTemplateModel(ResponseModel, frozen=True):
    """Waiting updates of the agents of one template, wherever they come from."""

    template_id: str | None
    pins: Count


class InboxPinModel(ResponseModel, frozen=True):
    """A pinned update that awaits review."""

    agent_id: str
    agent_name: str
    agent_slug: str
    template_id: str | None
    template_name: str | None
    path: str
    pinned_sha256: Sha256 | None
    latest_sha256: Sha256 | None
    """Null if the file was removed in the layers below."""
    newly_offered: bool
    """Whether no version of the file was reviewed yet."""
    overridden: bool
    """Whether an accept would drop the agent's own override."""
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
    """Groups and counts of all that waits, and the first of each kind."""

    groups: list[InboxGroupModel]
    templates: list[InboxTemplateModel]
    pins: list[InboxPinModel]
    approvals: list[ApprovalModel]
    dreams: list[InboxDreamModel]
    counts: InboxCountsModel


class InboxPinPageModel(ResponseModel, frozen=True):
    items: list[InboxPinModel]
    next: str | None


class InboxDreamPageModel(ResponseModel, frozen=True):
    items: list[InboxDreamModel]
    next: str | None


def _hex_digest(blob: Blob) -> str:
    return blob.digest.removeprefix("sha256:")


def _group_to_model(group: InboxGroup, names: Mapping[str, str]) -> InboxGroupModel:
    is_template = group.offered_by.kind is ScopeKind.TEMPLATE
    template = group.offered_by.name if is_template else None
    return InboxGroupModel(
        path=group.path.text,
        template_id=template,
        template_name=names.get(template) if template else None,
        latest_sha256=group.latest.removeprefix("sha256:") if group.latest else None,
        count=group.count,
        overridden=group.overridden,
        newly_offered=group.newly_offered,
    )


def _pin_to_model(actor: Actor, waiting: WaitingPin, names: Mapping[str, str]) -> InboxPinModel:
    agent, pin = waiting.agent, waiting.pin
    fields = agent_from_record(agent)
    template = fields.template_id
    return InboxPinModel(
        agent_id=agent.id,
        agent_name=fields.name,
        agent_slug=fields.slug,
        template_id=template,
        template_name=names.get(template) if template else None,
        path=pin.path.text,
        pinned_sha256=_hex_digest(pin.pinned) if pin.pinned else None,
        latest_sha256=_hex_digest(pin.latest) if pin.latest else None,
        newly_offered=pin.pinned is None,
        overridden=pin.overridden,
        mine=is_callers_agent(actor, agent),
    )


def _dreams_to_models(actor: Actor, waiting: Sequence[WaitingRecord]) -> list[InboxDreamModel]:
    models = []
    for item in waiting:
        if item.agent is None:
            continue
        dream = dream_from_record(item.record)
        models.append(
            InboxDreamModel(
                agent_id=item.agent.id,
                agent_name=agent_from_record(item.agent).name,
                dream_id=dream.id,
                at=rfc3339(dream.started),
                promoted=len(dream.promoted),
                mine=is_callers_agent(actor, item.agent),
            )
        )
    return models


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
    """Count what awaits a decision: pinned updates in groups, tool approvals and dreams.

    Lists the first of each kind. Also requires `workspace:read`.
    """
    actor, query = request.actor, request.query
    actor.require(Permission.WORKSPACE_READ)
    inbox = await inboxes.load_inbox(request.ports, actor, mine=query.mine, limit=query.limit)
    counts = inbox.counts
    model = InboxModel(
        groups=[_group_to_model(group, inbox.templates) for group in inbox.groups],
        templates=[
            InboxTemplateModel(template_id=id, pins=count)
            for id, count in inbox.waiting_by_template.items()
        ],
        pins=[_pin_to_model(actor, pin, inbox.templates) for pin in inbox.pins.items],
        approvals=[
            await approval_to_model(request.ports, approval_from_record(item.record))
            for item in inbox.approvals.items
        ],
        dreams=_dreams_to_models(actor, inbox.dreams.items),
        counts=InboxCountsModel(pins=counts.pins, approvals=counts.approvals, dreams=counts.dreams),
    )
    return Response.json(model)


@endpoint(
    "GET",
    "/v1/inbox/pins",
    query=InboxPinsQuery,
    permission=Permission.TENANT_READ,
    responses={200: InboxPinPageModel},
    refusals=(Forbidden, NotFound, ValidationError),
    id="inbox_pins",
    tag="Inbox",
)
async def list_inbox_pins(request: Request[None, InboxPinsQuery]) -> Response:
    """List agents for which an update of a pinned file waits.

    Ordered by template and agent. A page may be shorter than its limit and have a successor. Also
    requires `workspace:read`.
    """
    actor, query = request.actor, request.query
    actor.require(Permission.WORKSPACE_READ)
    page = await inboxes.load_waiting_pins(
        request.ports,
        actor,
        path=None if query.path is None else Path(query.path),
        offered_by=query.offered_by,
        only_overridden=query.overridden,
        mine=query.mine,
        cursor=query.cursor,
        limit=query.limit,
    )
    ids = (agent_from_record(item.agent).template_id for item in page.items)
    names = await load_template_names(request.ports, actor.tenant, ids)
    items = [_pin_to_model(actor, item, names) for item in page.items]
    return Response.json(InboxPinPageModel(items=items, next=page.next))


@endpoint(
    "GET",
    "/v1/inbox/dreams",
    query=InboxDreamsQuery,
    permission=Permission.TENANT_READ,
    responses={200: InboxDreamPageModel},
    refusals=(Forbidden,),
    id="inbox_dreams",
    tag="Inbox",
)
async def list_inbox_dreams(request: Request[None, InboxDreamsQuery]) -> Response:
    """List dreams that wait for review, oldest first.

    A page may be shorter than its limit and have a successor. Also requires `workspace:read`.
    """
    actor, query = request.actor, request.query
    actor.require(Permission.WORKSPACE_READ)
    page = await inboxes.load_waiting_dreams(
        request.ports, actor, mine=query.mine, cursor=query.cursor, limit=query.limit
    )
    items = _dreams_to_models(actor, page.items)
    return Response.json(InboxDreamPageModel(items=items, next=page.next))


ENDPOINTS: Final = (get_inbox, list_inbox_pins, list_inbox_dreams)
