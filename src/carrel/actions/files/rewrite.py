"""Changing a file of an agent by what it says: read, rewrite, and put if it is still the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Final, TypeAlias

from carrel.actions.files import files
from carrel.actions.files.files import Intent
from carrel.actions.policy.tenant_rules import rules_of
from carrel.core.access import Actor, may_write
from carrel.core.errors import Busy, Missing, Stale
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.compose import File
from carrel.core.overlay.edit import Condition
from carrel.ports import Corrupt, World

_ATTEMPTS: Final = 10

Rewrite: TypeAlias = Callable[[bytes | None], Awaitable[bytes | None]]
"""From what the agent has, placeholders as they stand, to what it shall have; None: it cannot."""


class Rewritten(Enum):
    """What became of a file."""

    CHANGED = "changed"
    SAME = "same"
    """It said so already, and nothing was written."""
    UNFIT = "unfit"
    """It has nothing that could be changed in this way."""


async def seen(world: World, stack: Stack, path: Path) -> File | None:
    """What the workspace shows at a path, if anything."""
    try:
        return await files.look(world, stack, path)
    except Missing:
        return None


async def stored(world: World, file: File) -> bytes:
    """The bytes of a file as they are stored. Raises Corrupt, by the name of the file."""
    try:
        return await files.content(world, file, raw=True)
    except Corrupt as problem:
        raise Corrupt(f"{file.path} cannot be read: {problem}") from problem


async def rewrite(
    world: World, actor: Actor, stack: Stack, path: Path, change: Rewrite, why: str
) -> Rewritten:
    """One conditional commit, decided again while others are quicker; none where nothing changes.

    Raises Forbidden, TooLarge, or Busy; and Corrupt for a file that cannot be read.
    """
    for _ in range(_ATTEMPTS):
        rules = await rules_of(world, actor.tenant)
        may_write(actor, stack[0], path, rules.policy.agent_writable)
        file = await seen(world, stack, path)
        before = None if file is None else await stored(world, file)
        after = await change(before)
        if after is None:
            return Rewritten.UNFIT
        if rules.redactor.redact(after).content == before:
            return Rewritten.SAME
        try:
            await files.put(world, stack, path, after, actor, _intent(file, why))
        except Stale:
            continue
        return Rewritten.CHANGED
    raise Busy(f"{path} is being written by many others")


def _intent(file: File | None, why: str) -> Intent:
    if file is None:
        return Intent(Condition(absent=True), why=why)
    return Intent(Condition(frozenset({file.etag})), file.entry.type, why)
