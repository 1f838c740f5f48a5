"""The processes that a command has become, seen from outside."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path as File
from typing import Final

_PROC: Final = File("/proc")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_PATIENCE: Final = 5.0
_COUNTED: Final = ("Pss_Anon:", "Pss_Shmem:", "SwapPss:")
"""A share of each page that others have too, of all that is no file's."""


def children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for task in os.listdir(_PROC / str(pid) / "task"):
            listed = (_PROC / str(pid) / "task" / task / "children").read_text()
            found += [int(each) for each in listed.split()]
    return found


def descendants(pid: int) -> Iterator[int]:
    left = children(pid)
    while left:
        each = left.pop()
        yield each
        left += children(each)


def memory(pid: int) -> int:
    """Bytes of memory that all beneath a process have together, what they share counted once."""
    return sum(map(_held, descendants(pid)))


def _held(pid: int) -> int:
    with suppress(OSError):
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        if found := [line.split()[1] for line in lines if line.startswith(_COUNTED)]:
            return sum(map(int, found)) * 1024
    with suppress(OSError, IndexError, ValueError):  # it lets nobody look: then all counts
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE
    return 0


def send(pid: int, number: signal.Signals, parent: int) -> None:
    """Signal a process, if it is still the one whose parent this is."""
    with suppress(OSError):
        held = os.pidfd_open(pid)
        try:
            if _parent(pid) == parent:
                signal.pidfd_send_signal(held, number)
        finally:
            os.close(held)


def _parent(pid: int) -> int:
    with suppress(OSError):
        after = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return int(after[1])
    return 0


def terminate(pid: int) -> None:
    """Ask all beneath a process to end."""
    for parent in (pid, *descendants(pid)):
        for each in children(parent):
            send(each, signal.SIGTERM, parent)


def is_running(pid: int, program: bytes) -> bool:
    """Whether a process has become this program by now."""
    with suppress(OSError):
        return (_PROC / str(pid) / "cmdline").read_bytes().startswith(program + b"\0")
    return False


def outlive(pid: int, program: str) -> None:
    """Wait for the end of a process of ours that is being killed, if it is still that program."""
    with suppress(OSError):
        held = os.pidfd_open(pid)
        try:
            if f" ({program}) " in (_PROC / str(pid) / "stat").read_text():
                select.select([held], [], [], _PATIENCE)
        finally:
            os.close(held)


def alive(uid: int) -> int:
    """How many threads a user has on this machine: what RLIMIT_NPROC counts without namespaces."""
    count = 0
    for entry in os.scandir(_PROC):
        with suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                count += len(os.listdir(_PROC / entry.name / "task"))
    return count
