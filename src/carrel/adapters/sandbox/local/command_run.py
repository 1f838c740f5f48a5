"""One command from its walls to its end: started, watched, stopped, and what it left compared."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import time
from collections.abc import Mapping
from pathlib import Path as File
from typing import Any, ClassVar, Final

from msgspec import Struct

from carrel.adapters.sandbox.local import bwrap_arguments, process_tree
from carrel.adapters.sandbox.local.cgroups import Cgroups, CommandCgroups
from carrel.adapters.sandbox.local.child_process import ChildProcess
from carrel.adapters.sandbox.local.output_capture import FLOOD, CapturedOutput
from carrel.adapters.sandbox.local.seccomp import SocketPolicy, filter_for
from carrel.ports.sandbox import CommandSpec, ResourceLimits, SandboxUnavailable

GRACE: Final = 2.0
_LOOK: Final = 0.1
_MEGABYTE: Final = 2**20
INODES: Final = 32_768
LONGEST_COMMAND: Final = 128 * 1024 - 1


class IsolationTools(Struct, frozen=True):
    """What there is on this machine to isolate with."""

    tier: str
    uid: int
    gid: int
    drop: bool = False
    """The server is root, and commands are not."""
    program: str = ""
    own_network: bool = True
    overlay: bool = False
    cgroups: Cgroups | None = None
    landlock: int = 0
    lacking: tuple[str, ...] = ()


class CommandOutcome(Struct):
    """How it went."""

    code: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    milliseconds: int
    notes: tuple[str, ...]


class CommandRun:
    """A command while it runs."""

    of_ours: ClassVar = 2
    """Processes of ours, within the bound that the kernel keeps: bubblewrap is there twice."""

    def __init__(
        self, means: IsolationTools, order: CommandSpec, name: str, child: ChildProcess
    ) -> None:
        self._means, self._order, self._child = means, order, child
        self._killed: str | None = None
        self._group = self._bounded(name)
        self._out, self._err = self._listened(child)

    def _listened(self, child: ChildProcess) -> tuple[CapturedOutput, CapturedOutput]:
        most = self._order.bounds.output_bytes
        out, err = child.handed(child.out), child.handed(child.err)
        return CapturedOutput(out, most, self._flooded), CapturedOutput(err, most, self._flooded)

    def _bounded(self, name: str) -> CommandCgroups | None:
        bounds, cgroups = self._order.bounds, self._means.cgroups
        if cgroups is None:
            return None
        try:
            return cgroups.make(
                name,
                memory=bounds.memory_mb * _MEGABYTE,
                processes=bounds.processes + self.of_ours,
            )
        except OSError as problem:
            raise SandboxUnavailable(
                f"no control group could be made: {problem.strerror}"
            ) from None

    async def prepare(self, lower: File | None) -> int:
        """Build its walls; gives the directory that holds its files, with ``upper`` in it."""
        filter = filter_for(
            platform.machine(),
            SocketPolicy.USUAL
            if self._means.own_network or self._order.bounds.network
            else SocketPolicy.NONE,
            grouped=self._group is not None,
        )
        _fill(self._child.filter, filter)
        _fill(self._child.given, bwrap_arguments.variables(self._order.env))
        staged = await self._child.prepare(self._plan(lower))
        assert staged is not None
        return staged

    def _plan(self, lower: File | None) -> Mapping[str, Any]:
        means, order = self._means, self._order
        child = self._child
        kept = {"status": child.status, "filter": child.filter, "given": child.given}
        stage = bwrap_arguments.stage_for(means.program)
        argv = bwrap_arguments.arguments(
            stage, network=order.bounds.network, own_network=means.own_network, **kept
        )
        return {
            "cgroups": self._group.directories if self._group else [],
            "stage": stage,
            "enter": 0,
            "bind": "",
            "own_user": not means.drop,
            "uid": means.uid,
            "gid": means.gid,
            "drop": means.drop,
            "lower": str(lower) if lower else "",
            "disk": order.bounds.disk_mb * _MEGABYTE,
            "inodes": INODES,
            "etc": bwrap_arguments.ETC,
            "limits": self._limits(),
            "program": means.program,
            "directory": "/",
            "keep": list(kept.values()),
            "landlock": None,
            "seccomp": b"",
            "argv": [*argv, "--", "bash", "-c", order.command],
            "env": bwrap_arguments.ENVIRONMENT,
        }

    def _limits(self) -> dict[str, int]:
        bounds = self._order.bounds
        limits = {
            "RLIMIT_CORE": 0,
            "RLIMIT_FSIZE": bounds.disk_mb * _MEGABYTE,
            "RLIMIT_NOFILE": 4096,
            "RLIMIT_CPU": bounds.seconds * max(1, os.cpu_count() or 1) + 5,
        }
        if self._group is None:
            limits["RLIMIT_AS"] = bounds.memory_mb * _MEGABYTE
            limits["RLIMIT_NPROC"] = bounds.processes + self.of_ours
        return limits

    async def finish(self) -> CommandOutcome:
        """Let it run to its end, or to the end of what it may use. Raises Refused."""
        began = time.monotonic()
        await self._child.go()
        timed_out = not await self._ended_within(self._order.bounds.seconds)
        if timed_out:
            await self._stop()
        await self._silent()
        milliseconds = int((time.monotonic() - began) * 1000)
        code = self._code()
        notes = self._notes()
        if code is None and not timed_out and not notes:
            said = self._err.text.decode(errors="replace").strip() or "it gave no reason"
            raise SandboxUnavailable(f"the sandbox could not be set up: {said}")
        code = 137 if code is None else code
        return CommandOutcome(
            code=None if timed_out else code,
            stdout=self._out.text,
            stderr=self._err.text,
            timed_out=timed_out,
            milliseconds=milliseconds,
            notes=notes,
        )

    async def _silent(self) -> None:
        await self._child.ended.wait()
        await self._out.ended.wait()
        await self._err.ended.wait()

    def _code(self) -> int | None:
        return self._child.reported().get("exit-code")

    def _notes(self) -> tuple[str, ...]:
        notes = [self._killed] if self._killed else []
        if self._group and self._group.was_short_of_memory():
            notes.append(f"killed: it needed more than {self._order.bounds.memory_mb} MB of memory")
        return tuple(notes)

    async def _ended_within(self, seconds: float) -> bool:
        watching = asyncio.create_task(self._watch()) if self._needs_watching() else None
        try:
            await asyncio.wait_for(self._child.ended.wait(), seconds)
        except TimeoutError:
            return self._killed is not None
        finally:
            if watching is not None:
                watching.cancel()
        return True

    def _needs_watching(self) -> bool:
        return self._group is None

    async def _watch(self) -> None:
        """Where the kernel does not bound all of its processes together, look at them and kill."""
        while self._killed is None:
            began = time.monotonic()
            if reason := await asyncio.to_thread(self._excess):
                self._kill(reason)
            await asyncio.sleep(max(_LOOK, 4 * (time.monotonic() - began)))

    def _excess(self) -> str | None:
        most = self._order.bounds.memory_mb
        if self._held() > most * _MEGABYTE:
            return f"killed: it needed more than {most} MB of memory"
        return None

    def _held(self) -> int:
        return process_tree.memory(self._child.pid)

    async def _stop(self) -> None:
        """Ask all of it to end, and a moment later do not ask."""
        if inner := self._inner():
            await asyncio.to_thread(process_tree.terminate, inner)
            try:
                await asyncio.wait_for(self._child.ended.wait(), GRACE)
            except TimeoutError:
                pass
            else:
                return
        self._end_tree()

    def _flooded(self) -> None:
        self._kill(f"killed: it printed more than {FLOOD // _MEGABYTE} MiB")

    def _kill(self, reason: str) -> None:
        self._killed = self._killed or reason
        self._end_tree()

    def _inner(self) -> int | None:
        """The first process of its namespace: with it all others go."""
        return self._child.reported().get("child-pid")

    def _end_tree(self) -> None:
        if self._child.ended.is_set():
            return
        if inner := self._inner():
            process_tree.send(inner, signal.SIGKILL, self._child.pid)
        else:
            self._child.kill()

    async def close(self) -> None:
        """Leave nothing of it, whatever has happened."""
        self._end_tree()
        inner = self._inner()
        await self._child.end()
        self._out.close()
        self._err.close()
        if self._group is not None:
            await asyncio.to_thread(self._group.remove)
        elif inner is not None:  # it may be on its way still, and all that it takes along
            await asyncio.to_thread(process_tree.outlive, inner, "bwrap")


def _fill(file: int, content: bytes) -> None:
    with open(os.dup(file), "wb") as written:
        written.write(content)
    os.lseek(file, 0, os.SEEK_SET)


def unsupported_reason(bounds: ResourceLimits, command: str) -> str | None:
    """Why no provider of this kind could run it, or None."""
    if len(command.encode(errors="surrogateescape")) > LONGEST_COMMAND:
        return f"the command is longer than {LONGEST_COMMAND} bytes"
    if "\0" in command:
        return "the command holds a NUL"
    if bounds.memory_mb < 16:
        return "a command needs 16 MB of memory at least"
    return None
