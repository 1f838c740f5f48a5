"""Commits the uploads and remote deletions of a sync pass together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from carrel.cli.file_batches import split_into_batches
from carrel_client import ChangedFile, DeleteFile, FileRow, PutFile
from carrel_client.drivers import AsyncDriver
from carrel_client.errors import Refusal, Unauthenticated
from carrel_client.workspaces import AgentWorkspace


@dataclass(frozen=True, slots=True)
class RemoteChange:
    """An upload, or the deletion of a file on the server if there is no content."""

    path: str
    content: bytes | None
    row: FileRow | None
    """The file on the server that the decision was based on."""

    def to_file_change(self) -> PutFile | DeleteFile:
        row = self.row
        if self.content is None:
            return DeleteFile(path=self.path, if_match=row.etag if row else None)
        if row is None:
            return PutFile(path=self.path, content=self.content, if_none_match="*")
        return PutFile(
            path=self.path,
            content=self.content,
            if_match=row.etag,
            content_type=row.content_type,
        )


async def commit_changes(
    agent: AgentWorkspace[AsyncDriver],
    changes: Sequence[RemoteChange],
    on_committed: Callable[[RemoteChange, ChangedFile], None],
) -> None:
    """Commit changes in batches; those of a refused batch are left to be tried one at a time.

    Raises CarrelError if the server cannot be reached.
    """
    for batch in split_into_batches(_with_sizes(changes)):
        if len(batch) == 1:
            continue
        try:
            result = await agent.commit([change.to_file_change() for change in batch])
        except Refusal as problem:
            if isinstance(problem, Unauthenticated):
                raise
            continue
        for changed in result.changes:
            on_committed(batch[changed.index], changed)


def _with_sizes(changes: Sequence[RemoteChange]) -> Iterator[tuple[RemoteChange, int]]:
    for change in changes:
        yield change, len(change.content or b"")
