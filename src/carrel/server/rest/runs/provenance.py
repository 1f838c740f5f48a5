"""REST endpoints for provenance: from an answer to versions, authors and reviews, and back."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.actions import provenance
from carrel.actions.provenance import FileProvenance, Provenance
from carrel.core.access import Permission
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import Scope
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.file_reviews import ReviewKind
from carrel.core.runs import Audience, Run, RunStatus
from carrel.core.sessions.session import SpeakerRole, TranscriptHit, truncate
from carrel.core.store.entry import Version
from carrel.server.http.endpoint import Request, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.agents.prompts import PromptBlockModel, block_to_model
from carrel.server.rest.agents.session_entries import parse_position
from carrel.server.rest.agents.session_models import SESSIONS_PATH, SESSIONS_TAG
from carrel.server.rest.files.file_models import PositiveInt, Rfc3339, Sha256, rfc3339

_PREVIEW_CHARS: Final = 200
Count = Annotated[int, Meta(ge=0)]
NumberParameter = Annotated[int, Meta(ge=1)]


class AuthorModel(ResponseModel, frozen=True):
    """Author of a change: a person, or the key of a service or agent."""

    id: str
    name: str | None
    """Name of a person; null if deleted, or if the caller may not read people."""


class ProvenanceRunModel(ResponseModel, frozen=True):
    run_id: str
    workflow_id: str
    agent_id: str | None
    session_id: str | None
    status: RunStatus
    scope: Audience
    started_at: Rfc3339
    ended_at: Rfc3339 | None
    reason: str | None
    abandoned_at: Rfc3339 | None
    started_by: AuthorModel
    kept: bool


class ProvenanceEntryModel(ResponseModel, frozen=True):
    session_id: str
    number: PositiveInt
    role: SpeakerRole
    timestamp: Rfc3339
    preview: str
    truncated: bool


class ProvenancePromptModel(ResponseModel, frozen=True):
    etag: str
    chars: Count
    tokens: Count
    blocks: list[PromptBlockModel]


class FileVersionModel(ResponseModel, frozen=True):
    """A version in its layer."""

    layer: str
    layer_id: str
    version: PositiveInt
    author: AuthorModel
    reason: str
    written_at: Rfc3339
    run_id: str | None
    """Run that wrote it."""
    redacted: bool


class ReviewKeyModel(ResponseModel, frozen=True):
    id: str
    name: str


class FileReviewModel(ResponseModel, frozen=True):
    """How a pinned file was approved, by whom, when and through which key."""

    kind: ReviewKind
    by: AuthorModel
    at: Rfc3339
    reason: str
    key: ReviewKeyModel | None


class FileProvenanceModel(ResponseModel, frozen=True):
    path: str
    version: PositiveInt
    """Version as the workspace counts it."""
    sha256: Sha256
    source: str
    file_class: FileClass = msgspec.field(name="class")
    in_prompt: bool
    written: FileVersionModel | None
    """The version in its layer; null if it was erased."""
    origin: FileVersionModel | None
    """Version of the template or defaults that a pin was accepted from, if it is still there."""
    review: FileReviewModel | None


class RunProvenanceModel(ResponseModel, frozen=True, kw_only=True):
    run: ProvenanceRunModel | None
    entries: list[ProvenanceEntryModel]
    more_entries: bool
    prompt: ProvenancePromptModel | None
    """Null if the snapshot was released or the prompt cannot be assembled."""
    files: list[FileProvenanceModel]


class EntryProvenanceModel(RunProvenanceModel, frozen=True, kw_only=True):
    entry: ProvenanceEntryModel


@endpoint(
    "GET",
    "/v1/runs/{id}/provenance",
    permission=Permission.RUNS_READ,
    responses={200: RunProvenanceModel},
    refusals=(NotFound,),
    id="runs_provenance",
    tag="Runs",
)
async def get_run_provenance(request: Request) -> Response:
    """Get what a run wrote and what it was made of.

    The session entries it wrote, the blocks of its prompt, and each file's version with its author
    and, if it is pinned, its review. Also requires `workspace:read`.
    """
    chain = await provenance.load_run_provenance(request.ports, request.actor, request.params["id"])
    return Response.json(RunProvenanceModel(**_fields(chain)))


@endpoint(
    "GET",
    SESSIONS_PATH + "/{sid}/entries/{number}/provenance",
    permission=Permission.WORKSPACE_READ,
    params={"number": NumberParameter},
    responses={200: EntryProvenanceModel},
    refusals=(ValidationError, NotFound),
    id="sessions_entry_provenance",
    tag=SESSIONS_TAG,
)
async def get_entry_provenance(request: Request) -> Response:
    """Get the run that wrote a session entry, and what it was made of.

    Like the provenance of the run. Also requires `runs:read`.
    """
    params = request.params
    number = parse_position(params["number"]) or 0
    if number < 1:
        raise ValidationError("the number of an entry must be positive")
    session, entry, chain = await provenance.load_entry_provenance(
        request.ports, request.actor, params["id"], params["sid"], number
    )
    model = entry_to_model(TranscriptHit(session.id, entry))
    return Response.json(EntryProvenanceModel(entry=model, **_fields(chain)))


def _fields(chain: Provenance) -> dict[str, Any]:
    prompt = chain.prompt
    return {
        "run": chain.run and _run_to_model(chain, chain.run),
        "entries": [entry_to_model(hit) for hit in chain.entries],
        "more_entries": chain.has_more_entries,
        "prompt": prompt
        and ProvenancePromptModel(
            etag=prompt.etag,
            chars=prompt.chars,
            tokens=prompt.tokens,
            blocks=[block_to_model(block) for block in prompt.blocks],
        ),
        "files": [_file_to_model(chain, item) for item in chain.files],
    }


def _run_to_model(chain: Provenance, run: Run) -> ProvenanceRunModel:
    return ProvenanceRunModel(
        run_id=run.id,
        workflow_id=run.workflow_id,
        agent_id=run.agent,
        session_id=run.session,
        status=run.status,
        scope=run.mode,
        started_at=rfc3339(run.started_at),
        ended_at=rfc3339(run.ended_at) if run.ended_at else None,
        reason=run.reason,
        abandoned_at=rfc3339(run.abandoned_at) if run.abandoned_at else None,
        started_by=_author(chain, run.author),
        kept=run.snapshot_kept,
    )


def _author(chain: Provenance, id: str) -> AuthorModel:
    return AuthorModel(id=id, name=chain.names.get(id))


def entry_to_model(hit: TranscriptHit) -> ProvenanceEntryModel:
    preview, truncated = truncate(hit.entry.content, _PREVIEW_CHARS)
    return ProvenanceEntryModel(
        session_id=hit.session,
        number=hit.entry.sequence,
        role=hit.entry.role,
        timestamp=rfc3339(hit.entry.at),
        preview=preview,
        truncated=truncated,
    )


def _file_to_model(chain: Provenance, item: FileProvenance) -> FileProvenanceModel:
    file, version, review = item.file, item.version, item.review
    return FileProvenanceModel(
        path=file.path.text,
        version=file.version,
        sha256=file.blob.digest.removeprefix("sha256:"),
        source=file.source_label or file.source.kind,
        file_class=file.file_class,
        in_prompt=item.in_prompt,
        written=None if version is None else _version_to_model(chain, file.source, version),
        origin=item.origin and _version_to_model(chain, *item.origin),
        review=FileReviewModel(
            kind=review.kind,
            by=_author(chain, version.author),
            at=rfc3339(version.head.at),
            reason=version.reason,
            key=ReviewKeyModel(id=review.key.id, name=review.key.name) if review.key else None,
        )
        if review and version
        else None,
    )


def _version_to_model(chain: Provenance, scope: Scope, version: Version) -> FileVersionModel:
    return FileVersionModel(
        layer=scope.kind,
        layer_id=scope.name,
        version=version.head.version,
        author=_author(chain, version.author),
        reason=version.reason,
        written_at=rfc3339(version.head.at),
        run_id=version.run,
        redacted=version.redacted,
    )


ENDPOINTS: Final = (get_run_provenance, get_entry_provenance)
