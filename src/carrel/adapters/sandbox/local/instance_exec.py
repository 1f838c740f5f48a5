"""A command in an instance that was there before it and stays when it has ended."""

from __future__ import annotations

import asyncio
import platform
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path as File
from typing import Any, ClassVar, Final

from carrel.adapters.sandbox.local import bwrap_arguments, process_tree
from carrel.adapters.sandbox.local.cgroups import CommandCgroups
from carrel.adapters.sandbox.local.child_process import ChildProcess
from carrel.adapters.sandbox.local.command_run import CommandRun, IsolationTools
from carrel.adapters.sandbox.local.output_capture import CapturedOutput, OutputTail
from carrel.adapters.sandbox.local.seccomp import SocketPolicy, filter_for
from carrel.ports.sandbox import CommandSpec, SandboxUnavailable

INSIDE: Final = 1000
"""Whom everybody is in there."""
LOG: Final = 65_536
LAST_BREATH: Final = 2.0
"""Seconds after which an instance that cannot be entered is not just ending."""


class InstanceEnded(SandboxUnavailable):
    """The instance ended before the command could begin: it can begin in another."""


class InstanceInit(CommandRun):
    """What holds the namespaces of an instance: a process that sleeps.

    Where no control group bounds all that lives there, it is looked at for as long as it is kept;
    for too much the first process of its namespace is killed, with which the kernel kills all.
    """

    def __init__(
        self, means: IsolationTools, order: CommandSpec, name: str, child: ChildProcess
    ) -> None:
        super().__init__(means, order, name, child)
        self.guests: set[int] = set()
        """The processes of ours whose children live there too."""
        self._watching: asyncio.Task[None] | None = None

    @property
    def killed_for(self) -> str | None:
        return self._killed

    @property
    def group(self) -> CommandCgroups | None:
        return self._group

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_alive(self) -> bool:
        return not self._child.ended.is_set()

    async def is_ending(self) -> bool:
        """Whether it is over, or will be in a moment."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._child.ended.wait(), LAST_BREATH)
        return not self.is_alive

    async def begin(self) -> int:
        """Gives the process whose namespaces are to be entered. Raises Refused."""
        await self._child.go()
        while self.is_alive:
            first = process_tree.children(self._inner() or 0)
            if first and process_tree.is_running(first[0], b"sleep"):
                if self._needs_watching():
                    self._watching = asyncio.create_task(self._watch())
                return first[0]
            await asyncio.sleep(0.005)
        return 0

    def _held(self) -> int:
        return super()._held() + sum(map(process_tree.memory, tuple(self.guests)))

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        await super().close()


class InstanceCommand(CommandRun):
    """A command while it runs among others."""

    of_ours: ClassVar = 1

    def __init__(
        self,
        means: IsolationTools,
        order: CommandSpec,
        child: ChildProcess,
        resident: InstanceInit,
        door: int,
    ) -> None:
        self._resident, self._door = resident, door
        super().__init__(means, order, "", child)
        resident.guests.add(child.pid)

    async def close(self) -> None:
        await super().close()
        self._resident.guests.discard(self._child.pid)

    def _bounded(self, name: str) -> CommandCgroups | None:
        return None

    async def prepare(self, lower: File | None) -> int:
        try:
            await self._child.prepare(self._plan(lower))
        except SandboxUnavailable:
            if reason := self._resident.killed_for:
                raise SandboxUnavailable(f"the sandbox was {reason}") from None
            if await self._resident.is_ending():
                raise InstanceEnded("the sandbox ended before the command could begin") from None
            raise
        return -1

    def _plan(self, lower: File | None) -> Mapping[str, Any]:
        means, order = self._means, self._order
        usual = means.own_network or order.bounds.network
        group = self._resident.group
        return {
            "cgroups": group.directories if group else [],
            "enter": self._door,
            "stage": "",
            "bind": "",
            "uid": INSIDE,
            "gid": INSIDE,
            "drop": True,
            "limits": self._limits(),
            "program": "/bin/bash",
            "directory": bwrap_arguments.WORKSPACE,
            "keep": [],
            "landlock": None,
            "seccomp": filter_for(
                platform.machine(),
                SocketPolicy.USUAL if usual else SocketPolicy.NONE,
                grouped=group is not None,
            ),
            "argv": ["bash", "-c", order.command],
            "env": {**order.env} | bwrap_arguments.ENVIRONMENT,
        }

    def _limits(self) -> dict[str, int]:
        limits = super()._limits()
        if self._resident.group is not None:
            del limits["RLIMIT_AS"], limits["RLIMIT_NPROC"]
        return limits

    def _needs_watching(self) -> bool:
        return False  # whoever lives there is looked at together

    def _notes(self) -> tuple[str, ...]:
        reason = self._resident.killed_for
        return (*super()._notes(), *([reason] if reason else []))

    def _code(self) -> int | None:
        return self._child.code

    def _inner(self) -> int | None:
        return self._child.pid

    def _end_tree(self) -> None:
        pid = self._child.pid
        if self._child.ended.is_set():
            return
        found = [(each, parent) for parent in (pid, *process_tree.descendants(pid))
                 for each in process_tree.children(parent)]  # fmt: skip
        for each, parent in found:
            process_tree.send(each, signal.SIGKILL, parent)
        if not found:
            self._child.kill()

    async def _silent(self) -> None:
        await self._child.ended.wait()
        self._out.drain()
        self._err.drain()


class InstanceJob(InstanceCommand):
    """A job: it goes on for as long as it likes, and its last words are kept."""

    def _listened(self, child: ChildProcess) -> tuple[CapturedOutput, CapturedOutput]:
        self.log = bytearray()
        out, err = child.handed(child.out), child.handed(child.err)
        return OutputTail(out, LOG, self.log), OutputTail(err, LOG, self.log)

    async def begin(self) -> None:
        await self._child.go()

    async def end(self) -> int:
        """Wait for its end; gives how it ended."""
        await self._silent()
        return self._child.code

    async def halt(self) -> None:
        await self._stop()
        await self._child.ended.wait()
