"""REST endpoints for a run's snapshot: files and diff."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from carrel.actions.files import files
from carrel.actions.runs import diff as runs_diff
from carrel.actions.runs import runs, snapshots
from carrel.actions.runs.diff import Difference
from carrel.core.access import Permission
from carrel.core.errors import Conflict, NotFound, RangeNotSatisfiable, ValidationError
from carrel.core.identifiers import Path
from carrel.core.overlay.compose import File
from carrel.server.http.byte_ranges import wants_bytes
from carrel.server.http.endpoint import (
    IF_NONE_MATCH,
    Request,
    RequestModel,
    ResponseModel,
    endpoint,
)
from carrel.server.http.not_modified import etag_matches
from carrel.server.http.response import JSON_TYPE, HeaderPairs, Response, encode
from carrel.server.rest.files.file_bytes import (
    BYTE_HEADERS,
    BYTE_RESPONSE_HEADERS,
    VARY,
    bytes_response,
)
from carrel.server.rest.files.file_models import (
    OverlayFileListModel,
    OverlayFileModel,
    PositiveInt,
    overlay_file_to_model,
)
from carrel.server.rest.files.large_file_json import PLACEHOLDER, is_large, stream_file

_TAG: Final = "Runs"
_IMMUTABLE_CACHE: Final = "private, max-age=31536000, immutable"


class RunDiffQuery(RequestModel, frozen=True):
    path: Annotated[str, Meta(max_length=1024)] | None = None


class ChangedFileModel(ResponseModel, frozen=True):
    path: str
    change: str
    before_version: PositiveInt | None
    after_version: PositiveInt | None
    diff: str | msgspec.UnsetType = msgspec.UNSET


class RunDiffModel(ResponseModel, frozen=True):
    run_id: str
    changes: list[ChangedFileModel]


@endpoint(
    "GET",
    "/v1/runs/{id}/files",
    permission=Permission.WORKSPACE_READ,
    responses={200: OverlayFileListModel},
    refusals=(NotFound,),
    id="runs_files",
    tag=_TAG,
)
async def list_run_files(request: Request) -> Response:
    """List the files of a run's snapshot."""
    run = await runs.get(request.ports, request.actor, request.params["id"])
    snapshot = await snapshots.load_manifest(request.ports, run)
    return Response.json(
        OverlayFileListModel(
            files=[overlay_file_to_model(file) for file in snapshot.files.values()]
        )
    )


@endpoint(
    "GET",
    "/v1/runs/{id}/files/{path...}",
    permission=Permission.WORKSPACE_READ,
    responses={200: OverlayFileModel, 206: None, 304: None},
    byte_responses=frozenset({200, 206}),
    refusals=(ValidationError, NotFound, Conflict, RangeNotSatisfiable),
    headers=(IF_NONE_MATCH, *BYTE_HEADERS),
    response_headers=("ETag", "Cache-Control", *BYTE_RESPONSE_HEADERS),
    id="runs_file",
    tag=_TAG,
)
async def get_run_file(request: Request) -> Response:
    """Get a file of a run's snapshot. Its content never changes.

    As JSON, or with `Accept: application/octet-stream` as bytes of its own content type.
    """
    run = await runs.get(request.ports, request.actor, request.params["id"])
    file = await snapshots.find_file(request.ports, run, Path(request.params["path"]))
    response = await _file_response(request, file)
    await snapshots.verify_snapshot_kept(request.ports, run)
    return response


async def _file_response(request: Request, file: File) -> Response:
    cache = (b"cache-control", _IMMUTABLE_CACHE.encode())
    headers: HeaderPairs = [(b"etag", file.etag.encode()), cache, VARY]
    if etag_matches(request, file.etag):
        return Response(304, b"", headers)
    if wants_bytes(request):
        return await bytes_response(request, file, [cache], raw=False)
    if is_large(file):
        model = encode(overlay_file_to_model(file, PLACEHOLDER, raw=True))
        return await stream_file(request.ports, file, model, headers)
    content = await files.read_content(request.ports, file)
    model = encode(overlay_file_to_model(file, content))
    return Response(200, model, [JSON_TYPE, *headers])


@endpoint(
    "GET",
    "/v1/runs/{id}/diff",
    query=RunDiffQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: RunDiffModel},
    refusals=(ValidationError, NotFound),
    id="runs_diff",
    tag=_TAG,
)
async def get_run_diff(request: Request[None, RunDiffQuery]) -> Response:
    """Compare the snapshot with the current workspace; with a path, as text diff."""
    run = await runs.get(request.ports, request.actor, request.params["id"])
    if request.query.path is None:
        differences = await runs_diff.diff(request.ports, run)
        return Response.json(
            RunDiffModel(
                run_id=run.id, changes=[_difference_to_model(item) for item in differences]
            )
        )
    difference, text = await runs_diff.diff_file(request.ports, run, Path(request.query.path))
    return Response.json(
        RunDiffModel(
            run_id=run.id, changes=[_difference_to_model(difference, text)] if difference else []
        )
    )


def _difference_to_model(difference: Difference, text: str | None = None) -> ChangedFileModel:
    before, after = difference.before, difference.after
    return ChangedFileModel(
        path=difference.path.text,
        change=difference.kind,
        before_version=before.version if before else None,
        after_version=after.version if after else None,
        diff=msgspec.UNSET if text is None else text,
    )


ENDPOINTS: Final = (list_run_files, get_run_file, get_run_diff)
