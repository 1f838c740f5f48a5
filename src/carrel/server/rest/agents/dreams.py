"""REST endpoints for dreams (memory consolidation) and their review."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.memory import dreams
from carrel.actions.memory.dreams import DreamReport
from carrel.core.access import Permission
from carrel.core.errors import (
    Busy,
    Conflict,
    Forbidden,
    NotFound,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.core.identifiers import TimestampMs
from carrel.core.memory import dream_records
from carrel.core.memory.dream_records import DreamStatus
from carrel.core.memory.promotion_score import RejectionReason
from carrel.core.store.idempotency import id_from_number
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Total
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

_TAG: Final = "Dreams"
_PATH: Final = "/v1/agents/{id}/dreams"
_MAX_EXCERPT_LENGTH: Final = 200
"""Maximum characters of a rejected memory's content."""


class CreateDreamBody(RequestModel, frozen=True):
    dry_run: bool = False
    """Only report what would change, with the diff."""
    force: bool = False
    """Dream even if the agent's scheduled dreams are less than an interval apart."""


class RejectDreamBody(RequestModel, frozen=True):
    reason: Annotated[str, Meta(max_length=500)] = ""


class PromotedMemoryModel(ResponseModel, frozen=True):
    """A memory that was promoted to MEMORY.md."""

    memory_id: str
    content: str | None
    """None if the memory was deleted since."""
    score: float
    hits: int
    days: int


class RejectedMemoryModel(ResponseModel, frozen=True):
    """A candidate that was not promoted, with the reason."""

    memory_id: str
    content: str | None
    score: float
    reason: RejectionReason
    message: str


class DreamSummaryModel(ResponseModel, frozen=True):
    """A dream without its memories."""

    id: str
    agent_id: str
    status: DreamStatus
    by: str
    started_at: Rfc3339
    candidates: int
    skipped: int
    """Recalled memories that were promoted before."""
    promoted_count: int
    reasons: dict[str, int]
    """Number of candidates not promoted, by reason."""
    answered_at: Rfc3339 | None
    answered_by: str | None
    answer: str


class DreamModel(DreamSummaryModel, frozen=True):
    """A dream with its memories and diff."""

    dry_run: bool
    promoted: list[PromotedMemoryModel]
    rejected: list[RejectedMemoryModel]
    """All for a new dream; the 200 with the highest score for an earlier one."""
    evicted: list[str]
    """Memories whose lines were removed from MEMORY.md to make space."""
    diff: str
    """Diff of MEMORY.md; for an earlier dream only while it awaits review."""


class DreamPageModel(ResponseModel, frozen=True):
    items: list[DreamSummaryModel]
    total: Total
    next: str | None = None


def _summary_fields(dream: dream_records.Dream) -> dict[str, object]:
    return {
        "id": dream.id,
        "agent_id": dream.agent,
        "status": dream.status,
        "by": dream.by,
        "started_at": rfc3339(dream.started),
        "candidates": dream.candidates,
        "skipped": dream.skipped,
        "promoted_count": len(dream.promoted),
        "reasons": dict(dream.reasons),
        "answered_at": _optional_rfc3339(dream.answered),
        "answered_by": dream.answered_by,
        "answer": dream.reason,
    }


def _optional_rfc3339(at: TimestampMs | None) -> str | None:
    return None if at is None else rfc3339(at)


def _summary_to_model(dream: dream_records.Dream) -> DreamSummaryModel:
    return DreamSummaryModel(**_summary_fields(dream))  # type: ignore[arg-type]


def dream_to_model(report: DreamReport) -> DreamModel:
    dream, contents = report.dream, report.contents
    return DreamModel(
        **_summary_fields(dream),  # type: ignore[arg-type]
        dry_run=report.dry_run,
        promoted=[
            PromotedMemoryModel(
                memory_id=item.memory,
                content=contents.get(item.memory),
                score=item.score,
                hits=item.hits,
                days=item.days,
            )
            for item in dream.promoted
        ],
        rejected=[
            RejectedMemoryModel(
                memory_id=item.memory,
                content=_excerpt(contents, item.memory),
                score=item.score,
                reason=item.reason,
                message=item.why,
            )
            for item in dream.rejected
        ],
        evicted=list(dream.evicted),
        diff=report.diff,
    )


def _excerpt(contents: Mapping[str, str], memory: str) -> str | None:
    content = contents.get(memory)
    if content is None or len(content) <= _MAX_EXCERPT_LENGTH:
        return content
    return content[: _MAX_EXCERPT_LENGTH - 1] + "…"


@endpoint(
    "GET",
    _PATH,
    permission=Permission.WORKSPACE_READ,
    responses={200: DreamPageModel},
    refusals=(NotFound,),
    id="dreams_list",
    tag=_TAG,
)
async def list_dreams(request: Request) -> Response:
    """List the latest dreams of an agent, newest first."""
    records = await dreams.list_dreams(request.ports, request.actor, request.params["id"])
    items = [_summary_to_model(dream) for dream in records]
    return Response.json(DreamPageModel(items=items, total=len(items)))


async def _rebuild_sweep(request: Request[CreateDreamBody], versions: tuple[int, ...]) -> Response:
    return await _get_dream(request, id_from_number("drm", versions[-1]))


@endpoint(
    "POST",
    _PATH,
    permission=Permission.WORKSPACE_WRITE,
    body=CreateDreamBody,
    responses={200: DreamModel},
    refusals=(Forbidden, NotFound, Conflict, WorkspaceTooLarge, Busy),
    id="dreams_sweep",
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_sweep,
)
async def sweep(request: Request[CreateDreamBody]) -> Response:
    """Run a dream: promote frequently recalled memories to MEMORY.md.

    Reports why each other candidate was not promoted. If the agent's config sets `dreaming.review`,
    promotions are only proposed. If its dreams are scheduled, one within the interval after the
    last is refused with 409 and `nextDreamAt`, unless `force` is sent. Also requires
    `workspace:read`.
    """
    report = await dreams.sweep(
        request.ports,
        request.actor,
        request.params["id"],
        dry_run=request.body.dry_run,
        force=request.body.force,
        idempotency_key=request.idempotency_key,
    )
    return Response.json(dream_to_model(report))


async def _get_dream(request: Request, id: str) -> Response:
    report = await dreams.get(request.ports, request.actor, request.params["id"], id)
    return Response.json(dream_to_model(report))


@endpoint(
    "GET",
    _PATH + "/{dream}",
    permission=Permission.WORKSPACE_READ,
    responses={200: DreamModel},
    refusals=(NotFound, Conflict),
    id="dreams_get",
    tag=_TAG,
)
async def get(request: Request) -> Response:
    """Get a dream; while it awaits review, with its diff."""
    return await _get_dream(request, request.params["dream"])


async def _rebuild_review(request: Request, versions: tuple[int, ...]) -> Response:
    return await _get_dream(request, request.params["dream"])


@endpoint(
    "POST",
    _PATH + "/{dream}/approve",
    permission=Permission.TENANT_ADMIN,
    responses={200: DreamModel},
    refusals=(Forbidden, NotFound, WorkspaceConflict, Conflict, WorkspaceTooLarge, Busy),
    id="dreams_approve",
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_review,
)
async def approve(request: Request) -> Response:
    """Approve a proposed dream and write it to MEMORY.md.

    Refused if MEMORY.md changed since.
    """
    name, id = request.params["id"], request.params["dream"]
    return Response.json(
        dream_to_model(
            await dreams.approve(request.ports, request.actor, name, id, request.idempotency_key)
        )
    )


@endpoint(
    "POST",
    _PATH + "/{dream}/reject",
    permission=Permission.TENANT_ADMIN,
    body=RejectDreamBody,
    responses={200: DreamModel},
    refusals=(Forbidden, NotFound, Conflict, Busy),
    id="dreams_reject",
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_review,
)
async def reject(request: Request[RejectDreamBody]) -> Response:
    """Reject a proposed dream. MEMORY.md does not change."""
    name, id, reason = request.params["id"], request.params["dream"], request.body.reason
    report = await dreams.reject(
        request.ports, request.actor, name, id, reason, request.idempotency_key
    )
    return Response.json(dream_to_model(report))


ENDPOINTS: Final = (list_dreams, sweep, get, approve, reject)
