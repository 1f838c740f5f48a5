"""Memory and process limits of a whole command with Linux control groups."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path as File
from typing import Final

from msgspec import Struct

CGROUP_PREFIX: Final = "carrel-"
_REMOVE_TIMEOUT_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.002


class CommandCgroups(Struct, frozen=True):
    """The control groups of one command."""

    paths: tuple[File, ...]
    unified: bool

    @property
    def directories(self) -> list[str]:
        return [str(path) for path in self.paths]

    def was_oom_killed(self) -> bool:
        """Whether a process in the group was killed for lack of memory."""
        name = "memory.events" if self.unified else "memory.oom_control"
        with suppress(OSError):
            for line in (self.paths[0] / name).read_text().splitlines():
                key, _, value = line.partition(" ")
                if key == "oom_kill":
                    return int(value) > 0
        return False

    def processes(self) -> set[int]:
        pids = set[int]()
        for path in self.paths:
            with suppress(OSError):
                pids |= {int(line) for line in (path / "cgroup.procs").read_text().split()}
        return pids

    def remove(self) -> None:
        """Kill remaining processes and remove the groups. Waits up to 5 seconds."""
        deadline = time.monotonic() + _REMOVE_TIMEOUT_SECONDS
        for path in self.paths:
            while path.exists() and time.monotonic() < deadline:
                try:
                    path.rmdir()
                except OSError:
                    _kill_all(path)
                    time.sleep(_POLL_SECONDS)


def _kill_all(path: File) -> None:
    with suppress(OSError):
        for line in (path / "cgroup.procs").read_text().split():
            with suppress(OSError):
                os.kill(int(line), 9)


class Cgroups(Struct, frozen=True):
    """Parent groups in which groups can be created; memory first."""

    parents: tuple[File, ...]
    unified: bool

    def create(self, name: str, *, memory: int, processes: int) -> CommandCgroups:
        """Create the groups of a command. Raises OSError."""
        group = CommandCgroups(
            tuple(parent / f"{CGROUP_PREFIX}{name}" for parent in self.parents), self.unified
        )
        try:
            for path in group.paths:
                path.mkdir()
            if self.unified:
                _write_limit(group.paths[0] / "memory.max", memory)
                _write_optional_limit(group.paths[0] / "memory.swap.max", 0)
            else:
                _write_limit(group.paths[0] / "memory.limit_in_bytes", memory)
                _write_optional_limit(group.paths[0] / "memory.memsw.limit_in_bytes", memory)
            _write_limit(group.paths[-1] / "pids.max", processes)
        except OSError:
            group.remove()
            raise
        return group

    def find_by_prefix(self, prefix: str) -> Iterator[CommandCgroups]:
        """Yield the groups whose names start with `prefix`."""
        names = {
            path.name.removeprefix(CGROUP_PREFIX)
            for parent in self.parents
            for path in parent.glob(f"{CGROUP_PREFIX}{prefix}*")
        }
        for name in sorted(names):
            yield CommandCgroups(
                tuple(parent / f"{CGROUP_PREFIX}{name}" for parent in self.parents), self.unified
            )

    def remove_orphans(self) -> None:
        """Remove empty groups whose creating process no longer exists."""
        for parent in self.parents:
            for path in parent.glob(f"{CGROUP_PREFIX}*"):
                creator = path.name.removeprefix(CGROUP_PREFIX).partition("-")[0]
                if creator.isdigit() and not File("/proc", creator).exists():
                    with suppress(OSError):
                        path.rmdir()


def _write_limit(file: File, value: int) -> None:
    with open(file, "r+") as stream:  # "w" would create it if a controller is missing
        stream.write(str(value))


def _write_optional_limit(file: File, value: int) -> None:
    with suppress(OSError):
        _write_limit(file, value)


def find_cgroups(mounts: str | None = None, membership: str | None = None) -> Cgroups | None:
    """Return where this process may create groups with both limits, or None."""
    mounts = File("/proc/self/mountinfo").read_text() if mounts is None else mounts
    membership = File("/proc/self/cgroup").read_text() if membership is None else membership
    directories = dict(_controller_directories(mounts, membership))
    if (unified := directories.get("")) is not None:
        for candidate in (unified, unified.parent):
            if _can_delegate(candidate):
                return Cgroups((candidate,), unified=True)
    memory, pids = directories.get("memory"), directories.get("pids")
    if memory and pids and os.access(memory, os.W_OK) and os.access(pids, os.W_OK):
        return Cgroups((memory, pids), unified=False)
    return None


def _controller_directories(mounts: str, membership: str) -> Iterator[tuple[str, File]]:
    """Yield this process's group by controller; "" for the unified hierarchy."""
    own_paths: dict[str, str] = {}
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        own_paths |= dict.fromkeys(controllers.split(","), path)
    for line in mounts.splitlines():
        mount_fields, _, filesystem_fields = line.partition(" - ")
        root, mount_point = mount_fields.split(" ")[3:5]
        filesystem, _, options = filesystem_fields.split(" ", 2)
        names = (
            [""]
            if filesystem == "cgroup2"
            else options.split(",")
            if filesystem == "cgroup"
            else []
        )
        for name in names:
            if name in own_paths and (own_paths[name] + "/").startswith(root.rstrip("/") + "/"):
                yield name, File(mount_point) / own_paths[name][len(root.rstrip("/")) :].lstrip("/")


def _can_delegate(path: File) -> bool:
    """Whether subgroups can be limited: controllers are delegated, or can be."""
    required = {"memory", "pids"}
    try:
        if not required <= set((path / "cgroup.controllers").read_text().split()):
            return False
        subtree_control = path / "cgroup.subtree_control"
        if not required <= set(subtree_control.read_text().split()):
            subtree_control.write_text("+memory +pids")
        return os.access(path, os.W_OK)
    except OSError:
        return False
