"""Fixtures of the sandbox tests."""

from __future__ import annotations

import os
import stat
import threading

import pytest


@pytest.fixture
def closed_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Directories that were closed by the thread of the event loop."""
    paths: list[str] = []
    close = os.close

    def record(fd: int) -> None:
        is_on_loop = threading.current_thread() is threading.main_thread()
        if is_on_loop and stat.S_ISDIR(os.fstat(fd).st_mode):
            paths.append(os.readlink(f"/proc/self/fd/{fd}"))
        close(fd)

    monkeypatch.setattr(os, "close", record)
    return paths
