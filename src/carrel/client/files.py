"""The files of one layer or stack over HTTP: reading and writing them, and their history."""

from __future__ import annotations

from typing import Any

from carrel.client.drivers import Driver, HttpRequest, Resource, Steps, operation
from carrel.client.errors import IncompleteWorkspace, InvalidResponse, Malformed
from carrel.client.file_models import File, FileRow, file_from_json, rows_of
from carrel.client.history import Explanation, Version, explanation_of, versions_of
from carrel.client.requests import api_path, decode_json, get_json, send_idempotent, send_with_retry


def drop_none(**headers: str | None) -> dict[str, str]:
    """Of these headers those that say something."""
    return {name.replace("_", "-"): text for name, text in headers.items() if text is not None}


class Files(Resource[Driver]):
    """Files at one place: of an agent, a template or a workspace, or the defaults."""

    def __init__(self, driver: Driver, *place: str) -> None:
        super().__init__(driver)
        self._place = place

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {'/'.join(self._place)}>"

    def _at(self, *path: str) -> str:
        return api_path(*self._place, "files", *path)

    @operation
    def get(self, path: str, *, raw: bool = False, version: int | None = None) -> Steps[File]:
        """A file as it is served now, or as it was at a version.

        ``raw`` leaves placeholders as they stand, which is what an editor edits.
        """
        query = {"raw": "true"} if raw else {}
        query |= {} if version is None else {"version": str(version)}
        return file_from_json((yield from get_json(HttpRequest("GET", self._at(path), query))))

    @operation
    def list(
        self, prefix: str = "", *, content: bool = False, raw: bool = False
    ) -> Steps[tuple[FileRow, ...]]:
        """All files whose path starts so, in order of path.

        With ``content`` each that can be had is a File; of others ``error`` says why not.
        """
        query = {"prefix": prefix} if prefix else {}
        query |= {"content": "true"} if content else {}
        query |= {"raw": "true"} if raw else {}
        return rows_of((yield from get_json(HttpRequest("GET", self._at(), query))))

    @operation
    def read(self, prefix: str = "") -> Steps[dict[str, str]]:
        """The content of all files whose path starts so, in one request. Raises Incomplete."""
        query = {"content": "true", "prefix": prefix}
        rows = rows_of((yield from get_json(HttpRequest("GET", self._at(), query))))
        lacking = [row for row in rows if not isinstance(row, File)]
        if lacking:
            raise IncompleteWorkspace({row.path: row.error or "it is not text" for row in lacking})
        return {row.path: row.content for row in rows if isinstance(row, File)}

    @operation
    def put(  # noqa: PLR0913 - what a writer may say beside the content, by name
        self,
        path: str,
        content: str | bytes,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        accept_template_update: bool = False,
        content_type: str | None = None,
        reason: str | None = None,
        run: str | None = None,
    ) -> Steps[File]:
        """Create or replace a file; what comes back is what was stored, secrets redacted.

        ``if_match`` is the etag that it must still have (``*``: it must exist);
        ``if_none_match="*"`` says that it must not exist. Raises Stale where it is otherwise.
        A pinned file is overridden only with ``accept_template_update``.
        """
        body: dict[str, Any] = {"content": text_of(content)}
        if accept_template_update:
            body["acceptTemplateUpdate"] = True
        if content_type is not None:
            body["contentType"] = content_type
        head = drop_none(If_Match=if_match, If_None_Match=if_none_match)
        head |= drop_none(Carrel_Reason=reason, Carrel_Run=run)
        answer = yield from send_idempotent(
            HttpRequest("PUT", self._at(path), headers=head, body=body)
        )
        return file_from_json(decode_json(answer))

    @operation
    def delete(
        self,
        path: str,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        reason: str | None = None,
        run: str | None = None,
    ) -> Steps[None]:
        """Remove a file; in a stack, go back to what lies beneath."""
        head = drop_none(If_Match=if_match, If_None_Match=if_none_match)
        head |= drop_none(Carrel_Reason=reason, Carrel_Run=run)
        yield from send_idempotent(HttpRequest("DELETE", self._at(path), headers=head))

    @operation
    def history(
        self, path: str, *, before: int | None = None, limit: int = 100
    ) -> Steps[tuple[Version, ...]]:
        """The versions of a file, newest first, deletions included; ``before`` is the last seen."""
        query = {"limit": str(limit)} | ({} if before is None else {"cursor": str(before)})
        return versions_of(
            (yield from get_json(HttpRequest("GET", self._at(path, "history"), query)))
        )

    @operation
    def diff(self, path: str, old: int | None = None, new: int | None = None) -> Steps[str]:
        """A unified diff of two versions, by default of what the newest changed."""
        named = {"from": old, "to": new}
        query = {name: str(number) for name, number in named.items() if number is not None}
        answer = yield from send_with_retry(HttpRequest("GET", self._at(path, "diff"), query))
        try:
            return answer.content.decode()
        except UnicodeDecodeError:
            raise InvalidResponse("the difference is not UTF-8") from None

    @operation
    def restore(
        self,
        path: str,
        version: int,
        *,
        if_match: str | None = None,
        accept_template_update: bool = False,
        reason: str | None = None,
    ) -> Steps[File]:
        """Make an earlier version the newest again."""
        body: dict[str, Any] = {"version": version}
        if accept_template_update:
            body["acceptTemplateUpdate"] = True
        head = drop_none(If_Match=if_match, Carrel_Reason=reason)
        request = HttpRequest("POST", self._at(path, "restore"), headers=head, body=body)
        return file_from_json(decode_json((yield from send_idempotent(request))))

    @operation
    def explain(self, path: str) -> Steps[Explanation]:
        """What every layer says of a path, and why the one that is shown won."""
        return explanation_of((yield from get_json(HttpRequest("GET", self._at(path, "explain")))))


def text_of(content: str | bytes) -> str:
    """Files hold text. Raises Malformed for what is none."""
    try:
        text = content.decode() if isinstance(content, bytes) else content
        text.encode()
    except UnicodeError:
        raise Malformed("the content is not valid UTF-8") from None
    return text
