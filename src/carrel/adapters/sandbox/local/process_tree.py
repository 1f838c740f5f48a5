"""Inspects and signals a command's processes through /proc."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path as File
from typing import Final

_PROC: Final = File("/proc")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_EXIT_TIMEOUT_SECONDS: Final = 5.0
_COUNTED_FIELDS: Final = ("Pss_Anon:", "Pss_Shmem:", "SwapPss:")
"""Proportional share of memory not backed by files."""


def children(pid: int) -> list[int]:
    pids: list[int] = []
    with suppress(OSError):
        for task in os.listdir(_PROC / str(pid) / "task"):
            text = (_PROC / str(pid) / "task" / task / "children").read_text()
            pids += [int(child) for child in text.split()]
    return pids


def descendants(pid: int) -> Iterator[int]:
    pending = children(pid)
    while pending:
        child = pending.pop()
        yield child
        pending += children(child)


def memory_bytes(pid: int) -> int:
    """Memory of all descendants together; shared pages count once."""
    return sum(map(_process_memory, descendants(pid)))


def _process_memory(pid: int) -> int:
    with suppress(OSError):
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        if values := [line.split()[1] for line in lines if line.startswith(_COUNTED_FIELDS)]:
            return sum(map(int, values)) * 1024
    with suppress(OSError, IndexError, ValueError):  # smaps is unreadable: count resident memory
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE_BYTES
    return 0


def send_signal(pid: int, number: signal.Signals, parent: int) -> None:
    """Signal a process if its parent is still `parent`."""
    with suppress(OSError):
        pidfd = os.pidfd_open(pid)
        try:
            if _parent_pid(pid) == parent:
                signal.pidfd_send_signal(pidfd, number)
        finally:
            os.close(pidfd)


def _parent_pid(pid: int) -> int:
    with suppress(OSError):
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return int(fields[1])
    return 0


def terminate_descendants(pid: int) -> None:
    """Send SIGTERM to all descendants."""
    for parent in (pid, *descendants(pid)):
        for child in children(parent):
            send_signal(child, signal.SIGTERM, parent)


def is_running(pid: int, program: bytes) -> bool:
    """Whether the process executes this program by now."""
    with suppress(OSError):
        return (_PROC / str(pid) / "cmdline").read_bytes().startswith(program + b"\0")
    return False


def is_dying(pid: int) -> bool:
    """Whether a process that only sleeps was killed, or has a SIGKILL that it has not met yet."""
    with suppress(OSError, ValueError):
        fields = dict(
            line.split(":\t", 1) for line in (_PROC / str(pid) / "status").read_text().splitlines()
        )
        pending = int(fields["SigPnd"], 16) | int(fields["ShdPnd"], 16)
        return not fields["State"].startswith("S") or bool(pending & 1 << signal.SIGKILL - 1)
    return True


def wait_for_exit(pid: int, program: str) -> None:
    """Wait up to 5 seconds for a killed process, if it is still that program."""
    with suppress(OSError):
        pidfd = os.pidfd_open(pid)
        try:
            if f" ({program}) " in (_PROC / str(pid) / "stat").read_text():
                select.select([pidfd], [], [], _EXIT_TIMEOUT_SECONDS)
        finally:
            os.close(pidfd)


def count_threads(uid: int) -> int:
    """Number of the user's threads on this machine, as RLIMIT_NPROC counts them."""
    count = 0
    for entry in os.scandir(_PROC):
        with suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                count += len(os.listdir(_PROC / entry.name / "task"))
    return count
