"""Files: reading and writing them, and what became of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from msgspec.structs import replace

from carrel.actions.events import streams
from carrel.actions.files import files
from carrel.actions.files import history as files_history
from carrel.actions.files.files import WriteOptions
from carrel.actions.files.history import Explanation
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay import compose
from carrel.core.overlay.edit import WriteCondition
from carrel.core.store import tree
from carrel.core.store.event import UPDATED, EventFilter
from carrel.core.text_validation import single_line
from carrel.ports import CorruptContent
from carrel.server.python.caller import CallerContext, Resource, when
from carrel.server.python.event_feed import EventStream

Stacked = Callable[[], Awaitable[Stack]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A file without its content."""

    path: str
    content_type: str
    version: int
    etag: str
    updated_at: datetime
    size: int
    sha256: str
    source: str
    """Where it comes from: workspace, template, defaults, agent-override and so on."""
    file_class: str
    """live, pinned or managed."""
    update_available: bool
    """Whether the layers beneath offer something else than what this was decided from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File(FileRow):
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One line of a file's history."""

    version: int
    updated_at: datetime
    author: str
    reason: str
    run: str | None
    deleted: bool
    size: int | None
    sha256: str | None


def row_of(file: compose.File) -> FileRow:
    return FileRow(
        path=file.path.text,
        content_type=file.entry.type,
        version=file.head.version,
        etag=file.etag,
        updated_at=when(file.head.at),
        size=file.blob.size,
        sha256=_hex(file.blob),
        source=file.origin or file.source.kind,
        file_class=file.file_class,
        update_available=file.upstream is not None,
    )


def file_of(file: compose.File, content: bytes) -> File:
    row = row_of(file)
    return File(
        **{name: getattr(row, name) for name in FileRow.__slots__}, content=content.decode()
    )


def version_of(version: tree.Version) -> Version:
    entry = version.head.entry
    return Version(
        version=version.head.version,
        updated_at=when(version.head.at),
        author=version.by,
        reason=version.why,
        run=version.run,
        deleted=entry is None,
        size=entry.blob.size if entry else None,
        sha256=_hex(entry.blob) if entry else None,
    )


def _hex(blob: tree.Blob) -> str:
    return blob.digest.removeprefix("sha256:")


def _utf8(content: str | bytes) -> bytes:
    """Files hold text. Raises Malformed for bytes that are none."""
    try:
        return content.encode() if isinstance(content, str) else content.decode().encode()
    except UnicodeError:
        raise ValidationError("the content is not valid UTF-8") from None


def _intent(
    if_match: str | None, if_absent: bool, type: str | None, why: str, run: str | None
) -> WriteOptions:
    etags = None if if_match is None else frozenset({if_match})
    reason = single_line(why, "why") if why else ""
    return WriteOptions(WriteCondition(etags, absent=if_absent), type, reason, run)


class Files(Resource):
    """The files of one stack. Refusals are raised: Missing, Stale, TooLarge, Malformed, Busy."""

    def __init__(self, seat: CallerContext, stack: Stacked) -> None:
        super().__init__(seat)
        self._stack = stack

    async def get(self, path: str, *, version: int | None = None, raw: bool = False) -> File:
        """A file as it is now, or as it was at a version, which may be before it was deleted.

        ``raw`` leaves its placeholders as they stand.
        """
        stack = await self._stack()
        if version is not None:
            return file_of(*await files.read_version(self._ports, stack, Path(path), version))
        found = await files.find_file(self._ports, stack, Path(path))
        return file_of(found, await files.read_content(self._ports, found, raw=raw))

    async def list(self, prefix: str = "") -> tuple[FileRow, ...]:
        """All files whose path starts so, in order of path, without their content."""
        workspace = await files.list_files(self._ports, await self._stack(), prefix)
        return tuple(map(row_of, workspace.files.values()))

    async def read(self, prefix: str = "", *, raw: bool = False) -> dict[str, str]:
        """The content of all files whose path starts so, in one go."""
        workspace = await files.list_files(self._ports, await self._stack(), prefix)
        contents = await files.read_contents(self._ports, workspace, raw=raw)
        if contents.failed:
            raise CorruptContent(
                "; ".join(f"{path}: {contents.failed[path]}" for path in contents.failed)
            )
        return {path.text: content.decode() for path, content in contents.found.items()}

    async def put(  # noqa: PLR0913 - what a writer may say beside the content, by name
        self,
        path: str,
        content: str | bytes,
        *,
        if_match: str | None = None,
        if_absent: bool = False,
        content_type: str | None = None,
        reason: str = "",
        run: str | None = None,
        accept_template_update: bool = False,
    ) -> File:
        """Create or replace a file; what comes back is what was stored, secrets redacted.

        ``if_match`` is the etag that it must still have (``*``: it must exist), ``if_absent``
        says that it must not exist. Raises Stale, with ``current_version``, where it is otherwise.
        ``run`` is the id of the run that writes. Overriding an agent's pinned file needs
        ``accept_template_update``.
        """
        intent = _intent(if_match, if_absent, content_type, reason, run)
        intent = replace(intent, accept_template_update=accept_template_update is True)
        stack, body = await self._stack(), _utf8(content)
        written = await files.put(self._ports, stack, Path(path), body, self._actor, intent)
        return file_of(written.file, written.content)

    async def delete(
        self, path: str, *, if_match: str | None = None, reason: str = "", run: str | None = None
    ) -> int:
        """Remove a file; in a stack, go back to what lies beneath. Says the tombstone's version."""
        intent = _intent(if_match, False, None, reason, run)
        stack = await self._stack()
        head = await files.delete(self._ports, stack, Path(path), self._actor, intent)
        return head.version

    async def history(
        self, path: str, *, before: int | None = None, limit: int = 100
    ) -> tuple[Version, ...]:
        """The versions of a file, newest first, deletions included."""
        stack = await self._stack()
        page = await files_history.page(self._ports, stack, Path(path), before=before, limit=limit)
        return tuple(map(version_of, page.items))

    async def diff(self, path: str, old: int | None = None, new: int | None = None) -> str:
        """A unified diff of two versions, by default of what the newest changed."""
        return await files_history.diff(self._ports, await self._stack(), Path(path), old, new)

    async def restore(
        self, path: str, version: int, *, if_match: str | None = None, reason: str = ""
    ) -> File:
        """Make an earlier version the newest again."""
        intent = _intent(if_match, False, None, reason, None)
        stack = await self._stack()
        written = await files.restore(self._ports, stack, Path(path), version, self._actor, intent)
        return file_of(written.file, written.content)

    async def explain(self, path: str) -> Explanation:
        """What every layer says of a path, and why the one that is shown won."""
        return await files_history.explain(self._ports, await self._stack(), Path(path))

    def events(self, since: str | None = None) -> EventStream:
        """What is written here, from now on or after the event with the cursor ``since``.

        ``"0"`` is before everything that is kept.
        """

        async def listen() -> tuple[str, streams.Batches]:
            scopes, types = frozenset(await self._stack()), frozenset({UPDATED})
            wanted = EventFilter(self._actor.tenant, scopes=scopes, types=types)
            return await streams.listen(self._ports, wanted, since)

        return follow(self._seat, listen)


def follow(
    seat: CallerContext, listen: Callable[[], Awaitable[tuple[str, streams.Batches]]]
) -> EventStream:
    feed = EventStream(listen)
    seat.feeds.add(feed)
    return feed
