"""What an import would change, and changing it: each file on the condition that it is as seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from carrel.cli.console import Watch
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

_ENDS_ALL: Final = (ServerUnreachable, ServerError, Unauthenticated)
_LEFT: Final = "not tried"


@dataclass(frozen=True, slots=True)
class ImportAction:
    reason: str | None
    accept: bool
    """Override pinned files of an agent."""


@dataclass(slots=True)
class ImportStep:
    """One file: what is to become of it, and what did."""

    path: str
    change: str
    """new, changed or equal."""
    over: str = ""
    """Where what is there now comes from."""
    etag: str | None = None
    version: int | None = None
    redacted: bool = False
    problem: str = ""


def planned(local: LocalFiles, there: Mapping[str, FileRow]) -> list[ImportStep]:
    """In order of path."""
    return list(_steps(local, there))


def _steps(local: LocalFiles, there: Mapping[str, FileRow]) -> Iterator[ImportStep]:
    for path, digest in sorted(local.files.items()):
        row = there.get(path)
        if row is None:
            yield ImportStep(path, "new")
        else:
            change = "equal" if row.sha256 == digest else "changed"
            yield ImportStep(path, change, row.source, row.etag, row.version)


async def execute_plan(
    files: Files[AsyncDriver],
    local: LocalFiles,
    steps: list[ImportStep],
    how: ImportAction,
    watch: Watch,
) -> None:
    """Write what is not equal, one file after another. What fails stops no other, unless it would
    fail for all."""
    due = [step for step in steps if step.change != "equal"]
    for count, step in enumerate(due, 1):
        try:
            await _write(files, local, step, how)
        except WorkspaceConflict:
            step.problem = "it was changed there meanwhile"
        except _ENDS_ALL as problem:
            step.problem = str(problem)
            for later in due[count:]:
                later.problem = _LEFT
            return
        except CarrelError as problem:
            step.problem = str(problem)
        except OSError as problem:
            step.problem = problem.strerror or str(problem)
        watch("importing", count, len(due))


async def _write(
    files: Files[AsyncDriver], local: LocalFiles, step: ImportStep, how: ImportAction
) -> None:
    content = local.read(step.path)
    absent = "*" if step.etag is None else None
    stored = await files.put(
        step.path,
        content,
        if_match=step.etag,
        if_none_match=absent,
        accept_template_update=how.accept,
        reason=how.reason,
    )
    step.version, step.redacted = stored.version, stored.content.encode() != content
