"""Who is using a directory of sandboxes, so that what a dead server left can be removed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path as File

from carrel.adapters.sandbox.local import cgroups


class DirectoryLease:
    """The place of one process beneath the directory. It holds a lock for as long as it lives."""

    def __init__(self, root: File, name: str, lock: int) -> None:
        self._root, self.name, self._lock = root, name, lock
        self.place = root / "keepers" / name

    @classmethod
    def try_acquire(cls, root: File) -> DirectoryLease:
        """Make a place of our own, and remove those of processes that are no more."""
        keepers = root / "keepers"
        keepers.mkdir(parents=True, exist_ok=True, mode=0o700)
        root.chmod(0o700)
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        lock = os.open(keepers / f"{name}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        keep = cls(root, name, lock)
        keep.place.mkdir(mode=0o700)
        keep._sweep()
        return keep

    def claim(self, reservation: str) -> int | None:
        """The right to keep an instance by this name, until it is closed; None if another has it.

        A lock's file is never removed: whoever waits for one that is gone would hold nothing.
        """
        claims = self._root / "claims"
        claims.mkdir(exist_ok=True, mode=0o700)
        file = claims / hashlib.sha256(reservation.encode()).hexdigest()[:32]
        file.touch(mode=0o600)
        return _taken(file)

    @property
    def farms(self) -> File:
        return self.place / "farms"

    def bytes_for(self, uid: int) -> File:
        """Where bytes are kept that all processes share, until the machine starts anew: only then
        might a file be there whose bytes never reached the disk.
        """
        place = self._root / f"bytes-{uid}-{_boot()}"
        place.mkdir(exist_ok=True, mode=0o700)
        return place

    def _sweep(self) -> None:
        for file in (self._root / "keepers").glob("*.lock"):
            if file.stem != self.name and (held := _taken(file)) is not None:
                _remove(self._root, file.stem)
                os.close(held)
        if found := cgroups.find():
            found.tidy()
        for place in self._root.glob("bytes-*"):
            if not place.name.endswith(_boot()):
                shutil.rmtree(place, ignore_errors=True)

    def release(self) -> None:
        _remove(self._root, self.name)
        with suppress(OSError):
            os.close(self._lock)


def is_kept(root: File, name: str) -> bool:
    """Whether the process that has this place lives."""
    file = root / "keepers" / f"{name}.lock"
    if not name or not file.exists():
        return False
    held = _taken(file)
    if held is not None:
        os.close(held)
    return held is None


def _taken(file: File) -> int | None:
    """Its lock, if nobody has it."""
    try:
        fd = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def _remove(root: File, name: str) -> None:
    if found := cgroups.find():
        for group in found.stale(f"{name}-"):
            group.remove()
    shutil.rmtree(root / "keepers" / name, ignore_errors=True)
    (root / "keepers" / f"{name}.lock").unlink(missing_ok=True)


def _boot() -> str:
    return File("/proc/sys/kernel/random/boot_id").read_text().strip()
