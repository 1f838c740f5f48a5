"""Bounds on the memory and the processes of a whole command, by control groups."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path as File
from typing import Final

from msgspec import Struct

OURS: Final = "carrel-"
_PATIENCE: Final = 5.0
_PAUSE: Final = 0.002


class CommandCgroups(Struct, frozen=True):
    """The groups of one command."""

    places: tuple[File, ...]
    unified: bool

    @property
    def directories(self) -> list[str]:
        return [str(place) for place in self.places]

    def was_short_of_memory(self) -> bool:
        """Whether anything in it was killed for want of memory."""
        name = "memory.events" if self.unified else "memory.oom_control"
        with suppress(OSError):
            for line in (self.places[0] / name).read_text().splitlines():
                word, _, number = line.partition(" ")
                if word == "oom_kill":
                    return int(number) > 0
        return False

    def processes(self) -> set[int]:
        found = set[int]()
        for place in self.places:
            with suppress(OSError):
                found |= {int(line) for line in (place / "cgroup.procs").read_text().split()}
        return found

    def remove(self) -> None:
        """Take it away; what is still in it is killed. Waits for the dead to be gone."""
        until = time.monotonic() + _PATIENCE
        for place in self.places:
            while place.exists() and time.monotonic() < until:
                try:
                    place.rmdir()
                except OSError:
                    _kill_all(place)
                    time.sleep(_PAUSE)


def _kill_all(place: File) -> None:
    with suppress(OSError):
        for line in (place / "cgroup.procs").read_text().split():
            with suppress(OSError):
                os.kill(int(line), 9)


class Cgroups(Struct, frozen=True):
    """Where groups can be made, memory first."""

    parents: tuple[File, ...]
    unified: bool

    def make(self, name: str, *, memory: int, processes: int) -> CommandCgroups:
        """Raises OSError."""
        group = CommandCgroups(
            tuple(parent / f"{OURS}{name}" for parent in self.parents), self.unified
        )
        try:
            for place in group.places:
                place.mkdir()
            if self.unified:
                _set(group.places[0] / "memory.max", memory)
                _set_if_there(group.places[0] / "memory.swap.max", 0)
            else:
                _set(group.places[0] / "memory.limit_in_bytes", memory)
                _set_if_there(group.places[0] / "memory.memsw.limit_in_bytes", memory)
            _set(group.places[-1] / "pids.max", processes)
        except OSError:
            group.remove()
            raise
        return group

    def stale(self, prefix: str) -> Iterator[CommandCgroups]:
        """The groups whose names begin so."""
        names = {
            place.name.removeprefix(OURS)
            for parent in self.parents
            for place in parent.glob(f"{OURS}{prefix}*")
        }
        for name in sorted(names):
            yield CommandCgroups(
                tuple(parent / f"{OURS}{name}" for parent in self.parents), self.unified
            )

    def tidy(self) -> None:
        """Remove what is empty and was made by a process that is no more, whatever it used."""
        for parent in self.parents:
            for place in parent.glob(f"{OURS}*"):
                maker = place.name.removeprefix(OURS).partition("-")[0]
                if maker.isdigit() and not File("/proc", maker).exists():
                    with suppress(OSError):
                        place.rmdir()


def _set(file: File, value: int) -> None:
    with open(file, "r+") as there:  # "w" would create it, where a controller is missing
        there.write(str(value))


def _set_if_there(file: File, value: int) -> None:
    with suppress(OSError):
        _set(file, value)


def find(mounts: str | None = None, own: str | None = None) -> Cgroups | None:
    """Where this process may make groups with both bounds, or None."""
    mounts = File("/proc/self/mountinfo").read_text() if mounts is None else mounts
    own = File("/proc/self/cgroup").read_text() if own is None else own
    places = dict(_places(mounts, own))
    if (unified := places.get("")) is not None:
        for candidate in (unified, unified.parent):
            if _can_divide(candidate):
                return Cgroups((candidate,), unified=True)
    memory, pids = places.get("memory"), places.get("pids")
    if memory and pids and os.access(memory, os.W_OK) and os.access(pids, os.W_OK):
        return Cgroups((memory, pids), unified=False)
    return None


def _places(mounts: str, own: str) -> Iterator[tuple[str, File]]:
    """The directory that this process is in, by controller; "" for the unified hierarchy."""
    ours: dict[str, str] = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        ours |= dict.fromkeys(controllers.split(","), path)
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        root, point = left.split(" ")[3:5]
        kind, _, options = right.split(" ", 2)
        names = [""] if kind == "cgroup2" else options.split(",") if kind == "cgroup" else []
        for name in names:
            if name in ours and (ours[name] + "/").startswith(root.rstrip("/") + "/"):
                yield name, File(point) / ours[name][len(root.rstrip("/")) :].lstrip("/")


def _can_divide(place: File) -> bool:
    """Whether groups within it are bounded: its controllers are passed on, or can be."""
    wanted = {"memory", "pids"}
    try:
        if not wanted <= set((place / "cgroup.controllers").read_text().split()):
            return False
        passed = place / "cgroup.subtree_control"
        if not wanted <= set(passed.read_text().split()):
            passed.write_text("+memory +pids")
        return os.access(place, os.W_OK)
    except OSError:
        return False
