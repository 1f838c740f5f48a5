"""Transcript directory on a disk that fills up."""

from __future__ import annotations

from carrel.adapters.filesystem.transcript_directory import DirectoryTranscriptMirror
from carrel.core.sessions.session import Session


class FlakyMirror(DirectoryTranscriptMirror):
    """A mirror on a disk that fills up after half a line."""

    failures_left = 0

    def _add(self, folder: str, session: Session, after: int, lines: bytes, count: int) -> None:
        if self.failures_left:
            self.failures_left -= 1
            file = self._resolve_directory(folder) / f"{session.id}.jsonl"
            with file.open("ab") as opened:
                opened.write(lines[: len(lines) // 2])
            raise OSError("no space left")
        super()._add(folder, session, after, lines, count)
