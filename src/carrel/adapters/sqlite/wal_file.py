"""The file of SQLite's log, made longer ahead of whoever writes to it.

What overwrites a file is durable in half the time of what makes it longer, since with that its new
length must be made durable too. SQLite writes its log from the beginning again once all of it has
been moved, so a file that is long enough is only ever overwritten.
"""

from __future__ import annotations

import os
from pathlib import Path as File
from typing import Final

_FRAME: Final = 24 + 4096
_BLOCK: Final = bytes(4096)
"""Written one by one: the system keeps a file in pieces as large as what was written at once, and
takes longer to write to a part of a large one."""
_BRIEF: Final = 250
"""Frames of a log that is not worth it: most stores of a test, or of a short command."""
_AHEAD: Final = 1_000
"""Frames by which the file is made longer than the log is."""


class WalFile:
    def __init__(self, database: File, max_frames: int) -> None:
        """`max_frames` is the size beyond which the file is not extended."""
        self._file = f"{database}-wal"
        self._max_frames = max_frames
        self._enough = _BRIEF

    def should_preallocate(self, frames: int) -> bool:
        """Whether it is time to `lay` for a log of so many frames; told once for as many."""
        if frames <= self._enough or self._enough >= self._max_frames:
            return False
        self._enough = min(frames + _AHEAD, self._max_frames)
        return True

    def reset(self) -> None:
        """The log does: whether its file is still as long is looked at anew."""
        self._enough = _BRIEF

    def preallocate(self) -> None:
        """Add zeros at the end, wherever that is by now: never over what somebody has written."""
        log = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            missing = (self._enough + _AHEAD) * _FRAME - os.fstat(log).st_size
            if missing > 0:
                for _ in range(0, missing, len(_BLOCK)):
                    os.write(log, _BLOCK)
                os.fdatasync(log)
        finally:
            os.close(log)
