"""Isolation with Landlock and seccomp, for machines without bubblewrap.

Files outside cannot be opened and nothing can be connected to. File names outside remain visible,
and the workspace keeps its real path.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path as File
from typing import Any, Final

from msgspec.structs import replace

from carrel.adapters.sandbox.local import bwrap_arguments, process_tree, safe_walk
from carrel.adapters.sandbox.local.child_process import ChildProcess
from carrel.adapters.sandbox.local.command_run import (
    MAX_INODES,
    CommandOutcome,
    CommandRun,
    IsolationTools,
)
from carrel.adapters.sandbox.local.seccomp import SocketPolicy, filter_for
from carrel.ports.sandbox import CommandSpec

_SYS_LANDLOCK_CREATE_RULESET: Final = 444
_CREATE_RULESET_VERSION: Final = 1
MIN_ABI: Final = 6
"""First Landlock ABI that stops a command from signalling other processes."""
_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_CHARACTER, _BLOCK, _TRUNCATE, _IOCTL = 1 << 6, 1 << 11, 1 << 14, 1 << 15
_ALL_ACCESS: Final = (1 << 16) - 1
_FILE_ACCESS: Final = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_READ_ACCESS: Final = _EXECUTE | _READ | _LIST
_WORK_ACCESS: Final = _ALL_ACCESS & ~_CHARACTER & ~_BLOCK & ~_IOCTL
_SYSTEM_PATHS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_DEVICES: Final = ("null", "zero", "full", "random", "urandom")
_DIRECTORIES: Final = ("workspace", "tmp", "home")
_ALIASES: Final = "home/.local/bin"
_ALIASES_AND_PARENT: Final = ("home/.local", _ALIASES)


def abi_version() -> int:
    """Landlock ABI version of this kernel; 0 if there is none."""
    libc: Any = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(
        _SYS_LANDLOCK_CREATE_RULESET,
        None,
        ctypes.c_size_t(0),
        ctypes.c_uint32(_CREATE_RULESET_VERSION),
    )
    return max(0, int(result))


class LandlockCommand(CommandRun):
    """A running command whose disk use is polled; killed above the limit."""

    own_processes = 1

    def __init__(
        self,
        tools: IsolationTools,
        spec: CommandSpec,
        name: str,
        child: ChildProcess,
        directory: File,
    ) -> None:
        self._directory = directory
        super().__init__(tools, spec, name, child)

    async def prepare(self, lower: File | None) -> int:
        await asyncio.to_thread(self._make_directories)
        await self._child.prepare(self._plan(lower))
        return os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _make_directories(self) -> None:
        names = (*_DIRECTORIES, *_ALIASES_AND_PARENT)
        for path in (self._directory, *(self._directory / name for name in names)):
            path.mkdir(mode=0o755)
            if self._tools.drops_privileges:
                os.chown(path, self._tools.uid, self._tools.gid)
        for name, program in bwrap_arguments.command_aliases().items():
            os.symlink(program, self._directory / _ALIASES / name)

    def _plan(self, lower: File | None) -> Mapping[str, Any]:
        tools, spec = self._tools, self._spec
        visible_path = "/tmp" if tools.drops_privileges else str(self._directory)
        home_env = {"HOME": f"{visible_path}/home", "TMPDIR": f"{visible_path}/tmp"}
        home_env["PATH"] = f"{bwrap_arguments.ENVIRONMENT['PATH']}:{visible_path}/{_ALIASES}"
        home_env["GIT_CONFIG_NOSYSTEM"] = "1"  # git fails if /etc/gitconfig exists and is denied
        has_cgroup = self._cgroup is not None
        return {
            "cgroups": self._cgroup.directories if self._cgroup else [],
            "stage": "",
            "enter": 0,
            "own_count": False,
            "bind": str(self._directory) if tools.drops_privileges else "",
            "uid": tools.uid,
            "gid": tools.gid,
            "drop": tools.drops_privileges,
            "limits": self._limits(),
            "program": shutil.which("bash", path=bwrap_arguments.ENVIRONMENT["PATH"])
            or "/bin/bash",
            "directory": f"{visible_path}/workspace",
            "keep": [],
            "landlock": _landlock_rules(tools.landlock, visible_path),
            "seccomp": filter_for(
                platform.machine(), SocketPolicy.NONE, own_namespaces=False, has_cgroup=has_cgroup
            ),
            "argv": ["bash", "-c", spec.command],
            "env": {**spec.env} | bwrap_arguments.ENVIRONMENT | home_env,
        }

    def _limits(self) -> dict[str, int]:
        limits = super()._limits()
        if "RLIMIT_NPROC" in limits:  # counts all processes of this user
            limits["RLIMIT_NPROC"] += process_tree.count_threads(self._tools.uid) - 1
        return limits

    def _exit_code(self) -> int | None:
        return self._child.code

    def _root_pid(self) -> int | None:
        return self._child.pid

    def _needs_watching(self) -> bool:
        return True

    async def finish(self) -> CommandOutcome:
        outcome = await super().finish()
        if self._kill_reason is None and (reason := await asyncio.to_thread(self._disk_violation)):
            # It ended before the first poll.
            return replace(outcome, notes=(*outcome.notes, reason))
        return outcome

    def _limit_violation(self) -> str | None:
        if reason := self._disk_violation():
            return f"killed: {reason}"
        return super()._limit_violation() if self._cgroup is None else None

    def _disk_violation(self) -> str | None:
        max_mb = self._spec.limits.disk_mb
        used = (
            _bytes_used(self._directory / "workspace"),
            _bytes_used(self._directory / "tmp", self._directory / "home"),
        )
        if any(size is None or size > max_mb * 2**20 for size in used):
            return f"disk limit exceeded ({max_mb} MB)"
        return None

    async def close(self) -> None:
        await super().close()
        await asyncio.to_thread(safe_walk.remove_directory, self._directory / "tmp")
        await asyncio.to_thread(safe_walk.remove_directory, self._directory / "home")


def _landlock_rules(abi: int, visible_path: str) -> dict[str, Any]:
    etc_paths = bwrap_arguments.shared_etc_paths()
    return {
        "abi": abi,
        "files": _ALL_ACCESS,
        "of_files": _FILE_ACCESS,
        "network": 3,
        "scopes": 3,
        "paths": [
            *(rule for path in (*_SYSTEM_PATHS, *etc_paths) for rule in _readable(path)),
            *((f"/dev/{name}", _READ | _WRITE) for name in _DEVICES),
            *((f"{visible_path}/{directory}", _WORK_ACCESS) for directory in _DIRECTORIES),
        ],
    }


def _readable(path: str) -> Iterator[tuple[str, int]]:
    """Rules to read a path without the hidden directories below, whose names stay visible."""
    hidden = bwrap_arguments.HIDDEN_DIRECTORIES
    if path in hidden:
        return
    if not any(directory.startswith(f"{path}/") for directory in hidden):
        yield path, _READ_ACCESS
        return
    yield path, _LIST
    for name in os.listdir(path):
        yield from _readable(f"{path}/{name}")


def _bytes_used(*directories: File) -> int | None:
    """Bytes on disk, or None above the limit of files."""
    total = 0
    for directory in directories:
        try:
            root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            total += sum(entry.size for entry in safe_walk.walk(root, MAX_INODES))
        except safe_walk.TooManyEntries:
            return None
        except OSError:  # the command is changing it
            continue
        finally:
            os.close(root)
    return total
