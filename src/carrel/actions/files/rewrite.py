"""Changing a file of an agent by what it says: read, rewrite, and put if it is still the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final, TypeAlias

from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.policy.tenant_rules import load_rules
from carrel.core.access import Actor, may_write
from carrel.core.errors import Busy, NotFound, WorkspaceConflict
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.compose import File
from carrel.core.overlay.edit import WriteCondition
from carrel.ports import CorruptContent, Ports

_ATTEMPTS: Final = 10

Rewrite: TypeAlias = Callable[[bytes | None], Awaitable[bytes | None]]
"""From what the agent has, placeholders as they stand, to what it shall have; None: it cannot."""


class RewriteOutcome(Enum):
    """What became of a file."""

    CHANGED = "changed"
    SAME = "same"
    """It said so already, and nothing was written."""
    UNFIT = "unfit"
    """It has nothing that could be changed in this way."""


async def find_file_or_none(ports: Ports, stack: Stack, path: Path) -> File | None:
    """What the workspace shows at a path, if anything."""
    try:
        return await files.find_file(ports, stack, path)
    except NotFound:
        return None


async def read_stored(ports: Ports, file: File) -> bytes:
    """The bytes of a file as they are stored. Raises Corrupt, by the name of the file."""
    try:
        return await files.read_content(ports, file, raw=True)
    except CorruptContent as problem:
        raise CorruptContent(f"{file.path} cannot be read: {problem}") from problem


async def rewrite(
    ports: Ports, actor: Actor, stack: Stack, path: Path, change: Rewrite, reason: str
) -> RewriteOutcome:
    """One conditional commit, decided again while others are quicker; none where nothing changes.

    Raises Forbidden, TooLarge, or Busy; and Corrupt for a file that cannot be read.
    """
    for _ in range(_ATTEMPTS):
        rules = await load_rules(ports, actor.tenant)
        may_write(actor, stack[0], path, rules.policy.agent_writable)
        file = await find_file_or_none(ports, stack, path)
        before = None if file is None else await read_stored(ports, file)
        after = await change(before)
        if after is None:
            return RewriteOutcome.UNFIT
        if rules.redactor.redact(after).content == before:
            return RewriteOutcome.SAME
        try:
            await files.put(ports, stack, path, after, actor, _intent(file, reason))
        except WorkspaceConflict:
            continue
        return RewriteOutcome.CHANGED
    raise Busy(f"{path} is being written by many others")


def _intent(file: File | None, reason: str) -> WriteOptions:
    if file is None:
        return WriteOptions(WriteCondition(absent=True), reason=reason)
    return WriteOptions(WriteCondition(frozenset({file.etag})), file.entry.type, reason)
