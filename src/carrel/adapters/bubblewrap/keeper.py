"""The local provider with what it keeps: instances by their reservation, and jobs in them."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from msgspec.structs import replace

from carrel.adapters.bubblewrap.cache import Laid, fetched, sensible
from carrel.adapters.bubblewrap.child import Child
from carrel.adapters.bubblewrap.instances import MOST_JOBS, Instance
from carrel.adapters.bubblewrap.jobs import STOPPED, Ledger, Told
from carrel.adapters.bubblewrap.local import Left, LocalOnce, to_the_end
from carrel.adapters.bubblewrap.running import Means
from carrel.adapters.bubblewrap.visiting import Resident, Visit, Work
from carrel.core.names import Digest, Path
from carrel.ports.sandboxes import Bounds, Fetch, Job, Order, Ran, Refused

FOREVER = 10**9


class LocalSandbox(LocalOnce):
    """Instances live in the process that made them, and end with it."""

    @property
    def _instances(self) -> dict[str, Instance]:
        return self._kept

    def refuses(self, bounds: Bounds, *, persistent: bool = False) -> str | None:
        reason = super().refuses(bounds)
        if reason or not persistent or self._means is None:
            return reason
        if self._means.landlock:
            return "no sandbox can be kept between calls behind Landlock"
        if self._means.cgroups is None:
            return "no sandbox can be kept between calls where no control group bounds its memory"
        return None

    async def close(self) -> None:
        for reservation in tuple(self._instances):
            await self._let_go(reservation)
        await super().close()

    @asynccontextmanager
    async def run(self, order: Order, fetch: Fetch) -> AsyncIterator[Ran]:
        if order.reservation is None:
            async with super().run(order, fetch) as ran:
                yield ran
            return
        means = await self._may(order)
        instance = await self._instance(means, order)
        try:
            async with instance.busy:
                yield await self._visited(means, order, fetch, instance)
        finally:
            self._rest(order.reservation, order, instance)

    async def _may(self, order: Order) -> Means:
        means = await self.ready()
        if reason := self.unfit(order, persistent=True):
            raise Refused(reason)
        return means

    async def _instance(self, means: Means, order: Order) -> Instance:
        """The one that is there, or a new one. Raises Refused."""
        assert order.reservation is not None
        async with self._making:
            found = self._instances.get(order.reservation)
            if found is not None and found.resident.is_alive:
                found.wake()
                return found
            if found is not None:
                await self._let_go(order.reservation)
            return await to_the_end(self._made(means, order, order.reservation))

    async def _made(self, means: Means, order: Order, reservation: str) -> Instance:
        assert self._keep is not None and self._cache is not None
        asleep = replace(
            order,
            command="exec sleep infinity",
            env={},
            bounds=replace(order.bounds, seconds=FOREVER),
        )
        name = f"{self._keep.name}-{next(self._numbers)}"
        child = Child()
        try:
            resident = Resident(means, asleep, name, child)
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
            raise Refused("the sandbox could not be kept: it ended at once")
        instance = self._instances[reservation] = Instance(resident, door, stage, self._cache)
        return instance

    async def _visited(self, means: Means, order: Order, fetch: Fetch, instance: Instance) -> Left:
        laid, marks = await to_the_end(self._brought(order, fetch, instance))
        visit = Visit(means, order, self._child(), instance.resident, instance.door)
        try:
            await visit.prepare(None)
            outcome = await visit.finish()
        finally:
            await to_the_end(visit.close())
            self._spare = self._spare or Child()
        told = None
        if order.files is not None:
            told = await to_the_end(asyncio.to_thread(instance.compare, laid, marks))
        return Left(outcome, told, instance.root, laid.notes)

    async def _brought(
        self, order: Order, fetch: Fetch, instance: Instance
    ) -> tuple[Laid, Mapping[Path, tuple[int, int, int]]]:
        assert self._cache is not None
        if order.files is None:
            return Laid({}, ()), {}
        targets: Mapping[Digest, bytes] = await fetched(self._cache, order.files, fetch)
        laid = sensible(order.files, targets)
        return laid, await asyncio.to_thread(instance.bring, laid, targets)

    def _rest(self, reservation: str, order: Order, instance: Instance) -> None:
        if self._instances.get(reservation) is instance:
            instance.rest(order.idle_seconds, lambda: self._let_go(reservation))

    async def start(self, order: Order, fetch: Fetch) -> None:
        if order.reservation is None:
            raise Refused("background jobs require a persistent workspace sandbox")
        means = await self._may(order)
        instance = await self._instance(means, order)
        async with instance.busy:
            if len(instance.jobs) >= MOST_JOBS:
                raise Refused(f"{MOST_JOBS} jobs are running in this sandbox already")
            await to_the_end(self._started(means, order, fetch, instance))

    async def _started(self, means: Means, order: Order, fetch: Fetch, instance: Instance) -> None:
        assert order.reservation is not None and self._keep is not None
        await self._brought(order, fetch, instance)
        work = Work(means, order, self._child(), instance.resident, instance.door)
        self._ledger.write(order.reservation, order.id, Told(self._keep.name))
        try:
            await work.prepare(None)
            await work.begin()
        except BaseException:
            await work.close()
            raise
        instance.jobs[order.id] = work
        task = asyncio.create_task(self._followed(order, instance, work))
        self._following[order.reservation, order.id] = task

    async def _followed(self, order: Order, instance: Instance, work: Work) -> None:
        assert order.reservation is not None
        code = await work.end()
        await work.close()
        instance.jobs.pop(order.id, None)
        stopped = (order.reservation, order.id) in self._stopped
        lost = not instance.resident.is_alive
        told = Told("", STOPPED if stopped else 137 if lost else code, bytes(work.log))
        await asyncio.to_thread(self._ledger.write, order.reservation, order.id, told)
        self._following.pop((order.reservation, order.id), None)
        self._rest(order.reservation, order, instance)

    async def job(self, reservation: str, id: str) -> Job | None:
        instance = self._instances.get(reservation)
        if instance is not None and (work := instance.jobs.get(id)):
            return Job(id, None, bytes(work.log))
        if following := self._following.get((reservation, id)):
            await asyncio.shield(following)
        await self.ready()
        return await asyncio.to_thread(self._ledger.read, reservation, id)

    async def stop(self, reservation: str, id: str) -> Job | None:
        instance = self._instances.get(reservation)
        if instance is not None and (work := instance.jobs.get(id)):
            self._stopped.add((reservation, id))
            await to_the_end(work.halt())
            if following := self._following.get((reservation, id)):
                await asyncio.shield(following)
        return await self.job(reservation, id)

    async def release(self, reservation: str) -> None:
        await self._let_go(reservation)
        await self.ready()
        await asyncio.to_thread(self._ledger.forget, reservation)

    async def _let_go(self, reservation: str) -> None:
        instance = self._instances.pop(reservation, None)
        if instance is None:
            return
        await to_the_end(instance.close())
        for (kept, _), task in tuple(self._following.items()):
            if kept == reservation:
                with contextlib.suppress(Exception):
                    await task

    @property
    def _ledger(self) -> Ledger:
        return Ledger(self._directory / "jobs")
