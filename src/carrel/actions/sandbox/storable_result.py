"""Result of a command without what it did to the skills that it was given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from carrel.actions.sandbox.command_inputs import CommandInputs
from carrel.core.identifiers import Path
from carrel.core.skills.sandbox_directory import (
    SANDBOX_DIRECTORY,
    is_in_sandbox_directory,
    is_reserved_for_skills,
)
from carrel.core.store.entry import FileAttributes
from carrel.ports.sandbox import ChangedFile, CommandResult

_PARENTS: Final = frozenset(SANDBOX_DIRECTORY.parents)


class StorableResult:
    """A result of which nothing in the directory of skills is changed."""

    def __init__(self, result: CommandResult, start: CommandInputs) -> None:
        self._result = result
        unstored = _PARENTS - start.directories.keys()
        self.changed: Mapping[Path, ChangedFile] = {
            path: file for path, file in result.changed.items() if not is_reserved_for_skills(path)
        }
        self.deleted = frozenset(
            path
            for path in result.deleted
            if not is_in_sandbox_directory(path) and path not in unstored
        )
        parents = {parent for path in self.changed for parent in path.parents}
        self.directories: Mapping[Path, FileAttributes] | None = None
        if result.directories is not None:
            self.directories = {
                path: attributes
                for path, attributes in result.directories.items()
                if not is_in_sandbox_directory(path) and (path not in unstored or path in parents)
            }
        self.exit_code, self.timed_out = result.exit_code, result.timed_out
        self.stdout, self.stderr = result.stdout, result.stderr
        self.duration_ms, self.root = result.duration_ms, result.root
        self.discard_reason = result.discard_reason
        self.notes = result.notes

    async def content(self, path: Path) -> bytes:
        return await self._result.content(path)

    def read_parts(self, path: Path) -> Iterator[bytes]:
        return self._result.read_parts(path)
