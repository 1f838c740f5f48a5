"""Duties of the first process of a container: it passes signals on and reaps orphans."""

from __future__ import annotations

import os
import signal
from typing import Final

_FORWARDED: Final = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_HANDLED: Final = {*_FORWARDED, signal.SIGCHLD}


def run_below_init() -> None:
    """If this is process 1, continue in a child, for which it reaps orphans.

    Otherwise nothing would wait for orphaned processes, which are given to process 1. Must be
    called before threads are started.
    """
    if os.getpid() != 1:
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return
    while (
        code := _reap(child)
    ) is None:  # first: some may have ended before the signal was blocked
        if (number := signal.sigwait(_HANDLED)) != signal.SIGCHLD:
            os.kill(child, number)
    os._exit(code)


def _reap(main_child: int) -> int | None:
    """Reap all ended children; return the exit code of the main one if it has ended."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == main_child:
            result = os.waitstatus_to_exitcode(status)
            code = 128 - result if result < 0 else result
