"""The processes that a command has become, seen from outside."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path as File
from typing import Final

_PROC: Final = File("/proc")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


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
    """Bytes that are in memory for all beneath a process; what is shared counts for each."""
    total = 0
    for each in descendants(pid):
        with suppress(OSError, IndexError, ValueError):
            resident, shared = (_PROC / str(each) / "statm").read_text().split()[1:3]
            total += (int(resident) - int(shared)) * _PAGE
    return total


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


def alive(uid: int) -> int:
    """How many threads a user has on this machine: what RLIMIT_NPROC counts without namespaces."""
    count = 0
    for entry in os.scandir(_PROC):
        with suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                count += len(os.listdir(_PROC / entry.name / "task"))
    return count
