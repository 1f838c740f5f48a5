"""Where bubblewrap does not work: a command that Landlock and seccomp hold, in a directory.

The machine's files cannot be opened and nothing can be connected to. It is seen that there are
names in the file system, though, and its directory has the path that it really has.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import shutil
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path as File
from typing import Any, Final

from msgspec.structs import replace

from carrel.adapters.sandbox.local import bwrap_arguments, process_tree, safe_walk
from carrel.adapters.sandbox.local.child_process import ChildProcess
from carrel.adapters.sandbox.local.command_run import (
    INODES,
    CommandOutcome,
    CommandRun,
    IsolationTools,
)
from carrel.adapters.sandbox.local.seccomp import SocketPolicy, filter_for
from carrel.ports.sandbox import CommandSpec

_CREATE: Final = 444
_PATIENCE: Final = 10.0
_VERSION: Final = 1
SCOPES_SIGNALS: Final = 6
"""The first version by which a command can be kept from signalling its neighbours."""
_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_CHARACTER, _BLOCK, _TRUNCATE, _IOCTL = 1 << 6, 1 << 11, 1 << 14, 1 << 15
_ALL: Final = (1 << 16) - 1
_OF_FILES: Final = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_LOOKING: Final = _EXECUTE | _READ | _LIST
_WORKING: Final = _ALL & ~_CHARACTER & ~_BLOCK & ~_IOCTL
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_DEVICES: Final = ("null", "zero", "full", "random", "urandom")
_ROOMS: Final = ("workspace", "tmp", "home")


def version() -> int:
    """Of Landlock in this kernel; 0 where there is none."""
    libc: Any = ctypes.CDLL(None, use_errno=True)
    found = libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    return max(0, int(found))


class LandlockCommand(CommandRun):
    """A command while it runs. It is looked at what it writes, and it is killed for too much."""

    of_ours = 1

    def __init__(
        self, means: IsolationTools, order: CommandSpec, name: str, child: ChildProcess, place: File
    ) -> None:
        self._place = place
        super().__init__(means, order, name, child)

    async def prepare(self, lower: File | None) -> int:
        await asyncio.to_thread(self._furnish)
        await self._child.prepare(self._plan(lower))
        return os.open(self._place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _furnish(self) -> None:
        for place in (self._place, *(self._place / room for room in _ROOMS)):
            place.mkdir(mode=0o755)
            if self._means.drop:
                os.chown(place, self._means.uid, self._means.gid)

    def _plan(self, lower: File | None) -> Mapping[str, Any]:
        means, order = self._means, self._order
        shown = "/tmp" if means.drop else str(self._place)
        homes = {"HOME": f"{shown}/home", "TMPDIR": f"{shown}/tmp"}
        grouped = self._group is not None
        return {
            "cgroups": self._group.directories if self._group else [],
            "stage": "",
            "enter": 0,
            "bind": str(self._place) if means.drop else "",
            "uid": means.uid,
            "gid": means.gid,
            "drop": means.drop,
            "limits": self._limits(),
            "program": shutil.which("bash", path=bwrap_arguments.ENVIRONMENT["PATH"])
            or "/bin/bash",
            "directory": f"{shown}/workspace",
            "keep": [],
            "landlock": _rules(means.landlock, shown),
            "seccomp": filter_for(
                platform.machine(), SocketPolicy.NONE, alone=False, grouped=grouped
            ),
            "argv": ["bash", "-c", order.command],
            "env": {**order.env} | bwrap_arguments.ENVIRONMENT | homes,
        }

    def _limits(self) -> dict[str, int]:
        limits = super()._limits()
        if "RLIMIT_NPROC" in limits:  # which counts all that this user has, wherever it runs
            limits["RLIMIT_NPROC"] += process_tree.alive(self._means.uid) - 1
        return limits

    def _code(self) -> int | None:
        return self._child.code

    def _inner(self) -> int | None:
        return self._child.pid

    def _end_tree(self) -> None:
        if not self._child.ended.is_set():
            self._child.terminate()

    def _needs_watching(self) -> bool:
        return True

    async def finish(self) -> CommandOutcome:
        outcome = await super().finish()
        if self._killed is None and (reason := await asyncio.to_thread(self._too_much)):
            # It was over before anybody had looked.
            return replace(outcome, notes=(*outcome.notes, reason))
        return outcome

    def _excess(self) -> str | None:
        if reason := self._too_much():
            return f"killed: {reason}"
        return super()._excess() if self._group is None else None

    def _too_much(self) -> str | None:
        most = self._order.bounds.disk_mb
        used = (_used(self._place / "workspace"), _used(self._place / "tmp", self._place / "home"))
        if any(each is None or each > most * 2**20 for each in used):
            return f"it wrote more than {most} MB"
        return None

    async def close(self) -> None:
        self._end_tree()
        with suppress(TimeoutError):  # it has all the others to end first
            await asyncio.wait_for(self._child.ended.wait(), _PATIENCE)
        await super().close()
        await asyncio.to_thread(remove, self._place / "tmp")
        await asyncio.to_thread(remove, self._place / "home")


def _rules(abi: int, shown: str) -> dict[str, Any]:
    lent = [f"/etc/{name}" for name in bwrap_arguments.LENT]
    return {
        "abi": abi,
        "files": _ALL,
        "of_files": _OF_FILES,
        "network": 3,
        "scopes": 3,
        "beneath": [
            *((path, _LOOKING) for path in (*_SYSTEM, *lent)),
            *((f"/dev/{name}", _READ | _WRITE) for name in _DEVICES),
            *((f"{shown}/{room}", _WORKING) for room in _ROOMS),
        ],
    }


def _used(*places: File) -> int | None:
    """Bytes on the disk, or None where there are more files than anybody should count."""
    total = 0
    for place in places:
        try:
            root = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            total += sum(found.size for found in safe_walk.walk(root, INODES))
        except safe_walk.TooManyEntries:
            return None
        except OSError:  # it is at work there
            continue
        finally:
            os.close(root)
    return total


def remove(place: File) -> None:
    """Remove a directory, also one that its owner has locked."""

    def unlock(_: Callable[..., Any], path: str, __: Any) -> None:
        above = os.path.dirname(path)
        for each in (above, path):
            with suppress(OSError):
                if stat.S_ISDIR(os.lstat(each).st_mode):
                    os.chmod(each, 0o700)
        with suppress(OSError):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    shutil.rmtree(place, onerror=unlock)
