"""Runs hostile commands in a sandbox and checks that nothing of them remains."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path as File

from msgspec import Struct
from tests.support.local_providers import LOCAL, CommandRunner

from carrel.adapters.sandbox.local import cgroups
from carrel.ports.sandbox import ResourceLimits

MARK_VARIABLE = "CARREL_TEST_MARK"


class Attempt(Struct, frozen=True):
    """Result of a command."""

    code: int | None
    output: str
    timed_out: bool
    notes: str
    files: dict[str, bytes]


class EscapeHarness:
    def __init__(self, runner: CommandRunner, directory: File, mark: str) -> None:
        self.runner, self.directory, self.mark = runner, directory, mark

    async def attempt(self, command: str, bounds: ResourceLimits = ResourceLimits()) -> Attempt:
        """Run a command, check that no process of it remains, and that the next one runs."""
        script = f": {self.mark}\n{command}"  # for processes without the variable
        async with self.runner.run(script, bounds, env={MARK_VARIABLE: self.mark}) as ran:
            files = {path.text: await ran.content(path) for path in ran.changed}
            output = (ran.stdout + ran.stderr).decode(errors="replace")
            tried = Attempt(ran.exit_code, output, ran.timed_out, "\n".join(ran.notes), files)
            assert processes_marked(self.mark) == []
        assert leftovers(self.directory, self.mark) == []
        assert await self.runner.output_of("echo serving") == "serving\n"
        return tried

    async def python(self, program: str, bounds: ResourceLimits = ResourceLimits()) -> Attempt:
        self.runner.put("attack.py", program)
        return await self.attempt("/usr/bin/python3 attack.py", bounds)


@asynccontextmanager
async def open_harness(tier: str, directory: File) -> AsyncIterator[EscapeHarness]:
    async with LOCAL[tier](directory) as sandbox:
        yield EscapeHarness(CommandRunner(sandbox), directory / "sandboxes", os.urandom(8).hex())


@contextmanager
def public_directory() -> Iterator[File]:
    """A directory that every user of this machine may read."""
    place = File(f"/var/tmp/carrel-test-{os.urandom(6).hex()}")
    place.mkdir(mode=0o755)
    try:
        yield place
    finally:
        shutil.rmtree(place)


def processes_marked(mark: str) -> list[str]:
    """The processes on this machine with the mark in their environment or arguments."""
    matches = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            text = _read(f"/proc/{name}/cmdline") + _read(f"/proc/{name}/environ")
            if mark.encode() in text:
                matches.append(f"{name} {text!r}")
    return matches


def _read(file: str) -> bytes:
    with suppress(OSError), open(file, "rb", buffering=0) as opened:
        return opened.read()
    return b""


def leftovers(directory: File, mark: str) -> list[str]:
    """Processes, mounts, directories and control groups that should not exist."""
    mounts = [line for line in File("/proc/mounts").read_text().splitlines() if "carrel " in line]
    runs = [str(place) for place in directory.glob("keepers/*/run-*")]
    return processes_marked(mark) + mounts + runs + control_groups(directory)


def control_groups(directory: File) -> list[str]:
    """The control groups of the processes that have used the directory."""
    names = {place.stem for place in directory.glob("keepers/*")}
    if (tree := cgroups.find_cgroups()) is None:
        return []
    return [
        name
        for prefix in names
        for group in tree.find_by_prefix(prefix)
        for name in group.directories
    ]
