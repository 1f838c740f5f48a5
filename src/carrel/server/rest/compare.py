"""REST endpoint that compares agents, layers, runs and versions."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions import comparison
from carrel.actions.comparison import ComparedPath, ComparedSide, ComparisonRequest
from carrel.core.access import Permission
from carrel.core.comparison import REFERENCE_SYNTAX, ComparedKind, ComparisonStatus
from carrel.core.errors import Forbidden, NotFound, ValidationError
from carrel.core.overlay.compose import File
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import MAX_PAGE_ITEMS
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import PositiveInt, Rfc3339, Sha256, rfc3339

_STATUSES: Final = "|".join(ComparisonStatus)
Count = Annotated[int, Meta(ge=0)]
Reference = Annotated[str, Meta(min_length=1, max_length=1400, description=f"{REFERENCE_SYNTAX}.")]


class CompareQuery(RequestModel, frozen=True):
    left: Reference
    right: Reference
    prefix: Annotated[str, Meta(max_length=1024)] = ""
    status: (
        Annotated[
            str,
            Meta(
                pattern=f"^({_STATUSES})(,({_STATUSES})){{0,4}}$",
                description="Comma-separated; all by default.",
            ),
        ]
        | None
    ) = None
    raw: Annotated[
        bool, Meta(description="Compare the texts before placeholders are replaced.")
    ] = False
    diff: Annotated[
        bool,
        Meta(description=f"Add unified diffs; a page has at most {comparison.MAX_DIFFS} then."),
    ] = False
    cursor: Annotated[str, Meta(max_length=1024)] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_ITEMS)] = 100


class ComparedSideModel(ResponseModel, frozen=True):
    reference: str
    kind: ComparedKind
    id: str
    """Empty for the defaults."""
    name: str


class ComparedFileModel(ResponseModel, frozen=True):
    path: str
    version: PositiveInt
    """Version as its workspace counts it."""
    source: str
    """Layer that it comes from."""
    size: Count
    """Bytes before placeholders are replaced."""
    sha256: Sha256
    updated_at: Rfc3339


class ComparedPathModel(ResponseModel, frozen=True):
    path: str
    status: ComparisonStatus
    left: ComparedFileModel | None
    right: ComparedFileModel | None
    diff: str | None
    """Null if not requested, or if a file is too large for one."""
    diff_truncated: bool


class ComparisonCountsModel(ResponseModel, frozen=True):
    """Paths of each status on all pages."""

    same: Count
    changed: Count
    only_left: Count
    only_right: Count
    unknown: Count


class ComparisonModel(ResponseModel, frozen=True):
    left: ComparedSideModel
    right: ComparedSideModel
    counts: ComparisonCountsModel
    items: list[ComparedPathModel]
    next: str | None


@endpoint(
    "GET",
    "/v1/compare",
    permission=Permission.WORKSPACE_READ,
    query=CompareQuery,
    responses={200: ComparisonModel},
    refusals=(ValidationError, NotFound, Forbidden),
    id="compare",
    tag="Files",
)
async def compare(request: Request[None, CompareQuery]) -> Response:
    """Compare the files of two agents, templates, workspaces, runs or versions, by path.

    A template is compared with what it inherits from the defaults. `status` is `same`, `changed`,
    `only-left`, `only-right`, or `unknown` if the versions of that time were pruned. At a time, an
    agent has the layers, the name and the rules of now with the files of then; a run has all of
    then. Runs also require `runs:read`.
    """
    query = request.query
    statuses = frozenset(map(ComparisonStatus, query.status.split(","))) if query.status else None
    result = await comparison.compare(
        request.ports,
        request.actor,
        ComparisonRequest(
            left=query.left,
            right=query.right,
            prefix=query.prefix,
            statuses=statuses or frozenset(ComparisonStatus),
            raw=query.raw,
            diff=query.diff,
            after=query.cursor,
            limit=query.limit,
        ),
    )
    counts = {status: result.counts.get(status, 0) for status in ComparisonStatus}
    return Response.json(
        ComparisonModel(
            left=_side_to_model(query.left, result.left),
            right=_side_to_model(query.right, result.right),
            counts=ComparisonCountsModel(*(counts[status] for status in ComparisonStatus)),
            items=[_path_to_model(item) for item in result.items],
            next=result.next,
        )
    )


def _side_to_model(reference: str, side: ComparedSide) -> ComparedSideModel:
    return ComparedSideModel(
        reference=reference, kind=side.reference.kind, id=side.id, name=side.name
    )


def _path_to_model(item: ComparedPath) -> ComparedPathModel:
    return ComparedPathModel(
        path=item.path.text,
        status=item.status,
        left=_file_to_model(item.left),
        right=_file_to_model(item.right),
        diff=item.diff,
        diff_truncated=item.diff_truncated,
    )


def _file_to_model(file: File | None) -> ComparedFileModel | None:
    if file is None:
        return None
    return ComparedFileModel(
        path=file.path.text,
        version=file.version,
        source=file.source_label or file.source.kind,
        size=file.blob.size,
        sha256=file.blob.digest.removeprefix("sha256:"),
        updated_at=rfc3339(file.head.at),
    )


ENDPOINTS: Final = (compare,)
