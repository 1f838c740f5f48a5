"""From settings to the files that mirror transcripts, and to when sessions have had their time."""

from __future__ import annotations

import asyncio
from typing import Final

from carrel.actions.sessions.transcript_mirror import expire, run_mirror
from carrel.adapters.filesystem.transcript_directory import FolderMirror
from carrel.adapters.sqlite.leader_lock import FileTurn
from carrel.ports import Turn
from carrel.settings import Settings
from carrel.wiring.world import Opened

_DAY: Final = 86_400_000


def _turn(settings: Settings) -> Turn:
    """Which of all processes on this store mirrors transcripts."""
    if file := settings.sqlite_file:
        return FileTurn(file, "transcripts")
    from carrel.adapters.postgres.leader_lock import PostgresTurn  # noqa: PLC0415 - only where it is used

    return PostgresTurn(settings.database_url, "transcripts")


async def keep_transcripts(opened: Opened, stop: asyncio.Event) -> None:
    """Mirror transcripts until told to stop."""
    settings = opened.settings
    await run_mirror(opened.world, FolderMirror(settings.transcripts), _turn(settings), stop)


async def retire_sessions(opened: Opened) -> int:
    """Forget sessions that have had their time; how many."""
    settings, world = opened.settings, opened.world
    if not settings.transcripts_days:
        return 0
    before = world.clock.now() - settings.transcripts_days * _DAY
    return await expire(world, FolderMirror(settings.transcripts), before)
