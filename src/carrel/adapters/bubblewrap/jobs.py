"""What has become of jobs, on the disk, so that it is known after a restart."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path as File

import msgspec
from msgspec import Struct

from carrel.ports.sandboxes import LOST, Job


class Told(Struct, frozen=True):
    keeper: str
    code: int | None = None
    log: bytes = b""


class Ledger:
    """One file a job, by its reservation. Whatever says that it runs was lost, if we did not start
    it: with the process that did, its instance is gone.
    """

    def __init__(self, root: File) -> None:
        self._root = root

    def write(self, reservation: str, id: str, told: Told) -> None:
        place = self._place(reservation, id)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        half = place.with_suffix(".half")
        half.write_bytes(msgspec.json.encode(told))
        os.replace(half, place)

    def read(self, reservation: str, id: str) -> Job | None:
        try:
            told = msgspec.json.decode(self._place(reservation, id).read_bytes(), type=Told)
        except FileNotFoundError:
            return None
        return Job(id, LOST if told.code is None else told.code, told.log)

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
