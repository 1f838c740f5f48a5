"""Process 1 of a container reaps orphans and passes signals on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path as File

from tests.support.server_process import environment

from carrel.adapters.sandbox.local.isolation import SandboxSettings, bubblewrap_program

MAKE_ORPHAN = """
import os, signal, time
from carrel.cli.init_process import run_below_init
run_below_init()
reader, writer = os.pipe()
if os.fork() == 0:
    orphan = os.fork()
    if orphan == 0:
        os.close(writer)
        os.read(0, 1)  # ends after its parent
        os._exit(0)
    os.write(writer, str(orphan).encode())
    os._exit(0)
os.wait()
orphan = os.read(reader, 20).decode()
print(os.getpid() == 1, os.path.exists(f"/proc/{orphan}"), flush=True)
until = time.monotonic() + 60
while os.path.exists(f"/proc/{orphan}") and time.monotonic() < until:
    pass
signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
print("left" if os.path.exists(f"/proc/{orphan}") else "reaped", flush=True)
os.kill(1, signal.SIGTERM)
signal.pause()
"""

SERVE = """
import os, time
from carrel.cli import main
ended = os.fork() or os._exit(0)
if os.fork() == 0:
    until = time.monotonic() + 60
    while os.path.exists(f"/proc/{ended}") and time.monotonic() < until:
        time.sleep(0.01)
    print("left" if os.path.exists(f"/proc/{ended}") else "reaped", flush=True)
    os._exit(0)
main(["serve"])
"""
ISOLATED = (
    *(bubblewrap_program(SandboxSettings()), "--dev-bind", "/", "/", "--unshare-pid"),
    *("--as-pid-1", "--proc", "/proc", "--die-with-parent", sys.executable, "-c"),
)


def test_a_server_that_is_process_1_reaps_children_it_does_not_know(tmp_path: File) -> None:
    variables = environment(tmp_path, port="0", sandbox="off", log_level="error")
    with subprocess.Popen(
        [*ISOLATED, SERVE], env=variables, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout
        try:
            results = (line for line in program.stdout if line in {"left\n", "reaped\n"})
            assert next(results) == "reaped\n"
        finally:
            program.kill()


def test_orphans_are_reaped_and_signals_reach_the_server() -> None:
    with subprocess.Popen(
        [*ISOLATED, MAKE_ORPHAN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin and program.stdout
        assert program.stdout.readline() == "False True\n"
        program.stdin.close()
        assert program.stdout.readline() == "reaped\n"
        assert program.wait(30) == 7
