"""REST endpoints that change many agents, and that duplicate agents and templates."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.agents import agents, bulk_changes, duplicates, templates
from carrel.actions.agents.bulk_changes import AgentOutcome, AgentSelection, BulkChange
from carrel.actions.agents.change_effects import FileEffect
from carrel.actions.agents.overview import AgentFilter
from carrel.core.access import Permission
from carrel.core.agents.tags import MAX_TAGS
from carrel.core.errors import (
    Busy,
    Conflict,
    Forbidden,
    NotFound,
    ValidationError,
    WorkspaceTooLarge,
)
from carrel.server.http.endpoint import Request, RequestModel, Response, ResponseModel, endpoint
from carrel.server.http.query_fields import Id, Line, Search, Slug, set_fields
from carrel.server.rest.agents.agents import AgentModel, Tag, TemplateRef, agent_to_model
from carrel.server.rest.agents.templates import TemplateModel, load_template_models

_Count = Annotated[int, Meta(ge=0)]
_Tags = Annotated[tuple[Tag, ...], Meta(max_length=MAX_TAGS)]


class AgentFilterModel(RequestModel, frozen=True):
    """The filters of the list of agents; all agents without one."""

    q: Search = ""
    tag: Tag | None = None
    template: Id | None = None
    """Id or slug; `none`: without one."""
    human: Id | None = None
    owner: Id | None = None


class AgentChangeFields(RequestModel, frozen=True):
    """Changes of each agent; or its deletion, alone."""

    template_id: TemplateRef | UnsetType | None = UNSET
    human_pair_id: Id | UnsetType | None = UNSET
    add_tags: _Tags | UnsetType = UNSET
    remove_tags: _Tags | UnsetType = UNSET
    delete: bool | UnsetType = UNSET


class ChangeAgentsBody(RequestModel, frozen=True):
    change: AgentChangeFields
    agents: (
        Annotated[
            tuple[Id, ...],
            Meta(
                min_length=1,
                max_length=bulk_changes.MAX_SELECTED,
                description="Ids or slugs.",
            ),
        ]
        | None
    ) = None
    filter: AgentFilterModel | None = None
    """Instead of `agents`."""
    dry_run: bool = False
    """Store nothing, and answer what would change."""


class FileEffectModel(ResponseModel, frozen=True):
    path: str
    effect: FileEffect


class ErasedCountsModel(ResponseModel, frozen=True):
    """What a deletion erases."""

    sessions: _Count
    memories: _Count
    keys: _Count
    files: _Count


class AgentOutcomeModel(ResponseModel, frozen=True):
    """Result for one agent."""

    agent_id: str
    """Id, or the name that was not found."""
    slug: str
    name: str
    changed: bool
    error: str | None
    files: list[FileEffectModel]
    """Of a dry run; empty otherwise."""
    erased: ErasedCountsModel | None
    """Of the dry run of a deletion."""


class AgentOutcomesModel(ResponseModel, frozen=True):
    dry_run: bool
    changed: _Count
    failed: _Count
    results: list[AgentOutcomeModel]


class DuplicateBody(RequestModel, frozen=True):
    slug: Slug
    name: Line


@endpoint(
    "POST",
    "/v1/agent-changes",
    permission=Permission.TENANT_ADMIN,
    body=ChangeAgentsBody,
    responses={200: AgentOutcomesModel},
    refusals=(ValidationError, NotFound, Busy),
    id="agents_change_many",
    tag="Agents",
    idempotent=True,
)
async def change_agents(request: Request[ChangeAgentsBody]) -> Response:
    """Move, re-pair, tag or delete many agents, or answer what that would change.

    Each agent is changed as by its own request: a refusal for one stops no other. At most 5,000.
    """
    body = request.body
    outcomes = await bulk_changes.change_agents(
        request.ports,
        request.actor,
        _parse_selection(body),
        _parse_change(body.change),
        dry_run=body.dry_run,
    )
    results = [_outcome_to_model(outcome) for outcome in outcomes]
    return Response.json(
        AgentOutcomesModel(
            dry_run=body.dry_run,
            changed=sum(result.changed for result in results),
            failed=sum(result.error is not None for result in results),
            results=results,
        )
    )


def _parse_selection(body: ChangeAgentsBody) -> AgentSelection:
    if (body.agents is None) == (body.filter is None):
        raise ValidationError("select by one of agents and filter")
    if body.filter is None:
        return AgentSelection(body.agents or ())
    conditions = body.filter
    return AgentSelection(
        filter=AgentFilter(
            q=conditions.q,
            template=conditions.template,
            tag=conditions.tag,
            human=conditions.human,
            owner=conditions.owner,
        )
    )


def _parse_change(fields: AgentChangeFields) -> BulkChange:
    sent = set_fields(fields)
    is_deletion = sent.pop("delete", False)
    if bool(sent) == is_deletion:
        raise ValidationError("change needs fields, or delete alone")
    added, removed = sent.pop("add_tags", ()), sent.pop("remove_tags", ())
    return BulkChange(sent, added, removed, is_deletion)


def _outcome_to_model(outcome: AgentOutcome) -> AgentOutcomeModel:
    erased = outcome.effects.erased
    return AgentOutcomeModel(
        agent_id=outcome.agent,
        slug=outcome.slug,
        name=outcome.name,
        changed=outcome.changed,
        error=str(outcome.problem) if outcome.problem else None,
        files=[
            FileEffectModel(path=path.text, effect=effect)
            for path, effect in outcome.effects.files.items()
        ],
        erased=None
        if erased is None
        else ErasedCountsModel(
            sessions=erased.sessions,
            memories=erased.memories,
            keys=erased.keys,
            files=erased.files,
        ),
    )


async def _rebuild_agent(request: Request[Any], versions: tuple[int, ...]) -> Response:
    record = await agents.get(request.ports, request.actor, request.body.slug)
    return Response.json(agent_to_model(record), 201)


async def _rebuild_template(request: Request[Any], versions: tuple[int, ...]) -> Response:
    record = await templates.get(request.ports, request.actor, request.body.slug)
    [model] = await load_template_models(request, [record])
    return Response.json(model, 201)


@endpoint(
    "POST",
    "/v1/agents/{id}/duplicate",
    permission=Permission.TENANT_ADMIN,
    body=DuplicateBody,
    responses={201: AgentModel},
    refusals=(Forbidden, NotFound, Conflict, WorkspaceTooLarge, Busy),
    id="agents_duplicate",
    tag="Agents",
    idempotent=True,
    rebuild=_rebuild_agent,
)
async def duplicate_agent(request: Request[DuplicateBody]) -> Response:
    """Create an agent with the own files, pins, tags, people and config of another one.

    Not duplicated: memories, MEMORY.md, DREAMS.md, notes, sessions, runs, keys, items, and the
    directory of transcripts. Pinned files stay as reviewed for the original.
    """
    record = await duplicates.duplicate_agent(
        request.ports,
        request.actor,
        request.params["id"],
        request.body.slug,
        request.body.name,
        request.idempotency_key,
    )
    return Response.json(agent_to_model(record), 201)


@endpoint(
    "POST",
    "/v1/templates/{id}/duplicate",
    permission=Permission.TENANT_ADMIN,
    body=DuplicateBody,
    responses={201: TemplateModel},
    refusals=(NotFound, Conflict, WorkspaceTooLarge, Busy),
    id="templates_duplicate",
    tag="Templates",
    idempotent=True,
    rebuild=_rebuild_template,
)
async def duplicate_template(request: Request[DuplicateBody]) -> Response:
    """Create a template with the files of another one. Its agents stay with the original."""
    record = await duplicates.duplicate_template(
        request.ports,
        request.actor,
        request.params["id"],
        request.body.slug,
        request.body.name,
        request.idempotency_key,
    )
    [model] = await load_template_models(request, [record])
    return Response.json(model, 201)


ENDPOINTS: Final = (change_agents, duplicate_agent, duplicate_template)
