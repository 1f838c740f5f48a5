"""From settings to the files that mirror transcripts, and to when sessions have had their time."""

from __future__ import annotations

import asyncio
from typing import Final

from carrel.actions.sessions.transcript_mirror import expire, run_mirror
from carrel.adapters.filesystem.transcript_directory import DirectoryTranscriptMirror
from carrel.adapters.sqlite.leader_lock import FileLeaderLock
from carrel.ports import LeaderLock
from carrel.settings import Settings
from carrel.wiring.ports import OpenStore

_DAY: Final = 86_400_000


def _turn(settings: Settings) -> LeaderLock:
    """Which of all processes on this store mirrors transcripts."""
    if file := settings.sqlite_file:
        return FileLeaderLock(file, "transcripts")
    from carrel.adapters.postgres.leader_lock import PostgresLeaderLock  # noqa: PLC0415 - only where it is used

    return PostgresLeaderLock(settings.database_url, "transcripts")


async def keep_transcripts(opened: OpenStore, stop: asyncio.Event) -> None:
    """Mirror transcripts until told to stop."""
    settings = opened.settings
    await run_mirror(
        opened.ports, DirectoryTranscriptMirror(settings.transcripts), _turn(settings), stop
    )


async def retire_sessions(opened: OpenStore) -> int:
    """Forget sessions that have had their time; how many."""
    settings, ports = opened.settings, opened.ports
    if not settings.transcripts_days:
        return 0
    before = ports.clock.now() - settings.transcripts_days * _DAY
    return await expire(ports, DirectoryTranscriptMirror(settings.transcripts), before)
