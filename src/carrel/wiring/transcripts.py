"""Runs the transcript mirror and deletes old sessions according to the settings."""

from __future__ import annotations

import asyncio
from typing import Final

from carrel.actions.sessions.transcript_mirror import delete_expired, run_mirror
from carrel.adapters.filesystem.transcript_directory import DirectoryTranscriptMirror
from carrel.adapters.sqlite.leader_lock import FileLeaderLock
from carrel.ports import LeaderLock
from carrel.settings import Settings
from carrel.wiring.ports import OpenStore

_DAY_MS: Final = 86_400_000


def _leader_lock(settings: Settings) -> LeaderLock:
    """Return the lock that elects the one process that mirrors transcripts."""
    if file := settings.sqlite_file:
        return FileLeaderLock(file, "transcripts")
    from carrel.adapters.postgres.leader_lock import PostgresLeaderLock  # noqa: PLC0415 - optional dependency

    return PostgresLeaderLock(settings.database_url, "transcripts")


async def run_transcript_mirror(store: OpenStore, stop: asyncio.Event) -> None:
    """Mirror transcripts until `stop` is set."""
    settings = store.settings
    await run_mirror(
        store.ports,
        DirectoryTranscriptMirror(settings.transcripts_directory),
        _leader_lock(settings),
        stop,
    )


async def expire_sessions(store: OpenStore) -> int:
    """Delete sessions older than the retention limit; return their number."""
    settings, ports = store.settings, store.ports
    if not settings.transcript_retention_days:
        return 0
    cutoff = ports.clock.now() - settings.transcript_retention_days * _DAY_MS
    return await delete_expired(
        ports, DirectoryTranscriptMirror(settings.transcripts_directory), cutoff
    )
