"""The files of one layer or stack: reading, writing, history and events."""

from __future__ import annotations

from typing import Any, Final

from carrel_client.byte_streams import Source, Target
from carrel_client.drivers import Driver, Steps, operation
from carrel_client.errors import CarrelError, IncompleteWorkspace
from carrel_client.event_iterators import event_stream
from carrel_client.event_reader import UPDATED, EventReader, EventSource
from carrel_client.file_bytes import DownloadedFile, download, read_bytes, upload
from carrel_client.file_changes import content_to_json
from carrel_client.file_commits import FileCommits
from carrel_client.file_models import File, FileRow, Skill, file_from_json, rows_from_json
from carrel_client.history import Explanation, Version, explanation_from_json, versions_from_json
from carrel_client.http_messages import HttpRequest
from carrel_client.models import model_from_json, models_from_json
from carrel_client.provenance import VersionReaders
from carrel_client.requests import (
    api_path,
    encode_segment,
    get_json,
    items_of,
    send_idempotent,
    send_json,
    send_with_retry,
    write_headers,
)

_MAX_VERSIONS: Final = 500
"""Versions that one request may list."""


class Files(FileCommits[Driver]):
    """The files of an agent, a template or a workspace, or the defaults."""

    def __init__(self, driver: Driver, *location: str) -> None:
        super().__init__(driver, *location)
        self._root = api_path(*location, "files")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'/'.join(self._location)}>"

    def _path(self, path: str, *segments: str) -> str:
        return "/".join((self._root, encode_segment(path), *segments))

    @operation
    def get(self, path: str, *, raw: bool = False, version: int | None = None) -> Steps[File]:
        """Return a file as served now, or at a version.

        ``raw`` keeps placeholders, which is what an editor edits. Raises NotFound.
        """
        query = _read_query(raw=raw, version=version)
        return file_from_json((yield from get_json(self._path(path), query)))

    @operation
    def list(
        self,
        prefix: str = "",
        *,
        content: bool = False,
        raw: bool = False,
        last: int | None = None,
    ) -> Steps[tuple[FileRow, ...]]:
        """Return the files whose path starts with a prefix, in order of path, or the last of them.

        With ``content`` each is a File if its content is available, else ``error`` has the reason.
        """
        query = {"prefix": prefix} if prefix else {}
        query |= {"content": "true"} if content else {}
        query |= {"raw": "true"} if raw else {}
        query |= {"last": str(last)} if last is not None else {}
        return rows_from_json((yield from get_json(self._root, query)))

    @operation
    def skills(self) -> Steps[tuple[Skill, ...]]:
        """Return the skills in order of name, invalid ones with their problems."""
        listing = yield from get_json(api_path(*self._location, "skills"))
        return models_from_json(Skill, items_of(listing))

    @operation
    def read(self, prefix: str = "", *, raw: bool = False) -> Steps[dict[str, str]]:
        """The contents of all files whose path starts with a prefix, in one request.

        Raises IncompleteWorkspace if one is not available.
        """
        query = {"content": "true", "prefix": prefix} | ({"raw": "true"} if raw else {})
        listing = yield from get_json(self._root, query)
        try:
            contents = {row["path"]: row["content"] for row in listing["files"]}
        except (KeyError, TypeError):
            raise _incomplete(listing) from None
        if any("encoding" in row for row in listing["files"]):
            raise _incomplete(listing)
        return contents

    @operation
    def read_bytes(
        self,
        path: str,
        *,
        start: int | None = None,
        end: int | None = None,
        raw: bool = False,
        version: int | None = None,
    ) -> Steps[bytes]:
        """The bytes of a file, or those from ``start`` up to ``end``, in memory.

        Raises NotFound, and RangeNotSatisfiable if it has no byte at ``start``.
        """
        query = _read_query(raw=raw, version=version)
        return (yield from read_bytes(self._path(path), query, start, end))

    @operation
    def download(
        self, path: str, target: Target, *, raw: bool = False, version: int | None = None
    ) -> Steps[DownloadedFile]:
        """Write the bytes of a file to a path or a binary file, without holding them.

        An existing file is replaced at once, when all bytes have arrived and match their digest.
        After a broken connection only the rest is requested. Raises NotFound.
        """
        query = _read_query(raw=raw, version=version)
        return (yield from download(self._path(path), query, target))

    @operation
    def put(  # noqa: PLR0913 - conditions and provenance, by name
        self,
        path: str,
        content: str | bytes,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        accept_template_update: bool = False,
        content_type: str | None = None,
        reason: str | None = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[File]:
        """Create or replace a file; returns what was stored, secrets redacted.

        ``if_match`` is the etag that it must have (``*``: it must exist); ``if_none_match="*"``:
        it must not exist. Raises WorkspaceConflict otherwise. A pinned file is overridden only
        with ``accept_template_update``.
        """
        body = content_to_json(path, content, content_type)
        if accept_template_update:
            body["acceptTemplateUpdate"] = True
        headers = write_headers(
            if_match=if_match, if_none_match=if_none_match, reason=reason, run_id=run_id
        )
        return file_from_json(
            (
                yield from send_json(
                    "PUT",
                    self._path(path),
                    body,
                    headers=headers,
                    idempotency_key=idempotency_key,
                )
            )
        )

    @operation
    def upload(  # noqa: PLR0913 - conditions and provenance, by name
        self,
        path: str,
        source: Source,
        *,
        content_type: str | None = None,
        if_match: str | None = None,
        if_none_match: str | None = None,
        accept_template_update: bool = False,
        reason: str | None = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[FileRow]:
        """Write bytes, a file of the disk or a binary stream, without holding them.

        The digest is sent with them and checked by the server. The media type is guessed from the
        path. ``sha256`` of the result differs if secrets were redacted. Otherwise like ``put``.
        """
        headers = write_headers(
            if_match=if_match, if_none_match=if_none_match, reason=reason, run_id=run_id
        )
        return (
            yield from upload(
                self._path(path),
                path,
                source,
                headers,
                content_type,
                accept_template_update=accept_template_update,
                idempotency_key=idempotency_key,
            )
        )

    @operation
    def delete(
        self,
        path: str,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        reason: str | None = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[None]:
        """Delete a file; in a stack, revert to the lower layers."""
        headers = write_headers(
            if_match=if_match, if_none_match=if_none_match, reason=reason, run_id=run_id
        )
        request = HttpRequest("DELETE", self._path(path), headers=headers)
        yield from send_idempotent(request, idempotency_key)

    @operation
    def history(
        self, path: str, *, before: int | None = None, limit: int = 100
    ) -> Steps[tuple[Version, ...]]:
        """The versions of a file, newest first, deletions included.

        Those of a moved file go on with the versions at its earlier paths.
        """
        versions: list[Version] = []
        query = {} if before is None else {"cursor": str(before)}
        while len(versions) < limit:
            query["limit"] = str(min(_MAX_VERSIONS, limit - len(versions)))
            page = yield from get_json(self._path(path, "history"), query)
            versions += versions_from_json(page)
            if not page.get("next"):
                break
            query["cursor"] = str(page["next"])
        return tuple(versions)

    @operation
    def diff(
        self, path: str, from_version: int | None = None, to_version: int | None = None
    ) -> Steps[str]:
        """A unified diff of two versions, by default of the newest and the one before."""
        versions = {"from": from_version, "to": to_version}
        query = {name: str(version) for name, version in versions.items() if version is not None}
        request = HttpRequest("GET", self._path(path, "diff"), query)
        return (yield from send_with_retry(request)).text()

    @operation
    def redact(self, path: str, version: int) -> Steps[None]:
        """Remove the content of one version; its number, author and time stay."""
        yield from send_json("POST", self._path(path, "redact"), {"version": version})

    @operation
    def restore(  # noqa: PLR0913 - conditions and provenance, by name
        self,
        path: str,
        version: int,
        *,
        if_match: str | None = None,
        accept_template_update: bool = False,
        reason: str | None = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[File]:
        """Write the content of an earlier version as the newest."""
        body: dict[str, Any] = {"version": version}
        if accept_template_update:
            body["acceptTemplateUpdate"] = True
        headers = write_headers(if_match=if_match, reason=reason, run_id=run_id)
        path = self._path(path, "restore")
        return file_from_json(
            (
                yield from send_json(
                    "POST", path, body, headers=headers, idempotency_key=idempotency_key
                )
            )
        )

    @operation
    def readers(
        self, path: str, version: int, *, cursor: str = "", limit: int = 50
    ) -> Steps[VersionReaders]:
        """A page of the runs that read a version of a file, newest first."""
        query = {"version": str(version), "limit": str(limit)}
        query |= {"cursor": cursor} if cursor else {}
        return model_from_json(
            VersionReaders, (yield from get_json(self._path(path, "readers"), query))
        )

    @operation
    def explain(self, path: str) -> Steps[Explanation]:
        """The entry of every layer at a path, and why the served one wins."""
        return explanation_from_json((yield from get_json(self._path(path, "explain"))))

    @event_stream
    def events(self, *, since: str | None = None, include_connected: bool = False) -> EventReader:
        """Stream the writes to these files, from now on or after the cursor ``since``.

        ``since="0"`` starts at the beginning. With ``include_connected`` every connection adds an
        event of type CONNECTED.
        """
        return EventReader(self._event_source(), since, include_connected=include_connected)

    def _event_source(self) -> Steps[EventSource]:
        scopes = yield from self._event_scopes()
        return EventSource(api_path("events"), {"types": UPDATED}, scopes)

    def _event_scopes(self) -> Steps[frozenset[tuple[str, str]]]:
        """Kind and name of the scopes whose writes change these files."""
        yield from ()
        kind, name = (*self._location, "")[:2]
        return frozenset({(kind.removesuffix("s") if name else kind, name)})


def _incomplete(listing: Any) -> CarrelError:
    rows = rows_from_json(listing)
    missing = [row for row in rows if not isinstance(row, File) or row.encoding is not None]
    return IncompleteWorkspace({row.path: row.error or "it is not text" for row in missing})


def _read_query(*, raw: bool, version: int | None) -> dict[str, str]:
    query = {"raw": "true"} if raw else {}
    return query if version is None else {**query, "version": str(version)}
