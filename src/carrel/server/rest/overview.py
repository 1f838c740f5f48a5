"""REST endpoint of the overview: the state of all agents in counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from carrel.actions.fleet import overview as overviews
from carrel.actions.fleet.overview import MemoryDay, Overview
from carrel.core.access import Permission
from carrel.core.errors import Forbidden
from carrel.core.fleet.drift import FileDrift
from carrel.core.fleet.prompt_sizes import PromptTotals
from carrel.core.identifiers import TimestampMs
from carrel.core.runs import RunStatus
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Rfc3339, rfc3339
from carrel.server.rest.inbox import Mine

Count = Annotated[int, Meta(ge=0)]
_MAX_DAYS: Final = 90
_MAX_OVERRIDES: Final = 20


class OverviewQuery(RequestModel, frozen=True):
    days: Annotated[int, Meta(ge=1, le=_MAX_DAYS, description="Days up to today, in UTC.")] = 30
    mine: Mine = False


class OverviewWaitingModel(ResponseModel, frozen=True):
    """What waits for a person."""

    pins: Count
    approvals: Count
    dreams: Count
    failed_runs: Count
    """Runs of the last 24 hours that failed."""


class OverviewRunsModel(ResponseModel, frozen=True):
    """Runs that started in one hour or day, by their status now."""

    at: Rfc3339
    running: Count
    completed: Count
    failed: Count
    cancelled: Count
    abandoned: Count


class VersionsBehindModel(ResponseModel, frozen=True):
    versions: Count
    agents: Count


class FileDriftModel(ResponseModel, frozen=True):
    """Agents by how far their pin of one file is behind what is offered."""

    path: str
    up_to_date: Count
    behind: list[VersionsBehindModel]
    older: Count
    """Agents whose pin is older than five versions or came from another layer, or whose file was
    removed there."""
    not_reviewed: Count
    overridden: Count


class FileOverridesModel(ResponseModel, frozen=True):
    path: str
    agents: Count


class PromptBlockSizeModel(ResponseModel, frozen=True):
    name: str
    tokens: Count


class PromptSizesModel(ResponseModel, frozen=True):
    """Average sizes of the prompts of runs."""

    runs: Count
    tokens: Count
    stable_tokens: Count
    """Tokens before the first block that changes between runs: what a prompt cache holds."""
    blocks: list[PromptBlockSizeModel]


class TemplatePromptsModel(PromptSizesModel, frozen=True):
    template_id: str | None
    template_name: str | None


class DayPromptsModel(PromptSizesModel, frozen=True):
    at: Rfc3339


class OverviewPromptsModel(ResponseModel, frozen=True):
    by_template: list[TemplatePromptsModel]
    by_day: list[DayPromptsModel]


class MemoryDayModel(ResponseModel, frozen=True):
    at: Rfc3339
    total: Count
    """Memories at the end of the day, of those that still exist."""
    created: Count
    promoted: Count


class OverviewModel(ResponseModel, frozen=True):
    agents: Count
    waiting: OverviewWaitingModel
    runs_by_day: list[OverviewRunsModel]
    runs_by_hour: list[OverviewRunsModel]
    drift: list[FileDriftModel]
    overrides: list[FileOverridesModel]
    """Files that most agents override, at most 20."""
    prompts: OverviewPromptsModel
    memories: list[MemoryDayModel]


@endpoint(
    "GET",
    "/v1/overview",
    query=OverviewQuery,
    permission=Permission.TENANT_READ,
    responses={200: OverviewModel},
    refusals=(Forbidden,),
    id="overview",
    tag="Overview",
)
async def get_overview(request: Request[None, OverviewQuery]) -> Response:
    """Count what waits, runs, drift, overrides, sizes of prompts and memories.

    The cost does not depend on the number of agents. Members see what waits, drift and overrides of
    shared agents and their own, and the rest of their own. Also requires `workspace:read` and
    `runs:read`.
    """
    query = request.query
    overview = await overviews.load_overview(
        request.ports, request.actor, days=query.days, mine=query.mine
    )
    return Response.json(_overview_to_model(overview))


def _overview_to_model(overview: Overview) -> OverviewModel:
    waiting = overview.waiting
    ranking = sorted(overview.overrides.items(), key=lambda item: (-item[1], item[0]))
    return OverviewModel(
        agents=overview.agents,
        waiting=OverviewWaitingModel(
            pins=waiting.pins,
            approvals=waiting.approvals,
            dreams=waiting.dreams,
            failed_runs=overview.failed_runs,
        ),
        runs_by_day=_runs_to_models(overview.runs_by_day),
        runs_by_hour=_runs_to_models(overview.runs_by_hour),
        drift=[_drift_to_model(drift) for drift in overview.drift],
        overrides=[
            FileOverridesModel(path=path.text, agents=agents)
            for path, agents in ranking[:_MAX_OVERRIDES]
        ],
        prompts=_prompts_to_model(overview),
        memories=[_memories_to_model(day) for day in overview.memories],
    )


def _runs_to_models(
    counts: Mapping[TimestampMs, Mapping[str, int]],
) -> list[OverviewRunsModel]:
    return [
        OverviewRunsModel(
            at=rfc3339(at), **{status.value: statuses.get(status, 0) for status in RunStatus}
        )
        for at, statuses in sorted(counts.items())
    ]


def _drift_to_model(drift: FileDrift) -> FileDriftModel:
    behind = sorted(drift.behind.items())
    return FileDriftModel(
        path=drift.path.text,
        up_to_date=drift.up_to_date,
        behind=[VersionsBehindModel(versions=n, agents=agents) for n, agents in behind],
        older=drift.older,
        not_reviewed=drift.not_reviewed,
        overridden=drift.overridden,
    )


def _prompts_to_model(overview: Overview) -> OverviewPromptsModel:
    by_template = sorted(
        overview.prompts_by_template.items(), key=lambda item: (-item[1].runs, item[0] or "")
    )
    return OverviewPromptsModel(
        by_template=[
            TemplatePromptsModel(
                template_id=id,
                template_name=overview.templates.get(id) if id else None,
                **_average(totals),
            )
            for id, totals in by_template
        ],
        by_day=[
            DayPromptsModel(at=rfc3339(at), **_average(totals))
            for at, totals in sorted(overview.prompts_by_day.items())
        ],
    )


def _average(totals: PromptTotals) -> dict[str, Any]:
    runs = max(totals.runs, 1)
    return {
        "runs": totals.runs,
        "tokens": round(totals.tokens / runs),
        "stable_tokens": round(totals.stable / runs),
        "blocks": [
            PromptBlockSizeModel(name=name, tokens=round(tokens / runs))
            for name, tokens in totals.blocks.items()
        ],
    }


def _memories_to_model(day: MemoryDay) -> MemoryDayModel:
    return MemoryDayModel(
        at=rfc3339(day.at), total=day.total, created=day.created, promoted=day.promoted
    )


ENDPOINTS: Final = (get_overview,)
