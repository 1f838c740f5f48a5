"""Runs one command in bubblewrap: sets limits, watches it and stops it."""

from __future__ import annotations

import asyncio
import os
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path as File
from typing import Any, ClassVar, Final

from msgspec import Struct

from carrel.adapters.sandbox.local import bwrap_arguments, process_tree
from carrel.adapters.sandbox.local.cgroups import Cgroups, CommandCgroups
from carrel.adapters.sandbox.local.child_process import ChildProcess
from carrel.adapters.sandbox.local.output_capture import MAX_PRINTED_BYTES, CapturedOutput
from carrel.adapters.sandbox.local.seccomp import SocketPolicy, filter_for
from carrel.ports.sandbox import CommandSpec, ResourceLimits, SandboxUnavailable

TERMINATE_GRACE_SECONDS: Final = 2.0
_END_TIMEOUT_SECONDS: Final = 10.0
_WATCH_INTERVAL_SECONDS: Final = 0.1
_MIB: Final = 2**20
_RESERVE_FACTOR: Final = 4
"""Private memory one process may reserve, as a multiple of what all may use."""
MAX_INODES: Final = 32_768
MAX_COMMAND_BYTES: Final = 128 * 1024 - 1


class IsolationTools(Struct, frozen=True):
    """Isolation features that work on this machine."""

    tier: str
    uid: int
    gid: int
    drops_privileges: bool = False
    """The server runs as root and commands as another user."""
    program: str = ""
    own_network: bool = True
    overlay: bool = False
    cgroups: Cgroups | None = None
    landlock: int = 0
    missing_features: tuple[str, ...] = ()


class CommandOutcome(Struct):
    """Exit code, output and duration of a command."""

    code: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    milliseconds: int
    notes: tuple[str, ...]


class CommandRun:
    """A running command."""

    own_processes: ClassVar = 3
    """Our processes that count towards the limit: the launcher and bubblewrap, twice."""

    counted_tmpfs: ClassVar[tuple[str, ...]] = (".", "side")
    """Directories in memory whose growth counts towards the memory limit."""

    def __init__(
        self, tools: IsolationTools, spec: CommandSpec, name: str, child: ChildProcess
    ) -> None:
        self._tools, self._spec, self._child = tools, spec, child
        self._tmpfs: list[int] = []
        self._tmpfs_at_start = 0
        self._kill_reason: str | None = None
        self._cgroup = self._create_cgroup(name)
        self._out, self._err = self._capture_output(child)

    def _capture_output(self, child: ChildProcess) -> tuple[CapturedOutput, CapturedOutput]:
        max_bytes = self._spec.limits.output_bytes
        out, err = child.detach_fd(child.out), child.detach_fd(child.err)
        return CapturedOutput(out, max_bytes, self._on_output_flood), CapturedOutput(
            err, max_bytes, self._on_output_flood
        )

    def _create_cgroup(self, name: str) -> CommandCgroups | None:
        limits, cgroups = self._spec.limits, self._tools.cgroups
        if cgroups is None:
            return None
        try:
            return cgroups.create(
                name,
                memory=limits.memory_mb * _MIB,
                processes=limits.processes + self.own_processes,
            )
        except OSError as problem:
            raise SandboxUnavailable(f"cannot create a control group: {problem.strerror}") from None

    async def prepare(self, lower: File | None) -> int:
        """Set up isolation; return the stage directory, which contains ``upper``."""
        filter = filter_for(
            platform.machine(),
            SocketPolicy.ALLOWED
            if self._tools.own_network or self._spec.limits.network
            else SocketPolicy.NONE,
            has_cgroup=self._cgroup is not None,
        )
        _write_fd(self._child.filter, filter)
        _write_fd(self._child.args, bwrap_arguments.setenv_arguments(self._spec.env))
        stage = await self._child.prepare(self._plan(lower))
        assert stage is not None
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        self._tmpfs = [os.open(name, flags, dir_fd=stage) for name in self.counted_tmpfs]
        return stage

    def _plan(self, lower: File | None) -> Mapping[str, Any]:
        tools, spec = self._tools, self._spec
        child = self._child
        passed_fds = {"status": child.status, "filter": child.filter, "args": child.args}
        stage = bwrap_arguments.stage_for(tools.program)
        argv = bwrap_arguments.build_arguments(
            stage, network=spec.limits.network, own_network=tools.own_network, **passed_fds
        )
        return {
            "cgroups": self._cgroup.directories if self._cgroup else [],
            "stage": stage,
            "enter": 0,
            "bind": "",
            "own_user": not tools.drops_privileges,
            "own_count": tools.drops_privileges,
            "uid": tools.uid,
            "gid": tools.gid,
            "drop": tools.drops_privileges,
            "lower": str(lower) if lower else "",
            "disk": spec.limits.disk_mb * _MIB,
            "inodes": MAX_INODES,
            "etc": bwrap_arguments.ETC_FILES,
            "limits": self._limits(),
            "program": tools.program,
            "directory": "/",
            "keep": list(passed_fds.values()),
            "landlock": None,
            "seccomp": b"",
            "argv": [*argv, "--", "bash", "-c", spec.command],
            "env": bwrap_arguments.ENVIRONMENT,
        }

    def _limits(self) -> dict[str, int]:
        bounds = self._spec.limits
        limits = {
            "RLIMIT_CORE": 0,
            "RLIMIT_FSIZE": bounds.disk_mb * _MIB,
            "RLIMIT_NOFILE": 4096,
            "RLIMIT_CPU": bounds.seconds * max(1, os.cpu_count() or 1) + 5,
        }
        if self._cgroup is None:
            # Not RLIMIT_AS: runtimes and thread pools reserve far more than they use.
            limits["RLIMIT_DATA"] = _RESERVE_FACTOR * bounds.memory_mb * _MIB
            limits["RLIMIT_NPROC"] = bounds.processes + self.own_processes
        return limits

    async def finish(self) -> CommandOutcome:
        """Run until the command ends or exceeds a limit. Raises SandboxUnavailable."""
        started = time.monotonic()
        await self._start_command()
        timed_out = not await self._wait_for_end(self._spec.limits.seconds)
        if timed_out:
            await self._stop()
        await self._wait_for_output()
        milliseconds = int((time.monotonic() - started) * 1000)
        code = self._exit_code()
        notes = self._notes()
        if code is None and not timed_out and not notes:
            message = self._err.text.decode(errors="replace").strip() or "no reason given"
            raise SandboxUnavailable(f"sandbox setup failed: {message}")
        code = 137 if code is None else code
        return CommandOutcome(
            code=None if timed_out else code,
            stdout=self._out.text,
            stderr=self._err.text,
            timed_out=timed_out,
            milliseconds=milliseconds,
            notes=notes,
        )

    async def _start_command(self) -> None:
        self._tmpfs_at_start = self._tmpfs_in_use()
        await self._child.start_command()

    async def _wait_for_output(self) -> None:
        await self._child.ended.wait()
        await self._out.ended.wait()
        await self._err.ended.wait()

    def _exit_code(self) -> int | None:
        return self._child.read_status().get("exit-code")

    def _notes(self) -> tuple[str, ...]:
        notes = [self._kill_reason] if self._kill_reason else []
        if self._cgroup and self._cgroup.was_oom_killed():
            notes.append(f"killed: memory limit exceeded ({self._spec.limits.memory_mb} MB)")
        return tuple(notes)

    async def _wait_for_end(self, seconds: float) -> bool:
        watch_task = asyncio.create_task(self._watch()) if self._needs_watching() else None
        try:
            await asyncio.wait_for(self._child.ended.wait(), seconds)
        except TimeoutError:
            return self._kill_reason is not None
        finally:
            if watch_task is not None:
                watch_task.cancel()
        return True

    def _needs_watching(self) -> bool:
        return self._cgroup is None

    async def _watch(self) -> None:
        """Poll the memory of all processes and kill them above the limit.

        Used if the kernel cannot limit them together.
        """
        while self._kill_reason is None:
            started = time.monotonic()
            if reason := await asyncio.to_thread(self._limit_violation):
                self._kill(reason)
            await asyncio.sleep(max(_WATCH_INTERVAL_SECONDS, 4 * (time.monotonic() - started)))

    def _limit_violation(self) -> str | None:
        max_mb = self._spec.limits.memory_mb
        if self._memory_in_use() > max_mb * _MIB:
            return f"killed: memory limit exceeded ({max_mb} MB)"
        return None

    def _memory_in_use(self) -> int:
        files = self._tmpfs_in_use() - self._tmpfs_at_start
        return process_tree.memory_bytes(self._child.pid) + max(0, files)

    def _tmpfs_in_use(self) -> int:
        usages = map(os.fstatvfs, self._tmpfs)
        return sum((usage.f_blocks - usage.f_bfree) * usage.f_frsize for usage in usages)

    async def _stop(self) -> None:
        """Send SIGTERM to all processes and SIGKILL after 2 seconds."""
        if root_pid := self._root_pid():
            await asyncio.to_thread(process_tree.terminate_descendants, root_pid)
            try:
                await asyncio.wait_for(self._child.ended.wait(), TERMINATE_GRACE_SECONDS)
            except TimeoutError:
                pass
            else:
                return
        self._kill_tree()

    def _on_output_flood(self) -> None:
        self._kill(f"killed: output exceeded {MAX_PRINTED_BYTES // _MIB} MiB")

    def _kill(self, reason: str) -> None:
        self._kill_reason = self._kill_reason or reason
        self._kill_tree()

    def _root_pid(self) -> int | None:
        """First process of the namespace; killing it ends all others."""
        return self._child.read_status().get("child-pid")

    def _kill_tree(self) -> None:
        """Let the launcher kill all processes and exit."""
        if not self._child.ended.is_set():
            self._child.terminate()

    async def close(self) -> None:
        """Kill all processes and release all resources."""
        self._kill_tree()
        root_pid = self._root_pid()
        with suppress(TimeoutError):  # the launcher kills all others first
            await asyncio.wait_for(self._child.ended.wait(), _END_TIMEOUT_SECONDS)
        await self._child.end()
        self._out.close()
        self._err.close()
        await close_directories(self._tmpfs)
        if self._cgroup is not None:
            await asyncio.to_thread(self._cgroup.remove)
        elif root_pid is not None:  # it may still be exiting
            await asyncio.to_thread(process_tree.wait_for_exit, root_pid, "bwrap")


async def close_directories(fds: list[int]) -> None:
    """Close directories and clear the list, in a thread: the last one of a tmpfs frees it all."""

    def close() -> None:
        while fds:
            os.close(fds.pop())

    await asyncio.to_thread(close)


def _write_fd(file: int, content: bytes) -> None:
    with open(os.dup(file), "wb") as stream:
        stream.write(content)
    os.lseek(file, 0, os.SEEK_SET)


def unsupported_reason(limits: ResourceLimits, command: str) -> str | None:
    """Return why no local sandbox could run the command, or None."""
    if len(command.encode(errors="surrogateescape")) > MAX_COMMAND_BYTES:
        return f"the command is longer than {MAX_COMMAND_BYTES} bytes"
    if "\0" in command:
        return "the command contains a NUL character"
    if limits.memory_mb < 16:
        return "a command needs at least 16 MB of memory"
    return None
