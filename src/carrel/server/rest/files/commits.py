"""REST endpoints that change many files at once: commits, moves, copies and directories."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from carrel.actions.files.commit_results import load_results
from carrel.actions.files.file_commit import CommitOptions, commit_files, require_access
from carrel.core.errors import (
    Busy,
    Conflict,
    Forbidden,
    NotFound,
    Refusal,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.core.overlay.file_changes import ChangeKind, FileChange
from carrel.ports.blobs import THREAD_THRESHOLD_BYTES
from carrel.server.http.endpoint import Endpoint, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.commit_models import (
    CommitBody,
    CommitModel,
    DirectoryBody,
    RemoveDirectoryQuery,
    TransferBody,
    changes_of_body,
    commit_to_model,
    deletion,
    transfer_of_body,
)
from carrel.server.rest.files.file_collections import (
    FILE_COLLECTIONS,
    AnyRequest,
    FileCollection,
)
from carrel.server.rest.files.files import MAX_BODY_BYTES, REASON_HEADER, RUN_HEADER, parse_reason

_REFUSALS: Final[tuple[type[Refusal], ...]] = (
    *(ValidationError, Forbidden, NotFound, WorkspaceConflict, WorkspaceTooLarge, Conflict, Busy),
)
_ChangeParser = Callable[[AnyRequest], Awaitable[Sequence[FileChange]]]


def _commit_endpoint(collection: FileCollection) -> Endpoint:
    async def parse(request: AnyRequest) -> Sequence[FileChange]:
        is_large = len(request.raw_body) > THREAD_THRESHOLD_BYTES
        if not (is_large and any(write.encoding == "base64" for write in request.body.writes)):
            return changes_of_body(collection, request.body)
        return await asyncio.to_thread(changes_of_body, collection, request.body)

    async def commit(request: AnyRequest) -> Response:
        """Apply many changes of files in one transaction, or none.

        All conditions are checked against the same state, and no path may be changed twice. If a
        change cannot be applied, nothing is, and `details.failed` names every one that failed.
        """
        return await _apply(collection, request, await parse(request))

    return endpoint(
        "POST",
        collection.sibling_root("commits"),
        body=CommitBody,
        rebuild=_rebuild(collection, parse),
        max_body=MAX_BODY_BYTES,
        permission=collection.write_permission,
        responses={200: CommitModel},
        refusals=_REFUSALS,
        headers=(RUN_HEADER, REASON_HEADER),
        idempotent=True,
        **_endpoint_options(collection, "commit"),
    )(commit)


def _transfer_endpoint(collection: FileCollection, kind: ChangeKind) -> Endpoint:
    async def parse(request: AnyRequest) -> Sequence[FileChange]:
        return (transfer_of_body(collection, kind, request.body),)

    async def move(request: AnyRequest) -> Response:
        """Move a file, or a directory with everything in it, in one commit.

        A file keeps its id, and its history continues with the versions before the move. A file
        that is there already is replaced, unless `ifNoneMatch` is `*`.
        """
        return await _apply(collection, request, await parse(request))

    async def copy(request: AnyRequest) -> Response:
        """Copy a file, or a directory with everything in it, in one commit.

        The history of a copy tells where it came from. A file that is there already is replaced,
        unless `ifNoneMatch` is `*`.
        """
        return await _apply(collection, request, await parse(request))

    return endpoint(
        "POST",
        collection.sibling_root(kind.value),
        body=TransferBody,
        rebuild=_rebuild(collection, parse),
        permission=collection.write_permission,
        responses={200: CommitModel},
        refusals=_REFUSALS,
        headers=(RUN_HEADER, REASON_HEADER),
        idempotent=True,
        **_endpoint_options(collection, kind.value),
    )(move if kind is ChangeKind.MOVE else copy)


def _make_directory_endpoint(collection: FileCollection) -> Endpoint:
    async def parse(request: AnyRequest) -> Sequence[FileChange]:
        path = collection.parse_path(request.body.path)
        return (FileChange(ChangeKind.MAKE_DIRECTORY, path),)

    async def make_directory(request: AnyRequest) -> Response:
        """Create a directory, which stays when it is empty. One that exists is kept."""
        return await _apply(collection, request, await parse(request))

    return endpoint(
        "POST",
        collection.sibling_root("directories"),
        body=DirectoryBody,
        rebuild=_rebuild(collection, parse),
        permission=collection.write_permission,
        responses={200: CommitModel},
        refusals=_REFUSALS,
        headers=(RUN_HEADER, REASON_HEADER),
        idempotent=True,
        **_endpoint_options(collection, "make_directory"),
    )(make_directory)


def _remove_directory_endpoint(collection: FileCollection) -> Endpoint:
    async def parse(request: AnyRequest) -> Sequence[FileChange]:
        return (deletion(collection.path(request), recursive=request.query.recursive),)

    async def remove_directory(request: AnyRequest) -> Response:
        """Delete an empty directory; with `recursive`, all files in it, in one commit.

        In a stack, the inherited files apply again.
        """
        return await _apply(collection, request, await parse(request))

    return endpoint(
        "DELETE",
        collection.sibling_root("directories") + "/{path...}",
        query=RemoveDirectoryQuery,
        rebuild=_rebuild(collection, parse),
        permission=collection.write_permission,
        responses={200: CommitModel},
        refusals=_REFUSALS,
        headers=(RUN_HEADER, REASON_HEADER),
        idempotent=True,
        **_endpoint_options(collection, "remove_directory", has_path=True),
    )(remove_directory)


def _endpoint_options(
    collection: FileCollection, operation: str, *, has_path: bool = False
) -> dict[str, Any]:
    options = collection.endpoint_options(operation)
    return options if has_path else {name: options[name] for name in ("id", "tag")}


async def _apply(
    collection: FileCollection, request: AnyRequest, changes: Sequence[FileChange]
) -> Response:
    """Commit the changes of a request."""
    require_access(request.actor, changes)
    stack = await collection.load_stack(request)
    reason = parse_reason(request) or getattr(getattr(request, "body", None), "reason", "")
    options = CommitOptions(_one_line(reason), _run(request), request.idempotency_key)
    result = await commit_files(request.ports, stack, request.actor, changes, options)
    return Response.json(commit_to_model(result))


def _run(request: AnyRequest) -> str | None:
    return request.header(b"carrel-run")


def _one_line(reason: str) -> str:
    if not reason.isprintable():
        raise ValidationError("reason must be one line")
    return reason


def _rebuild(
    collection: FileCollection, parse: _ChangeParser
) -> Callable[[AnyRequest, tuple[int, ...]], Awaitable[Response]]:
    """Build a lost response again, from the history of the commit."""

    async def rebuild(request: AnyRequest, versions: tuple[int, ...]) -> Response:
        stack, changes = await collection.load_stack(request), await parse(request)
        revision = request.committed_revision
        return Response.json(
            commit_to_model(await load_results(request.ports, stack, changes, revision))
        )

    return rebuild


ENDPOINTS: Final = tuple(
    endpoint
    for collection in FILE_COLLECTIONS
    for endpoint in (
        _commit_endpoint(collection),
        _transfer_endpoint(collection, ChangeKind.MOVE),
        _transfer_endpoint(collection, ChangeKind.COPY),
        _make_directory_endpoint(collection),
        _remove_directory_endpoint(collection),
    )
)
