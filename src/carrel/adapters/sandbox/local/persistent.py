"""The local provider with what it keeps: instances by their reservation, and jobs in them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path as File
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.adapters.sandbox.local.child_process import ChildProcess
from carrel.adapters.sandbox.local.command_run import CommandOutcome, IsolationTools
from carrel.adapters.sandbox.local.directory_lease import is_kept
from carrel.adapters.sandbox.local.file_cache import MaterializedFiles, fetched, read_batch_size
from carrel.adapters.sandbox.local.instance_exec import (
    InstanceCommand,
    InstanceEnded,
    InstanceInit,
    InstanceJob,
)
from carrel.adapters.sandbox.local.instances import MOST_JOBS, Instance, instance_spec
from carrel.adapters.sandbox.local.job_state import JobSnapshot, JobState
from carrel.adapters.sandbox.local.local_sandbox import EphemeralSandbox, shield_until_done
from carrel.adapters.sandbox.local.self_test import SandboxSettings
from carrel.ports.sandbox import (
    EXIT_LOST,
    EXIT_STOPPED,
    BackgroundJob,
    CommandResult,
    CommandSpec,
    Fetch,
    Home,
    ResourceLimits,
    SandboxUnavailable,
)

FOREVER: Final = 10**9
HOMEWARD: Final = 60.0
"""Seconds for bringing back what lies in an instance."""
PATIENCE: Final = 30.0
"""Seconds for which whoever asks for a job waits for what it changed."""
UNKEPT: Final = "[the files that it changed could not be brought back]"


SEVERAL: Final = (
    "a server with several workers keeps no sandbox between calls, since each would keep its own:"
    " serve with one worker, or leave persistent out"
)
ELSEWHERE: Final = "this sandbox is kept by another process on this machine, and runs nothing here"


class JobFollower(Struct):
    """A job, until what it changed is brought back."""

    instance: Instance
    work: InstanceJob
    task: asyncio.Task[None]


class LocalSandbox(EphemeralSandbox):
    """Instances live in the process that made them, and end with it."""

    def __init__(
        self,
        directory: File,
        wishes: SandboxSettings = SandboxSettings(),
        tried: IsolationTools | None = None,
    ) -> None:
        super().__init__(directory, wishes, tried)
        self._ledger = JobState(directory / "jobs", partial(is_kept, directory))
        self._claims: dict[str, int] = {}
        self._instances: dict[str, Instance] = {}
        self._making = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()
        self._following: dict[tuple[str, str], JobFollower] = {}
        self._stopped: set[tuple[str, str]] = set()

    def unsupported_reason(self, bounds: ResourceLimits, *, persistent: bool = False) -> str | None:
        reason = super().unsupported_reason(bounds)
        if reason or not persistent or self._means is None:
            return reason
        if self._means.landlock:
            return "no sandbox can be kept between calls behind Landlock"
        if not self._wishes.alone:
            return SEVERAL
        return None

    async def close(self) -> None:
        for reservation in tuple(self._instances):
            self._retire(reservation)
        if self._ending:
            await shield_until_done(_all(self._ending))
        await super().close()

    @asynccontextmanager
    async def run(self, order: CommandSpec, fetch: Fetch) -> AsyncIterator[CommandResult]:
        if order.instance_key is None:
            async with super().run(order, fetch) as ran:
                yield ran
            return
        means = await self._may(order)
        async with AsyncExitStack() as stack:
            try:
                instance = await stack.enter_async_context(self._held(means, order))
                laid, outcome = await self._visited(means, order, fetch, instance)
            except InstanceEnded:  # it died when nobody looked, and nothing was run
                await stack.aclose()
                instance = await stack.enter_async_context(self._held(means, order))
                laid, outcome = await self._visited(means, order, fetch, instance)
            files = None if order.files is None else laid.files
            async with instance.told(outcome, files, laid.notes) as ran:
                yield ran

    async def _may(self, order: CommandSpec) -> IsolationTools:
        means = await self.ready()
        if reason := self.unfit(order, persistent=True):
            raise SandboxUnavailable(reason)
        return means

    @asynccontextmanager
    async def _held(self, means: IsolationTools, order: CommandSpec) -> AsyncIterator[Instance]:
        """The instance of an order, for it alone. Raises Refused."""
        while True:
            instance = await self._instance(means, order)
            await instance.busy.acquire()
            if instance.is_open:
                break
            instance.busy.release()
        try:
            instance.home = order.write_back or instance.home
            yield instance
        finally:
            instance.busy.release()
            self._rest(order, instance)

    async def _instance(self, means: IsolationTools, order: CommandSpec) -> Instance:
        """The one that is there, or a new one. Raises Refused."""
        assert order.instance_key is not None
        async with self._making:
            found = self._instances.get(order.instance_key)
            if found is not None and found.is_open and found.terms == instance_spec(order):
                found.wake()
                return found
            self._retire(order.instance_key, patient=True)
            self._claim(order.instance_key)
            try:
                return await shield_until_done(self._made(means, order, order.instance_key))
            except BaseException:
                self._disclaim(order.instance_key)
                raise

    def _claim(self, reservation: str) -> None:
        """Keep all other processes from keeping another by this name. Raises Refused."""
        assert self._keep is not None
        if reservation not in self._claims:
            claim = self._keep.claim(reservation)
            if claim is None:
                raise SandboxUnavailable(ELSEWHERE)
            self._claims[reservation] = claim

    def _disclaim(self, reservation: str) -> None:
        if reservation in self._claims and reservation not in self._instances:
            os.close(self._claims.pop(reservation))

    async def _made(self, means: IsolationTools, order: CommandSpec, reservation: str) -> Instance:
        assert self._keep is not None and self._cache is not None
        asleep = replace(
            order,
            command="exec sleep infinity",
            env={},
            bounds=replace(order.bounds, seconds=FOREVER),
        )
        name = f"{self._keep.name}-{next(self._numbers)}"
        child = ChildProcess()
        try:
            resident = InstanceInit(means, asleep, name, child)
        except BaseException:
            await child.end()
            raise
        try:
            stage = await resident.prepare(None)
            door = await resident.begin()
        except BaseException:
            await resident.close()
            raise
        if not door:
            os.close(stage)
            await resident.close()
            raise SandboxUnavailable("the sandbox could not be kept: it ended at once")
        instance = Instance(resident, door, stage, self._cache, order)
        self._instances[reservation] = instance
        if order.lifetime_seconds is not None:
            instance.age(order.lifetime_seconds, lambda: self._retire(reservation, patient=True))
        return instance

    async def _visited(
        self, means: IsolationTools, order: CommandSpec, fetch: Fetch, instance: Instance
    ) -> tuple[MaterializedFiles, CommandOutcome]:
        laid = await shield_until_done(self._brought(order, fetch, instance))
        visit = InstanceCommand(means, order, self._child(), instance.resident, instance.door)
        try:
            await visit.prepare(None)
            return laid, await visit.finish()
        finally:
            await shield_until_done(visit.close())
            self._spare = self._spare or ChildProcess()

    async def _brought(
        self, order: CommandSpec, fetch: Fetch, instance: Instance
    ) -> MaterializedFiles:
        assert self._cache is not None
        if order.files is None:
            return MaterializedFiles({}, ())
        targets = await fetched(self._cache, order.files, fetch)
        laid = read_batch_size(order.files, targets)
        return await asyncio.to_thread(instance.files.bring, laid, targets)

    def _rest(self, order: CommandSpec, instance: Instance) -> None:
        reservation = order.instance_key or ""
        if self._instances.get(reservation) is instance:
            instance.rest(order.idle_seconds, lambda: self._retire(reservation))

    async def start(self, order: CommandSpec, fetch: Fetch) -> None:
        if order.instance_key is None:
            raise SandboxUnavailable("background jobs require a persistent workspace sandbox")
        means = await self._may(order)
        try:
            await self._set_off(means, order, fetch)
        except InstanceEnded:
            await self._set_off(means, order, fetch)

    async def _set_off(self, means: IsolationTools, order: CommandSpec, fetch: Fetch) -> None:
        async with self._held(means, order) as instance:
            if len(instance.jobs) >= MOST_JOBS:
                raise SandboxUnavailable(f"{MOST_JOBS} jobs are running in this sandbox already")
            await shield_until_done(self._started(means, order, fetch, instance))

    async def _started(
        self, means: IsolationTools, order: CommandSpec, fetch: Fetch, instance: Instance
    ) -> None:
        assert order.instance_key is not None and self._keep is not None
        await self._brought(order, fetch, instance)
        work = InstanceJob(means, order, self._child(), instance.resident, instance.door)
        self._ledger.write(order.instance_key, order.id, JobSnapshot(self._keep.name))
        try:
            await work.prepare(None)
            await work.begin()
        except BaseException:
            await work.close()
            raise
        instance.jobs[order.id] = work
        task = asyncio.create_task(self._followed(order.instance_key, order, instance, work))
        self._following[order.instance_key, order.id] = JobFollower(instance, work, task)

    async def _followed(
        self, reservation: str, order: CommandSpec, instance: Instance, work: InstanceJob
    ) -> None:
        code = await work.end()
        await work.close()
        if (reservation, order.id) in self._stopped:
            code = EXIT_STOPPED
        elif instance.was_stopped or not instance.resident.is_alive:
            code = EXIT_LOST
        log = bytes(work.log)
        await asyncio.to_thread(
            self._ledger.write, reservation, order.id, JobSnapshot("", code, log)
        )
        del instance.jobs[order.id]
        notes = await _gone_home(instance, order.write_back, BackgroundJob(order.id, code, log))
        if notes:
            gap = b"\n" if log and not log.endswith(b"\n") else b""
            told = JobSnapshot("", code, log + gap + "\n".join(notes).encode(errors="replace"))
            await asyncio.to_thread(self._ledger.write, reservation, order.id, told)
        self._stopped.discard((reservation, order.id))
        del self._following[reservation, order.id]
        self._rest(order, instance)

    async def job(self, reservation: str, id: str) -> BackgroundJob | None:
        following = self._following.get((reservation, id))
        if following is not None:
            if id in following.instance.jobs:
                return BackgroundJob(id, None, bytes(following.work.log))
            await asyncio.wait([following.task], timeout=PATIENCE)
        return await asyncio.to_thread(self._ledger.read, reservation, id)

    async def stop(self, reservation: str, id: str) -> BackgroundJob | None:
        following = self._following.get((reservation, id))
        if following is not None and id in following.instance.jobs:
            self._stopped.add((reservation, id))
            await shield_until_done(following.work.halt())
            await asyncio.wait([following.task], timeout=PATIENCE)
        return await self.job(reservation, id)

    async def delete_job(self, reservation: str, id: str) -> None:
        if (reservation, id) not in self._following:
            await asyncio.to_thread(self._ledger.drop, reservation, id)

    async def release(self, reservation: str) -> None:
        if ending := self._retire(reservation):
            await asyncio.shield(ending)
        await asyncio.to_thread(self._ledger.forget, reservation)

    def _retire(self, reservation: str, *, patient: bool = False) -> asyncio.Task[None] | None:
        """Let nobody find an instance any more, and begin to end it."""
        instance = self._instances.pop(reservation, None)
        if instance is None:
            return None
        instance.leave()
        task = asyncio.create_task(self._ended(reservation, instance, patient))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    async def _ended(self, reservation: str, instance: Instance, patient: bool) -> None:
        """Where it is patient, a command that somebody waits for is let end."""
        if patient:
            async with instance.busy:
                await instance.stop()
        await instance.stop()
        jobs = [each.task for each in self._following.values() if each.instance is instance]
        if jobs:
            await asyncio.wait(jobs)
        await _gone_home(instance, instance.home, None)
        await instance.close()
        async with self._making:  # the next one may be on its way, and has the same claim
            self._disclaim(reservation)


async def _all(tasks: set[asyncio.Task[None]]) -> None:
    while tasks:
        await asyncio.wait(tuple(tasks))


async def _gone_home(
    instance: Instance, home: Home | None, job: BackgroundJob | None
) -> Sequence[str]:
    if home is None:
        return ()
    try:
        async with asyncio.timeout(HOMEWARD):
            return await home(instance.look, job)
    except Exception:  # whatever it is, the instance goes on, or has to end
        return (UNKEPT,)
