"""A server as a child process in its own group, which ends with its parent."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path as File

PR_SET_PDEATHSIG = 1


class NotStarted(Exception):
    """A server did not start; the message has the end of its log."""


def dies_with_parent(with_signal: signal.Signals) -> Callable[[], None] | None:
    """For `preexec_fn`. The signal is sent when the starting thread ends, so it must last."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    return lambda: libc.prctl(PR_SET_PDEATHSIG, int(with_signal))


class Child:
    """One process, its log beside its directory, and its user."""

    def __init__(self, log: File, runs_as: tuple[int, int] | None = None) -> None:
        self.log = log
        self.runs_as = runs_as
        self.process: asyncio.subprocess.Process | None = None

    async def start(
        self,
        command: Sequence[str],
        cwd: File,
        env: Mapping[str, str],
        at_parents_death: signal.Signals = signal.SIGKILL,
    ) -> None:
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env=dict(env),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=dies_with_parent(at_parents_death),
                user=self.runs_as and self.runs_as[0],
                group=self.runs_as and self.runs_as[1],
                extra_groups=self.runs_as and [],
            )

    async def run(self, command: Sequence[str], cwd: File, env: Mapping[str, str]) -> None:
        """Run a command. Raises NotStarted if it fails."""
        await self.start(command, cwd, env)
        assert self.process is not None
        if await self.process.wait() != 0:
            raise NotStarted(self.describe_failure(f"{command[0]} failed"))

    async def wait_until_ready(self, probe: Callable[[], object], seconds: float) -> None:
        """Wait until the probe raises no longer. Raises NotStarted after a timeout."""
        assert self.process is not None
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            if self.process.returncode is not None:
                raise NotStarted(self.describe_failure("the server ended by itself"))
            try:
                answer = probe()
                if asyncio.iscoroutine(answer):
                    await answer
            except Exception as problem:
                if asyncio.get_running_loop().time() > deadline:
                    raise NotStarted(self.describe_failure(f"no answer: {problem!r}")) from problem
                await asyncio.sleep(0.02)
            else:
                return

    async def stop(self, gently: signal.Signals | None = None, seconds: float = 3) -> None:
        """End the process and its group, first gently if a signal for that is given."""
        if self.process is None or self.process.returncode is not None:
            return
        if gently is not None:
            self.process.send_signal(gently)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), seconds)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await self.process.wait()

    def describe_failure(self, problem: str) -> str:
        log = self.log.read_text("utf-8", "replace") if self.log.exists() else ""
        return f"{problem}\n{log[-4000:]}"
