"""Commands and jobs inside a persistent sandbox instance."""

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

INSTANCE_UID: Final = 1000
"""User and group id of all processes inside an instance."""
JOB_LOG_BYTES: Final = 65_536
END_TIMEOUT_SECONDS: Final = 2.0
"""How long to wait to see whether an instance that cannot be entered is ending."""


class InstanceEnded(SandboxUnavailable):
    """The instance ended before the command started; it can run in a new one."""


class InstanceInit(CommandRun):
    """Sleeping process that holds an instance's namespaces.

    Without control groups its memory is polled; above the limit the first process of the namespace
    is killed, and the kernel kills the rest.
    """

    counted_tmpfs = ("side",)
    """Not the workspace, which the server fills."""

    def __init__(
        self, tools: IsolationTools, spec: CommandSpec, name: str, child: ChildProcess
    ) -> None:
        super().__init__(tools, spec, name, child)
        self.command_pids: set[int] = set()
        """Launcher processes whose children run in this instance."""
        self._watch_task: asyncio.Task[None] | None = None

    @property
    def kill_reason(self) -> str | None:
        return self._kill_reason

    @property
    def cgroup(self) -> CommandCgroups | None:
        return self._cgroup

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def is_alive(self) -> bool:
        return not self._child.ended.is_set()

    async def wait_if_ending(self) -> bool:
        """Wait up to 2 seconds for the end; return whether it has ended."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._child.ended.wait(), END_TIMEOUT_SECONDS)
        return not self.is_alive

    async def begin(self) -> int:
        """Start it; return the process whose namespaces to enter, or 0.

        Raises SandboxUnavailable.
        """
        await self._start_command()
        while self.is_alive:
            children = process_tree.children(self._root_pid() or 0)
            if children and process_tree.is_running(children[0], b"sleep"):
                if self._needs_watching():
                    self._watch_task = asyncio.create_task(self._watch())
                return children[0]
            await asyncio.sleep(0.005)
        return 0

    def _memory_in_use(self) -> int:
        return super()._memory_in_use() + sum(
            map(process_tree.memory_bytes, tuple(self.command_pids))
        )

    async def close(self) -> None:
        if self._watch_task is not None:
            self._watch_task.cancel()
        await super().close()


class InstanceCommand(CommandRun):
    """A command that runs in an existing instance."""

    own_processes: ClassVar = 1

    def __init__(
        self,
        tools: IsolationTools,
        spec: CommandSpec,
        child: ChildProcess,
        init_process: InstanceInit,
        namespace_pid: int,
    ) -> None:
        self._init_process, self._namespace_pid = init_process, namespace_pid
        super().__init__(tools, spec, "", child)
        init_process.command_pids.add(child.pid)

    async def close(self) -> None:
        await super().close()
        self._init_process.command_pids.discard(self._child.pid)

    def _create_cgroup(self, name: str) -> CommandCgroups | None:
        return None

    async def prepare(self, lower: File | None) -> int:
        try:
            await self._child.prepare(self._plan(lower))
        except SandboxUnavailable:
            if reason := self._init_process.kill_reason:
                raise SandboxUnavailable(f"the sandbox was {reason}") from None
            if await self._init_process.wait_if_ending():
                raise InstanceEnded("the sandbox ended before the command started") from None
            raise
        return -1

    def _plan(self, lower: File | None) -> Mapping[str, Any]:
        tools, spec = self._tools, self._spec
        has_network = tools.own_network or spec.limits.network
        cgroup = self._init_process.cgroup
        return {
            "cgroups": cgroup.directories if cgroup else [],
            "enter": self._namespace_pid,
            "stage": "",
            "own_count": False,
            "bind": "",
            "uid": INSTANCE_UID,
            "gid": INSTANCE_UID,
            "drop": True,
            "limits": self._limits(),
            "program": "/bin/bash",
            "directory": bwrap_arguments.WORKSPACE,
            "keep": [],
            "landlock": None,
            "seccomp": filter_for(
                platform.machine(),
                SocketPolicy.ALLOWED if has_network else SocketPolicy.NONE,
                has_cgroup=cgroup is not None,
            ),
            "argv": ["bash", "-c", spec.command],
            "env": {**spec.env} | bwrap_arguments.ENVIRONMENT,
        }

    def _limits(self) -> dict[str, int]:
        limits = super()._limits()
        del limits["RLIMIT_CPU"]  # jobs and processes that a command leaves behind outlast it
        if self._init_process.cgroup is not None:
            del limits["RLIMIT_DATA"], limits["RLIMIT_NPROC"]
        return limits

    def _needs_watching(self) -> bool:
        return False  # the instance's init process watches all commands

    def _notes(self) -> tuple[str, ...]:
        reason = self._init_process.kill_reason
        return (*super()._notes(), *([reason] if reason else []))

    def _exit_code(self) -> int | None:
        return self._child.code

    def _root_pid(self) -> int | None:
        return self._child.pid

    def _kill_tree(self) -> None:
        pid = self._child.pid
        if self._child.ended.is_set():
            return
        pairs = [(child, parent) for parent in (pid, *process_tree.descendants(pid))
                 for child in process_tree.children(parent)]  # fmt: skip
        for child, parent in pairs:
            process_tree.send_signal(child, signal.SIGKILL, parent)
        if not pairs:
            self._child.kill()

    async def _wait_for_output(self) -> None:
        await self._child.ended.wait()
        self._out.drain()
        self._err.drain()
        if process_tree.is_dying(self._namespace_pid):  # the next command needs a new instance
            await self._init_process.wait_if_ending()


class InstanceJob(InstanceCommand):
    """A background job without time limit, of which the last output is kept."""

    def _capture_output(self, child: ChildProcess) -> tuple[CapturedOutput, CapturedOutput]:
        self.log = bytearray()
        out, err = child.detach_fd(child.out), child.detach_fd(child.err)
        return OutputTail(out, JOB_LOG_BYTES, self.log), OutputTail(err, JOB_LOG_BYTES, self.log)

    async def begin(self) -> None:
        await self._child.start_command()

    async def end(self) -> int:
        """Wait for its end and return the exit code."""
        await self._wait_for_output()
        return self._child.code

    async def stop(self) -> None:
        await self._stop()
        await self._child.ended.wait()
