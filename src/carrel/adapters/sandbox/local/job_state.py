"""State of background jobs on disk, which survives a restart."""

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

LOST_LOG: Final = b"[lost: the server stopped before the job ended]"


class JobSnapshot(Struct, frozen=True):
    keeper: str
    """Lease of the server process that runs it; empty once it has ended."""
    code: int | None = None
    log: bytes = b""


class JobState:
    """One file per job. A running job counts as lost if its process is dead."""

    def __init__(self, root: File, is_lease_held: Callable[[str], bool]) -> None:
        self._root, self._is_lease_held = root, is_lease_held

    def write(self, instance_key: str, id: str, snapshot: JobSnapshot) -> None:
        file = self._job_file(instance_key, id)
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = file.with_suffix(".half")
        temporary.write_bytes(msgspec.json.encode(snapshot))
        os.replace(temporary, file)

    def read(self, instance_key: str, id: str) -> BackgroundJob | None:
        try:
            snapshot = msgspec.json.decode(
                self._job_file(instance_key, id).read_bytes(), type=JobSnapshot
            )
        except FileNotFoundError:
            return None
        if snapshot.code is None:
            return (
                BackgroundJob(id, None, b"")
                if self._is_lease_held(snapshot.keeper)
                else BackgroundJob(id, EXIT_LOST, LOST_LOG)
            )
        return BackgroundJob(id, snapshot.code, snapshot.log)

    def delete_job(self, instance_key: str, id: str) -> None:
        self._job_file(instance_key, id).unlink(missing_ok=True)
        with suppress(OSError):
            self._directory(instance_key).rmdir()

    def delete_instance(self, instance_key: str) -> None:
        directory = self._directory(instance_key)
        for file in directory.glob("*"):
            file.unlink(missing_ok=True)
        if directory.exists():
            directory.rmdir()

    def _directory(self, instance_key: str) -> File:
        return self._root / hashlib.sha256(instance_key.encode()).hexdigest()[:32]

    def _job_file(self, instance_key: str, id: str) -> File:
        return self._directory(instance_key) / hashlib.sha256(id.encode()).hexdigest()[:32]
