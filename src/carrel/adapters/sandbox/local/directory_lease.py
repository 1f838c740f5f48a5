"""Lease of a sandbox directory, so that a dead server's files can be removed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path as File

from carrel.adapters.sandbox.local import cgroups, safe_walk


class DirectoryLease:
    """This process's directory below the root, locked while the process lives."""

    def __init__(self, root: File, name: str, lock: int) -> None:
        self._root, self.name, self._lock = root, name, lock
        self.directory = root / "keepers" / name

    @classmethod
    def try_acquire(cls, root: File) -> DirectoryLease:
        """Create a directory for this process and remove those of dead processes."""
        keepers = root / "keepers"
        keepers.mkdir(parents=True, exist_ok=True, mode=0o700)
        root.chmod(0o700)
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        lock = os.open(keepers / f"{name}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        lease = cls(root, name, lock)
        lease.directory.mkdir(mode=0o700)
        lease._remove_stale()
        return lease

    def claim_instance(self, instance_key: str) -> int | None:
        """Lock an instance key; return the lock, or None if another process holds it.

        Lock files are never removed: a process could otherwise lock a deleted file.
        """
        claims = self._root / "claims"
        claims.mkdir(exist_ok=True, mode=0o700)
        file = claims / hashlib.sha256(instance_key.encode()).hexdigest()[:32]
        file.touch(mode=0o600)
        return _try_lock(file)

    @property
    def farms_directory(self) -> File:
        return self.directory / "farms"

    def content_directory(self, uid: int) -> File:
        """Directory of cached file contents that all processes share until reboot.

        After a reboot a file may exist whose bytes never reached the disk.
        """
        directory = self._root / f"bytes-{uid}-{_boot()}"
        directory.mkdir(exist_ok=True, mode=0o700)
        return directory

    def _remove_stale(self) -> None:
        for file in (self._root / "keepers").glob("*.lock"):
            if file.stem != self.name and (lock := _try_lock(file)) is not None:
                _remove(self._root, file.stem)
                os.close(lock)
        if groups := cgroups.find_cgroups():
            groups.remove_orphans()
        for directory in self._root.glob("bytes-*"):
            if not directory.name.endswith(_boot()):
                shutil.rmtree(directory, ignore_errors=True)

    def release(self) -> None:
        _remove(self._root, self.name)
        with suppress(OSError):
            os.close(self._lock)


def is_lease_held(root: File, name: str) -> bool:
    """Whether the process that holds this lease is alive."""
    file = root / "keepers" / f"{name}.lock"
    if not name or not file.exists():
        return False
    lock = _try_lock(file)
    if lock is not None:
        os.close(lock)
    return lock is None


def _try_lock(file: File) -> int | None:
    """Return the locked descriptor, or None if it is locked or absent."""
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
    if groups := cgroups.find_cgroups():
        for group in groups.find_by_prefix(f"{name}-"):
            group.remove()
    with suppress(OSError):
        safe_walk.remove_directory(root / "keepers" / name)
    (root / "keepers" / f"{name}.lock").unlink(missing_ok=True)


def _boot() -> str:
    return File("/proc/sys/kernel/random/boot_id").read_text().strip()
