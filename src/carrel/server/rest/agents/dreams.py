"""Agents' dreams, and their review, over HTTP."""

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
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import When, rfc3339

_TAG: Final = "Dreams"
_AT: Final = "/v1/agents/{id}/dreams"
_LONGEST: Final = 200
"""Characters of a memory that is only mentioned."""


class SweepBody(RequestModel, frozen=True):
    dry_run: bool = False
    """Only say what would be, with the diff."""


class RejectBody(RequestModel, frozen=True):
    reason: Annotated[str, Meta(max_length=500)] = ""


class Promoted(ResponseModel, frozen=True):
    memory_id: str
    content: str | None
    """None for what was forgotten since."""
    score: float
    hits: int
    days: int


class Rejected(ResponseModel, frozen=True):
    memory_id: str
    content: str | None
    score: float
    reason: RejectionReason
    message: str


class DreamRow(ResponseModel, frozen=True):
    """A dream without what it tells of each memory."""

    id: str
    agent_id: str
    status: DreamStatus
    by: str
    started_at: When
    candidates: int
    skipped: int
    """Memories that came up and were promoted before."""
    promoted_count: int
    reasons: dict[str, int]
    """How many were not promoted, for each reason."""
    answered_at: When | None
    answered_by: str | None
    answer: str


class Dream(DreamRow, frozen=True):
    dry_run: bool
    promoted: list[Promoted]
    rejected: list[Rejected]
    """All of them in the answer to a sweep; of an earlier dream the 200 that scored best."""
    evicted: list[str]
    """Memories whose lines in MEMORY.md made room."""
    diff: str
    """Of MEMORY.md; of an earlier dream only while it waits for a review."""


class Dreams(ResponseModel, frozen=True):
    items: list[DreamRow]
    next: str | None = None


def _facts(dream: dream_records.Dream) -> dict[str, object]:
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
        "answered_at": _when(dream.answered),
        "answered_by": dream.answered_by,
        "answer": dream.reason,
    }


def _when(at: TimestampMs | None) -> str | None:
    return None if at is None else rfc3339(at)


def _row(dream: dream_records.Dream) -> DreamRow:
    return DreamRow(**_facts(dream))  # type: ignore[arg-type]


def dream_shown(report: DreamReport) -> Dream:
    dream, said = report.dream, report.contents
    return Dream(
        **_facts(dream),  # type: ignore[arg-type]
        dry_run=report.dry_run,
        promoted=[
            Promoted(
                memory_id=one.memory,
                content=said.get(one.memory),
                score=one.score,
                hits=one.hits,
                days=one.days,
            )
            for one in dream.promoted
        ],
        rejected=[
            Rejected(
                memory_id=one.memory,
                content=_excerpt(said, one.memory),
                score=one.score,
                reason=one.reason,
                message=one.why,
            )
            for one in dream.rejected
        ],
        evicted=list(dream.evicted),
        diff=report.diff,
    )


def _excerpt(said: Mapping[str, str], memory: str) -> str | None:
    content = said.get(memory)
    if content is None or len(content) <= _LONGEST:
        return content
    return content[: _LONGEST - 1] + "…"


@endpoint(
    "GET",
    _AT,
    permission=Permission.WORKSPACE_READ,
    responses={200: Dreams},
    refusals=(NotFound,),
    id="dreams_list",
    tag=_TAG,
)
async def listing(call: Request) -> Response:
    """The last dreams of an agent, newest first."""
    found = await dreams.listing(call.ports, call.actor, call.params["id"])
    return Response.json(Dreams(items=[_row(one) for one in found]))


async def _swept(call: Request[SweepBody], versions: tuple[int, ...]) -> Response:
    found = await dreams.listing(call.ports, call.actor, call.params["id"])
    if not found:
        raise NotFound("the dream is there no more")
    return await _shown(call, found[0].id)


@endpoint(
    "POST",
    _AT,
    permission=Permission.WORKSPACE_WRITE,
    body=SweepBody,
    responses={200: Dream},
    refusals=(Forbidden, NotFound, Conflict, WorkspaceTooLarge, Busy),
    id="dreams_sweep",
    tag=_TAG,
    idempotent=True,
    rebuild=_swept,
)
async def sweep(call: Request[SweepBody]) -> Response:
    """Dream: take what came up often into MEMORY.md, and say of all else why not.

    Where the agent's config has `dreaming.review`, what would be promoted is only proposed.
    """
    name, dry = call.params["id"], call.body.dry_run
    report = await dreams.sweep(call.ports, call.actor, name, dry_run=dry, receipt=call.receipt)
    return Response.json(dream_shown(report))


async def _shown(call: Request, id: str) -> Response:
    report = await dreams.get(call.ports, call.actor, call.params["id"], id)
    return Response.json(dream_shown(report))


@endpoint(
    "GET",
    _AT + "/{dream}",
    permission=Permission.WORKSPACE_READ,
    responses={200: Dream},
    refusals=(NotFound, Conflict),
    id="dreams_get",
    tag=_TAG,
)
async def get(call: Request) -> Response:
    """Look at one dream; while it waits for a review, with its diff."""
    return await _shown(call, call.params["dream"])


async def _answered(call: Request, versions: tuple[int, ...]) -> Response:
    return await _shown(call, call.params["dream"])


@endpoint(
    "POST",
    _AT + "/{dream}/approve",
    permission=Permission.TENANT_ADMIN,
    responses={200: Dream},
    refusals=(Forbidden, NotFound, WorkspaceConflict, Conflict, WorkspaceTooLarge, Busy),
    id="dreams_approve",
    tag=_TAG,
    idempotent=True,
    rebuild=_answered,
)
async def approve(call: Request) -> Response:
    """Let what was proposed land, to the byte; refused if MEMORY.md has changed since."""
    name, id = call.params["id"], call.params["dream"]
    return Response.json(
        dream_shown(await dreams.approve(call.ports, call.actor, name, id, call.receipt))
    )


@endpoint(
    "POST",
    _AT + "/{dream}/reject",
    permission=Permission.TENANT_ADMIN,
    body=RejectBody,
    responses={200: Dream},
    refusals=(Forbidden, NotFound, Conflict, Busy),
    id="dreams_reject",
    tag=_TAG,
    idempotent=True,
    rebuild=_answered,
)
async def reject(call: Request[RejectBody]) -> Response:
    """Let nothing of what was proposed land."""
    name, id, reason = call.params["id"], call.params["dream"], call.body.reason
    report = await dreams.reject(call.ports, call.actor, name, id, reason, call.receipt)
    return Response.json(dream_shown(report))


ENDPOINTS: Final = (listing, sweep, get, approve, reject)
