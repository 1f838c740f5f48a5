"""What has become of jobs, on the disk, so that it is known after a restart."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path as File
from typing import Final

import msgspec
from msgspec import Struct

from carrel.ports.sandbox import EXIT_LOST, BackgroundJob

GONE: Final = b"[lost: the server ended before it did]"


class JobSnapshot(Struct, frozen=True):
    keeper: str
    """Who runs it; nobody any more once it has ended."""
    code: int | None = None
    log: bytes = b""


class JobState:
    """One file a job, by its reservation. Whatever says that it runs was lost, if the process that
    started it is gone: its instance went with it.
    """

    def __init__(self, root: File, is_kept: Callable[[str], bool]) -> None:
        self._root, self._is_kept = root, is_kept

    def write(self, reservation: str, id: str, told: JobSnapshot) -> None:
        place = self._place(reservation, id)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        half = place.with_suffix(".half")
        half.write_bytes(msgspec.json.encode(told))
        os.replace(half, place)

    def read(self, reservation: str, id: str) -> BackgroundJob | None:
        try:
            told = msgspec.json.decode(self._place(reservation, id).read_bytes(), type=JobSnapshot)
        except FileNotFoundError:
            return None
        if told.code is None:
            return (
                BackgroundJob(id, None, b"")
                if self._is_kept(told.keeper)
                else BackgroundJob(id, EXIT_LOST, GONE)
            )
        return BackgroundJob(id, told.code, told.log)

    def drop(self, reservation: str, id: str) -> None:
        self._place(reservation, id).unlink(missing_ok=True)
        with suppress(OSError):
            self._directory(reservation).rmdir()

    def forget(self, reservation: str) -> None:
        place = self._directory(reservation)
        for file in place.glob("*"):
            file.unlink(missing_ok=True)
        if place.exists():
            place.rmdir()

    def _directory(self, reservation: str) -> File:
        return self._root / hashlib.sha256(reservation.encode()).hexdigest()[:32]

    def _place(self, reservation: str, id: str) -> File:
        return self._directory(reservation) / hashlib.sha256(id.encode()).hexdigest()[:32]
