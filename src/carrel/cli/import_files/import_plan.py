"""Plans and executes an import. Writes are conditional on the compared version."""

from __future__ import annotations

import asyncio
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
    concurrency: int = 1
    """Number of files to write at once; the order of the writes stays that of the paths."""


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
    """Write all files that differ, in order of their paths.

    A failed file does not stop the others, unless the error would hit all of them.
    """
    pending = [step for step in steps if step.change != "equal"]
    for start in range(0, len(pending), action.concurrency):
        group = pending[start : start + action.concurrency]
        failures = await asyncio.gather(*[_try_write(files, local, step, action) for step in group])
        if any(failures):
            for later in pending[start + failures.index(True) + 1 :]:
                later.problem = _NOT_TRIED
            return
        on_progress("importing", start + len(group), len(pending))


async def _try_write(
    files: Files[AsyncDriver], local: LocalFiles, step: ImportStep, action: ImportOptions
) -> bool:
    """Write a file or record its problem; return whether all others would fail too."""
    try:
        await _write(files, local, step, action)
    except WorkspaceConflict:
        step.problem = "changed on the server during the import"
    except CarrelError as problem:
        step.problem = str(problem)
        return isinstance(problem, _FATAL_ERRORS)
    except OSError as problem:
        step.problem = problem.strerror or str(problem)
    return False


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
    step.version, step.redacted = stored.version, stored.data != content
    if stored.etag == step.etag:
        step.change = "equal"  # Redacted, it is what the layers below have already.
