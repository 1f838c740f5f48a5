"""Local sandbox with persistent instances and background jobs."""

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
from carrel.adapters.sandbox.local.directory_lease import is_lease_held
from carrel.adapters.sandbox.local.ephemeral_sandbox import EphemeralSandbox, shield_until_done
from carrel.adapters.sandbox.local.file_cache import fetch_missing
from carrel.adapters.sandbox.local.instance_exec import (
    InstanceCommand,
    InstanceEnded,
    InstanceInit,
    InstanceJob,
)
from carrel.adapters.sandbox.local.instances import MAX_JOBS, Instance, instance_terms
from carrel.adapters.sandbox.local.isolation import SandboxSettings
from carrel.adapters.sandbox.local.job_state import JobSnapshot, JobState
from carrel.adapters.sandbox.local.materialized_files import (
    MaterializedFiles,
    contents_only,
    supported_files,
)
from carrel.ports.blobs import BlobReader
from carrel.ports.sandbox import (
    EXIT_LOST,
    EXIT_STOPPED,
    BackgroundJob,
    CommandResult,
    CommandSpec,
    ResourceLimits,
    SandboxUnavailable,
    WriteBack,
)

UNLIMITED_SECONDS: Final = 10**9
WRITE_BACK_TIMEOUT_SECONDS: Final = 60.0
"""Time limit for writing back an instance's changed files."""
JOB_RESULT_TIMEOUT_SECONDS: Final = 30.0
"""How long a job query waits for the job's changes to be written back."""
WRITE_BACK_FAILED: Final = "[changed files could not be written back]"


NEEDS_SINGLE_WORKER: Final = (
    "persistent sandboxes need a server with one worker, since each worker would have its own:"
    " use one worker or omit persistent"
)
INSTANCE_IN_USE: Final = "this persistent sandbox belongs to another process on this machine"


class JobFollower(Struct):
    """Background job whose changes are not written back yet."""

    instance: Instance
    job: InstanceJob
    task: asyncio.Task[None]


class LocalSandbox(EphemeralSandbox):
    """Runs single commands and persistent instances.

    An instance lives in the process that created it and ends with it.
    """

    def __init__(
        self,
        directory: File,
        settings: SandboxSettings = SandboxSettings(),
        tested_tools: IsolationTools | None = None,
    ) -> None:
        super().__init__(directory, settings, tested_tools)
        self._job_state = JobState(directory / "jobs", partial(is_lease_held, directory))
        self._claims: dict[str, int] = {}
        self._instances: dict[str, Instance] = {}
        self._creation_lock = asyncio.Lock()
        self._end_tasks: set[asyncio.Task[None]] = set()
        self._followers: dict[tuple[str, str], JobFollower] = {}
        self._stopped_jobs: set[tuple[str, str]] = set()

    def unsupported_reason(self, limits: ResourceLimits, *, persistent: bool = False) -> str | None:
        reason = super().unsupported_reason(limits)
        if reason or not persistent or self._tools is None:
            return reason
        if self._tools.landlock:
            return "persistent sandboxes are not supported with Landlock"
        if not self._settings.is_single_process:
            return NEEDS_SINGLE_WORKER
        return None

    async def close(self) -> None:
        for instance_key in tuple(self._instances):
            self._retire(instance_key)
        if self._end_tasks:
            await shield_until_done(_wait_for_all(self._end_tasks))
        await super().close()

    @asynccontextmanager
    async def run(self, spec: CommandSpec, blobs: BlobReader) -> AsyncIterator[CommandResult]:
        if spec.instance_key is None:
            async with super().run(spec, blobs) as result:
                yield result
            return
        tools = await self._require_persistent(spec)
        async with AsyncExitStack() as stack:
            try:
                instance = await stack.enter_async_context(self._acquire_instance(tools, spec))
                materialized, outcome = await self._run_in_instance(tools, spec, blobs, instance)
            except InstanceEnded:  # it died while idle, and nothing was run
                await stack.aclose()
                instance = await stack.enter_async_context(self._acquire_instance(tools, spec))
                materialized, outcome = await self._run_in_instance(tools, spec, blobs, instance)
            base = None if spec.files is None else materialized
            async with instance.open_result(outcome, base, materialized.notes) as result:
                yield result

    async def _require_persistent(self, spec: CommandSpec) -> IsolationTools:
        tools = await self.ready()
        if reason := self.unsupported_spec_reason(spec, persistent=True):
            raise SandboxUnavailable(reason)
        return tools

    @asynccontextmanager
    async def _acquire_instance(
        self, tools: IsolationTools, spec: CommandSpec
    ) -> AsyncIterator[Instance]:
        """Yield the spec's instance, held exclusively. Raises SandboxUnavailable."""
        while True:
            instance = await self._find_or_create_instance(tools, spec)
            await instance.busy.acquire()
            if instance.is_open:
                break
            instance.busy.release()
        try:
            instance.write_back = spec.write_back or instance.write_back
            yield instance
        finally:
            instance.busy.release()
            self._schedule_idle_stop(spec, instance)

    async def _find_or_create_instance(self, tools: IsolationTools, spec: CommandSpec) -> Instance:
        """Return the existing instance or a new one. Raises SandboxUnavailable."""
        assert spec.instance_key is not None
        async with self._creation_lock:
            existing = self._instances.get(spec.instance_key)
            if existing is not None and existing.is_open and existing.terms == instance_terms(spec):
                existing.cancel_idle_stop()
                return existing
            self._retire(spec.instance_key, wait_for_command=True)
            self._claim(spec.instance_key)
            try:
                return await shield_until_done(
                    self._create_instance(tools, spec, spec.instance_key)
                )
            except BaseException:
                self._release_claim(spec.instance_key)
                raise

    def _claim(self, instance_key: str) -> None:
        """Lock the instance key against other processes. Raises SandboxUnavailable."""
        assert self._lease is not None
        if instance_key not in self._claims:
            claim = self._lease.claim_instance(instance_key)
            if claim is None:
                raise SandboxUnavailable(INSTANCE_IN_USE)
            self._claims[instance_key] = claim

    def _release_claim(self, instance_key: str) -> None:
        if instance_key in self._claims and instance_key not in self._instances:
            os.close(self._claims.pop(instance_key))

    async def _create_instance(
        self, tools: IsolationTools, spec: CommandSpec, instance_key: str
    ) -> Instance:
        assert self._lease is not None and self._cache is not None
        init_spec = replace(
            spec,
            command="exec sleep infinity",
            env={},
            limits=replace(spec.limits, seconds=UNLIMITED_SECONDS),
        )
        name = f"{self._lease.name}-{next(self._run_numbers)}"
        child = ChildProcess()
        try:
            init_process = InstanceInit(tools, init_spec, name, child)
        except BaseException:
            await child.end()
            raise
        try:
            stage = await init_process.prepare(None)
            namespace_pid = await init_process.begin()
        except BaseException:
            await init_process.close()
            raise
        if not namespace_pid:
            os.close(stage)
            await init_process.close()
            raise SandboxUnavailable("the persistent sandbox ended immediately")
        instance = Instance(init_process, namespace_pid, stage, self._cache, spec)
        self._instances[instance_key] = instance
        if spec.lifetime_seconds is not None:
            instance.stop_after(
                spec.lifetime_seconds, lambda: self._retire(instance_key, wait_for_command=True)
            )
        return instance

    async def _run_in_instance(
        self, tools: IsolationTools, spec: CommandSpec, blobs: BlobReader, instance: Instance
    ) -> tuple[MaterializedFiles, CommandOutcome]:
        materialized = await shield_until_done(self._update_files(spec, blobs, instance))
        command = InstanceCommand(
            tools, spec, self._take_child(), instance.init_process, instance.namespace_pid
        )
        try:
            await command.prepare(None)
            return materialized, await command.finish()
        finally:
            await shield_until_done(command.close())
            self._spare_child = self._spare_child or ChildProcess()

    async def _update_files(
        self, spec: CommandSpec, blobs: BlobReader, instance: Instance
    ) -> MaterializedFiles:
        assert self._cache is not None
        if spec.files is None:
            return MaterializedFiles({}, ())
        targets = await fetch_missing(self._cache, contents_only(spec.files), blobs)
        supported = supported_files(spec.files, spec.directories, targets)
        materialized = replace(supported, root=spec.root)
        return await asyncio.to_thread(
            instance.files.update, materialized, targets, read_only=spec.read_only
        )

    def _schedule_idle_stop(self, spec: CommandSpec, instance: Instance) -> None:
        instance_key = spec.instance_key or ""
        if self._instances.get(instance_key) is instance:
            instance.stop_when_idle(spec.idle_seconds, lambda: self._retire(instance_key))

    async def start(self, spec: CommandSpec, blobs: BlobReader) -> None:
        if spec.instance_key is None:
            raise SandboxUnavailable("background jobs require a persistent workspace sandbox")
        tools = await self._require_persistent(spec)
        try:
            await self._start_in_instance(tools, spec, blobs)
        except InstanceEnded:
            await self._start_in_instance(tools, spec, blobs)

    async def _start_in_instance(
        self, tools: IsolationTools, spec: CommandSpec, blobs: BlobReader
    ) -> None:
        async with self._acquire_instance(tools, spec) as instance:
            if len(instance.jobs) >= MAX_JOBS:
                raise SandboxUnavailable(f"{MAX_JOBS} jobs are already running in this sandbox")
            await shield_until_done(self._start_job(tools, spec, blobs, instance))

    async def _start_job(
        self, tools: IsolationTools, spec: CommandSpec, blobs: BlobReader, instance: Instance
    ) -> None:
        assert spec.instance_key is not None and self._lease is not None
        await self._update_files(spec, blobs, instance)
        job = InstanceJob(
            tools, spec, self._take_child(), instance.init_process, instance.namespace_pid
        )
        self._job_state.write(spec.instance_key, spec.id, JobSnapshot(self._lease.name))
        try:
            await job.prepare(None)
            await job.begin()
        except BaseException:
            await job.close()
            raise
        instance.jobs[spec.id] = job
        task = asyncio.create_task(self._follow_job(spec.instance_key, spec, instance, job))
        self._followers[spec.instance_key, spec.id] = JobFollower(instance, job, task)

    async def _follow_job(
        self, instance_key: str, spec: CommandSpec, instance: Instance, job: InstanceJob
    ) -> None:
        code = await job.end()
        await job.close()
        if (instance_key, spec.id) in self._stopped_jobs:
            code = EXIT_STOPPED
        elif instance.was_stopped or not instance.init_process.is_alive:
            code = EXIT_LOST
        log = bytes(job.log)
        await asyncio.to_thread(
            self._job_state.write, instance_key, spec.id, JobSnapshot("", code, log)
        )
        del instance.jobs[spec.id]
        notes = await _write_back(instance, spec.write_back, BackgroundJob(spec.id, code, log))
        if notes:
            separator = b"\n" if log and not log.endswith(b"\n") else b""
            snapshot = JobSnapshot(
                "", code, log + separator + "\n".join(notes).encode(errors="replace")
            )
            await asyncio.to_thread(self._job_state.write, instance_key, spec.id, snapshot)
        self._stopped_jobs.discard((instance_key, spec.id))
        del self._followers[instance_key, spec.id]
        self._schedule_idle_stop(spec, instance)

    async def get_job(self, instance_key: str, id: str) -> BackgroundJob | None:
        following = self._followers.get((instance_key, id))
        if following is not None:
            if id in following.instance.jobs:
                return BackgroundJob(id, None, bytes(following.job.log))
            await asyncio.wait([following.task], timeout=JOB_RESULT_TIMEOUT_SECONDS)
        return await asyncio.to_thread(self._job_state.read, instance_key, id)

    async def stop_job(self, instance_key: str, id: str) -> BackgroundJob | None:
        following = self._followers.get((instance_key, id))
        if following is not None and id in following.instance.jobs:
            self._stopped_jobs.add((instance_key, id))
            await shield_until_done(following.job.stop())
            await asyncio.wait([following.task], timeout=JOB_RESULT_TIMEOUT_SECONDS)
        return await self.get_job(instance_key, id)

    async def delete_job(self, instance_key: str, id: str) -> None:
        if (instance_key, id) not in self._followers:
            await asyncio.to_thread(self._job_state.delete_job, instance_key, id)

    async def release_instance(self, instance_key: str) -> None:
        if ending := self._retire(instance_key):
            await asyncio.shield(ending)
        await asyncio.to_thread(self._job_state.delete_instance, instance_key)

    def _retire(
        self, instance_key: str, *, wait_for_command: bool = False
    ) -> asyncio.Task[None] | None:
        """Remove the instance from the index and start ending it.

        With ``wait_for_command`` a running command may finish first.
        """
        instance = self._instances.pop(instance_key, None)
        if instance is None:
            return None
        instance.retire()
        task = asyncio.create_task(self._end_instance(instance_key, instance, wait_for_command))
        self._end_tasks.add(task)
        task.add_done_callback(self._end_tasks.discard)
        return task

    async def _end_instance(
        self, instance_key: str, instance: Instance, wait_for_command: bool
    ) -> None:
        """Stop the instance, write back its changes and release the claim."""
        if wait_for_command:
            async with instance.busy:
                await instance.stop()
        await instance.stop()
        jobs = [
            follower.task for follower in self._followers.values() if follower.instance is instance
        ]
        if jobs:
            await asyncio.wait(jobs)
        await _write_back(instance, instance.write_back, None)
        await instance.close()
        async with self._creation_lock:  # a successor being created shares the claim
            self._release_claim(instance_key)


async def _wait_for_all(tasks: set[asyncio.Task[None]]) -> None:
    while tasks:
        await asyncio.wait(tuple(tasks))


async def _write_back(
    instance: Instance, write_back: WriteBack | None, job: BackgroundJob | None
) -> Sequence[str]:
    if write_back is None:
        return ()
    try:
        async with asyncio.timeout(WRITE_BACK_TIMEOUT_SECONDS):
            return await write_back(instance.inspect, job)
    except Exception:  # a failure must not stop or keep the instance
        return (WRITE_BACK_FAILED,)
