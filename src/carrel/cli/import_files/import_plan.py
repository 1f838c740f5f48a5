"""Plans and executes an import. Writes are conditional on the compared version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from carrel.cli.console import ProgressCallback
from carrel.cli.import_files.directory_scan import LocalFiles
from carrel_client import (
    CarrelError,
    FileRow,
    Files,
    ServerError,
    ServerUnreachable,
    Unauthenticated,
    WorkspaceConflict,
)
from carrel_client.drivers import AsyncDriver

_FATAL_ERRORS: Final = (ServerUnreachable, ServerError, Unauthenticated)
_NOT_TRIED: Final = "not tried"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    reason: str | None
    accept: bool
    """Override pinned files of an agent."""


@dataclass(slots=True)
class ImportStep:
    """One file of an import: the planned change and its result."""

    path: str
    change: str
    """new, changed or equal."""
    source: str = ""
    """Source of the file that is replaced."""
    etag: str | None = None
    version: int | None = None
    redacted: bool = False
    problem: str = ""


def plan_import(local: LocalFiles, remote: Mapping[str, FileRow]) -> list[ImportStep]:
    """Compare local and remote files. The steps are ordered by path."""
    return list(_plan_steps(local, remote))


def _plan_steps(local: LocalFiles, remote: Mapping[str, FileRow]) -> Iterator[ImportStep]:
    for path, digest in sorted(local.files.items()):
        row = remote.get(path)
        if row is None:
            yield ImportStep(path, "new")
        else:
            change = "equal" if row.sha256 == digest else "changed"
            yield ImportStep(path, change, row.source, row.etag, row.version)


async def execute_plan(
    files: Files[AsyncDriver],
    local: LocalFiles,
    steps: list[ImportStep],
    action: ImportOptions,
    on_progress: ProgressCallback,
) -> None:
    """Write all files that differ, one at a time.

    A failed file does not stop the others, unless the error would hit all of them.
    """
    pending = [step for step in steps if step.change != "equal"]
    for count, step in enumerate(pending, 1):
        try:
            await _write(files, local, step, action)
        except WorkspaceConflict:
            step.problem = "changed on the server during the import"
        except _FATAL_ERRORS as problem:
            step.problem = str(problem)
            for later in pending[count:]:
                later.problem = _NOT_TRIED
            return
        except CarrelError as problem:
            step.problem = str(problem)
        except OSError as problem:
            step.problem = problem.strerror or str(problem)
        on_progress("importing", count, len(pending))


async def _write(
    files: Files[AsyncDriver], local: LocalFiles, step: ImportStep, action: ImportOptions
) -> None:
    content = local.read(step.path)
    absent = "*" if step.etag is None else None
    stored = await files.put(
        step.path,
        content,
        if_match=step.etag,
        if_none_match=absent,
        accept_template_update=action.accept,
        reason=action.reason,
    )
    step.version, step.redacted = stored.version, stored.content.encode() != content
