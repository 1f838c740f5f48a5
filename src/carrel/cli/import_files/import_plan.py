"""Plans and executes an import. Writes are conditional on the compared version."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from carrel.cli.console import ProgressCallback
from carrel.cli.file_batches import is_small_text, split_into_batches
from carrel.cli.import_files.directory_scan import LocalFiles, digest_of
from carrel_client import (
    CarrelError,
    FileRow,
    Files,
    PutFile,
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
    """Number of files to write at once after a refusal; the order stays that of the paths."""


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
) -> int:
    """Write all files that differ, in batches of one commit each.

    If a batch is refused, its files are written one at a time, and a failed file does not stop the
    others. An error that would hit all of them stops the import. Returns the number of refused
    batches.
    """
    pending = [step for step in steps if step.change != "equal"]
    written = refused = 0
    for batch in split_into_batches(_read_contents(local, pending)):
        try:
            is_committed = await _try_commit(files, batch, local, action)
        except _FATAL_ERRORS as problem:
            batch[0][0].problem = str(problem)
            _mark_not_tried(pending[pending.index(batch[0][0]) + 1 :])
            break
        if not is_committed:
            refused += len(batch) > 1
            if not await _write_each(files, batch, action, pending):
                break
        written += len(batch)
        on_progress("importing", written, len(pending))
    return refused


def _read_contents(
    local: LocalFiles, steps: list[ImportStep]
) -> Iterator[tuple[tuple[ImportStep, bytes], int]]:
    """Read the scanned contents; records the problem of a file that changed since."""
    for step in steps:
        try:
            content = local.read(step.path)
        except OSError as problem:
            step.problem = problem.strerror or str(problem)
        else:
            yield (step, content), len(content)


async def _try_commit(
    files: Files[AsyncDriver],
    batch: list[tuple[ImportStep, bytes]],
    local: LocalFiles,
    action: ImportOptions,
) -> bool:
    """Write a batch in one commit; return whether it was accepted."""
    if len(batch) == 1:
        return False
    changes = [
        PutFile(
            path=step.path,
            content=content,
            if_match=step.etag,
            if_none_match="*" if step.etag is None else None,
            accept_template_update=action.accept,
        )
        for step, content in batch
    ]
    try:
        result = await files.commit(changes, reason=action.reason)
    except _FATAL_ERRORS:
        raise
    except CarrelError:
        return False
    for change in result.changes:
        step, _ = batch[change.index]
        step.version = change.version or step.version
        step.redacted = change.sha256 != local.files[step.path]
        if change.etag == step.etag:
            step.change = "equal"  # Redacted, it is what the layers below have already.
    return True


async def _write_each(
    files: Files[AsyncDriver],
    batch: list[tuple[ImportStep, bytes]],
    action: ImportOptions,
    pending: list[ImportStep],
) -> bool:
    """Write files one at a time; return whether the import may continue."""
    for start in range(0, len(batch), action.concurrency):
        group = batch[start : start + action.concurrency]
        failures = await asyncio.gather(*[_try_write(files, *item, action) for item in group])
        if any(failures):
            failed, _ = group[failures.index(True)]
            _mark_not_tried(pending[pending.index(failed) + 1 :])
            return False
    return True


def _mark_not_tried(steps: list[ImportStep]) -> None:
    for step in steps:
        step.problem = _NOT_TRIED


async def _try_write(
    files: Files[AsyncDriver], step: ImportStep, content: bytes, action: ImportOptions
) -> bool:
    """Write a file or record its problem; return whether all others would fail too."""
    try:
        await _write(files, step, content, action)
    except WorkspaceConflict:
        step.problem = "changed on the server during the import"
    except CarrelError as problem:
        step.problem = str(problem)
        return isinstance(problem, _FATAL_ERRORS)
    return False


async def _write(
    files: Files[AsyncDriver], step: ImportStep, content: bytes, action: ImportOptions
) -> None:
    absent = "*" if step.etag is None else None
    write = files.put if is_small_text(content) else files.upload
    stored = await write(
        step.path,
        content,
        if_match=step.etag,
        if_none_match=absent,
        accept_template_update=action.accept,
        reason=action.reason,
    )
    step.version, step.redacted = stored.version, stored.sha256 != digest_of(content)
    if stored.etag == step.etag:
        step.change = "equal"  # Redacted, it is what the layers below have already.
