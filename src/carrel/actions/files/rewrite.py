"""Read-modify-write of one file of an agent, with optimistic retry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import TypeAlias

from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor, require_write_access
from carrel.core.errors import Busy, NotFound, WorkspaceConflict
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.compose import File
from carrel.core.overlay.write_condition import WriteCondition
from carrel.ports import CorruptContent, Ports

RewriteFunction: TypeAlias = Callable[[bytes | None], Awaitable[bytes | None]]
"""Maps the current unrendered content to the new; None if it cannot be changed."""


class RewriteOutcome(Enum):
    """Outcome of a rewrite."""

    CHANGED = "changed"
    SAME = "same"
    """The content was already so; nothing was written."""
    UNFIT = "unfit"
    """The file has nothing that this rewrite can change."""


async def find_file(
    ports: Ports, stack: Stack, path: Path, *, inherited_only: bool = False
) -> File | None:
    """Resolve a path like `get_file`; None if there is no such file."""
    try:
        return await files.get_file(ports, stack, path, inherited_only=inherited_only)
    except NotFound:
        return None


async def read_stored(ports: Ports, file: File) -> bytes:
    """Read a file's stored content. Raises CorruptContent with the path."""
    try:
        return await files.read_content(ports, file, raw=True)
    except CorruptContent as problem:
        raise CorruptContent(f"{file.path} cannot be read: {problem}") from problem


@retry_on_conflict()
async def rewrite(
    ports: Ports, actor: Actor, stack: Stack, path: Path, change: RewriteFunction, reason: str
) -> RewriteOutcome:
    """Rewrite a file with one conditional commit, retried on conflict.

    Nothing is written if the content stays the same. Raises Forbidden, WorkspaceTooLarge, Busy,
    and CorruptContent if the file cannot be read.
    """
    rules = await load_rules(ports, actor.tenant)
    require_write_access(actor, stack[0], path, rules.policy.agent_writable)
    file = await find_file(ports, stack, path)
    before = None if file is None else await read_stored(ports, file)
    after = await change(before)
    if after is None:
        return RewriteOutcome.UNFIT
    if rules.redactor.redact(after).content == before:
        return RewriteOutcome.SAME
    try:
        await files.put(ports, stack, path, after, actor, _write_options(file, reason))
    except WorkspaceConflict:
        raise Busy.with_conflicts(str(path)) from None
    return RewriteOutcome.CHANGED


def _write_options(file: File | None, reason: str) -> WriteOptions:
    if file is None:
        return WriteOptions(WriteCondition(absent=True), reason=reason)
    return WriteOptions(WriteCondition(frozenset({file.etag})), file.entry.type, reason)
