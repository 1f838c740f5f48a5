"""Operations that change many files at once: commits, moves, copies and directories."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from carrel_client.drivers import Driver, Resource, Steps, operation
from carrel_client.file_changes import (
    CommitResult,
    DirectoryEntry,
    FileChange,
    change_to_json,
    commit_from_json,
    entries_from_json,
)
from carrel_client.http_messages import HttpRequest
from carrel_client.requests import (
    api_path,
    drop_none,
    encode_segment,
    get_json,
    send_idempotent,
    send_json,
    write_headers,
)


class FileCommits(Resource[Driver]):
    """Changes of many files of one layer, each operation applied whole or not at all."""

    def __init__(self, driver: Driver, *location: str) -> None:
        super().__init__(driver)
        self._location = location

    @operation
    def commit(
        self,
        changes: Iterable[FileChange],
        *,
        reason: str | None = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[CommitResult]:
        """Apply up to 1,000 changes in one transaction, or none.

        They are checked against the same state, and no path may be changed twice. Raises the
        refusals of single writes; ``failed_changes`` of the refusal names every change that failed.
        """
        body: dict[str, Any] = {"writes": [change_to_json(change) for change in changes]}
        return (yield from self._commit("commits", body, reason, run_id, idempotency_key))

    @operation
    def move(  # noqa: PLR0913 - conditions and provenance, by name
        self,
        path: str,
        to: str,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        accept_template_update: bool = False,
        reason: str | None = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[CommitResult]:
        """Move a file, or a directory with everything in it.

        A file keeps its id and its history. What is at ``to`` is replaced, unless
        ``if_none_match="*"``. Raises NotFound, WorkspaceConflict and Conflict.
        """
        body = _transfer(path, to, if_match, if_none_match, accept=accept_template_update)
        return (yield from self._commit("move", body, reason, run_id, idempotency_key))

    @operation
    def copy(  # noqa: PLR0913 - conditions and provenance, by name
        self,
        path: str,
        to: str,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        accept_template_update: bool = False,
        reason: str | None = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[CommitResult]:
        """Copy a file, or a directory with everything in it; no content is sent."""
        body = _transfer(path, to, if_match, if_none_match, accept=accept_template_update)
        return (yield from self._commit("copy", body, reason, run_id, idempotency_key))

    @operation
    def list_directory(self, path: str = "") -> Steps[tuple[DirectoryEntry, ...]]:
        """Return the files and directories that are directly in a directory, in order of path."""
        query = {"depth": "1"} | ({"prefix": f"{path}/"} if path else {})
        listing = yield from get_json(api_path(*self._location, "files"), query)
        return tuple(entries_from_json(listing))

    @operation
    def stat(self, path: str) -> Steps[DirectoryEntry | None]:
        """Return the file or directory at a path, without content; None if there is none.

        Raises NotFound if the workspace itself does not exist.
        """
        query = {"depth": "1", "prefix": path}
        listing = yield from get_json(api_path(*self._location, "files"), query)
        return next((entry for entry in entries_from_json(listing) if entry.path == path), None)

    @operation
    def make_directory(
        self, path: str, *, reason: str | None = None, idempotency_key: str | None = None
    ) -> Steps[CommitResult]:
        """Create a directory, which stays when it is empty. Raises Conflict for a file."""
        body = {"path": path}
        return (yield from self._commit("directories", body, reason, None, idempotency_key))

    @operation
    def remove_directory(
        self,
        path: str,
        *,
        recursive: bool = False,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[CommitResult]:
        """Delete an empty directory; with ``recursive``, everything in it in one commit.

        Raises NotFound, and Conflict if it is not empty.
        """
        target = f"{api_path(*self._location, 'directories')}/{encode_segment(path)}"
        query = {"recursive": "true"} if recursive else {}
        request = HttpRequest("DELETE", target, query, headers=write_headers(reason=reason))
        response = yield from send_idempotent(request, idempotency_key)
        return commit_from_json(response.json())

    def _commit(
        self,
        endpoint: str,
        body: dict[str, Any],
        reason: str | None,
        run_id: str | None,
        idempotency_key: str | None,
    ) -> Steps[CommitResult]:
        path = api_path(*self._location, endpoint)
        body = body if reason is None else {**body, "reason": reason}
        headers = write_headers(run_id=run_id)
        result = yield from send_json(
            "POST", path, body, headers=headers, idempotency_key=idempotency_key
        )
        return commit_from_json(result)


def _transfer(
    path: str, to: str, if_match: str | None, if_none_match: str | None, *, accept: bool
) -> dict[str, Any]:
    conditions = {"ifMatch": if_match, "ifNoneMatch": if_none_match}
    accepted = {"acceptTemplateUpdate": True} if accept else {}
    return {"from": path, "to": to, **drop_none(conditions), **accepted}
