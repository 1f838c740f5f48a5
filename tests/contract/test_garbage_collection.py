"""Garbage collection: only unreferenced data past its grace period is removed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.commits import (
    ACME,
    AGENT,
    commit,
    put_text,
    read_texts,
    start_run,
    version_numbers,
    write,
)
from tests.support.contract_stores import LARGE_BLOB_STORES, Ports
from tests.support.populated_store import (
    ANSWER,
    DAY,
    HOUR,
    LARGE,
    NOW,
    REQUESTS,
    SECOND,
    collect_garbage,
    populate,
    read_everything,
)

from carrel.core.identifiers import Path
from carrel.core.store.idempotency import Claimed, Completed
from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState, PostResult

pytestmark = pytest.mark.anyio
stores = LARGE_BLOB_STORES


async def test_an_external_blob_is_referenced_as_long_as_a_version_has_it(
    ports: Ports,
) -> None:
    [large] = await ports.blobs.put([LARGE.encode()])
    assert await ports.upkeep.referenced_digests() == frozenset()

    await put_text(ports, LARGE, at=NOW, max_versions=1)
    run = await start_run(ports, "run_1")
    for text in ("small", None):
        await put_text(ports, text, at=NOW, max_versions=1)
        await collect_garbage(ports, NOW + HOUR)
        assert await ports.upkeep.referenced_digests() == {large.digest}

    assert await ports.runs.update(replace(run, snapshot_kept=False), run)
    await ports.trees.commit([commit(await write(ports, f"{n}"), at=NOW) for n in range(101)])
    await collect_garbage(ports, NOW + HOUR, grace=2 * HOUR)
    assert await ports.upkeep.referenced_digests() == {large.digest}
    await collect_garbage(ports, NOW + HOUR)
    assert await ports.upkeep.referenced_digests() == frozenset()


@pytest.mark.parametrize("text", ["small", LARGE], ids=["small", "large"])
async def test_content_is_removed_with_the_last_version_that_has_it(
    ports: Ports, text: str
) -> None:
    async def contents() -> int:
        async with ports.upkeep.snapshot() as view:
            return await view.count("content")

    old = NOW - 3 * HOUR
    await put_text(ports, text, at=old, max_versions=1)
    run = await start_run(ports, "run_1")
    await put_text(ports, "new", at=old, max_versions=1)
    await collect_garbage(ports, NOW + 3 * HOUR)
    assert await read_texts(ports, run.snapshot[0]) == {"SOUL.md": text}

    assert await ports.runs.update(replace(run, snapshot_kept=False), run)
    # The default limit of 100 versions applies once no run holds the version.
    await ports.trees.commit([commit(await write(ports, f"{n}"), at=old) for n in range(110)])
    await collect_garbage(ports, NOW + 3 * HOUR)

    assert await contents() == 100
    assert 1 not in await version_numbers(ports)
    assert await read_texts(ports, AGENT) == {"SOUL.md": "109"}


async def test_data_that_is_still_readable_is_never_removed(ports: Ports) -> None:
    await populate(ports)
    expected = await read_everything(ports)

    await collect_garbage(ports, NOW + SECOND)

    assert await read_everything(ports) == expected


async def test_collecting_twice_removes_nothing_more(ports: Ports) -> None:
    await populate(ports)
    await collect_garbage(ports, NOW + 60 * DAY, grace=0, events_kept=0)

    assert await collect_garbage(ports, NOW + 60 * DAY, grace=0, events_kept=0) == 0


async def test_collection_does_not_disturb_concurrent_writers(ports: Ports) -> None:
    async def writer(n: int) -> None:
        for turn in range(10):
            await put_text(ports, f"{n} {turn}", path=Path(f"{n}.md"), at=NOW, max_versions=1)

    async def collector(writing: asyncio.Future[Any]) -> None:
        while not writing.done():
            await collect_garbage(ports, NOW + DAY)

    writing = asyncio.ensure_future(asyncio.gather(*[writer(n) for n in range(6)]))
    await asyncio.gather(writing, collector(writing))

    assert await read_texts(ports, AGENT) == {f"{n}.md": f"{n} 9" for n in range(6)}


async def test_old_events_are_removed_once_they_have_been_enqueued(
    ports: Ports,
) -> None:
    for n in range(4):
        await put_text(ports, f"{n}", at=NOW + n * DAY)
    events = await ports.events.read_after(None)

    await collect_garbage(ports, NOW + 9 * DAY, events_kept=DAY)
    assert await ports.events.read_after(None) == events

    await ports.deliveries.enqueue(None, events[2].cursor, [])
    await collect_garbage(ports, NOW + 2 * DAY, events_kept=DAY)
    assert await ports.events.read_after(None) == events[1:]
    assert await ports.events.read_after(events[0].cursor) == events[1:]
    await collect_garbage(ports, NOW + 9 * DAY, events_kept=DAY)
    assert await ports.events.read_after(None) == events[3:]


async def test_the_log_continues_after_all_its_events_are_removed(ports: Ports) -> None:
    await put_text(ports, "one", at=NOW)
    [first] = await ports.events.read_after(None)
    await ports.deliveries.enqueue(None, first.cursor, [])
    await collect_garbage(ports, NOW + 9 * DAY, events_kept=DAY)
    assert await ports.events.read_after(None) == ()

    await put_text(ports, "two", at=NOW + 9 * DAY)

    [second] = await ports.events.read_after(first.cursor)
    assert second.payload["version"] == 2
    assert second.id != first.id


async def test_idempotency_records_are_retained_for_a_day(ports: Ports) -> None:
    for n, key in enumerate(REQUESTS):
        await ports.idempotency.claim(key, "f", NOW + n * 2 * HOUR, 0)
        await ports.idempotency.complete(key, ANSWER)

    await collect_garbage(ports, NOW + DAY + HOUR)

    claims = [await ports.idempotency.claim(key, "f", NOW + DAY, 0) for key in REQUESTS]
    assert claims == [Claimed(), Completed(ANSWER), Completed(ANSWER)]


async def test_finished_deliveries_are_retained_for_a_month_and_pending_ones_until_they_finish(
    ports: Ports,
) -> None:
    posted = Delivery("dl_1", ACME, "wh_1", "t", b"body", DeliveryState.DELIVERED, NOW, NOW, 1)
    young = replace(posted, id="dl_2", created_at=NOW + 2 * DAY)
    waiting = replace(posted, id="dl_3", state=DeliveryState.PENDING)
    end = await ports.events.latest_cursor()
    await ports.deliveries.enqueue(None, end, [posted, young, waiting])
    await ports.deliveries.record_attempts(
        [(item, DeliveryAttempt(NOW, PostResult(200))) for item in (posted, young)]
    )

    await collect_garbage(ports, NOW + 29 * DAY)
    assert len(await ports.deliveries.list(ACME, "wh_1")) == 3
    await collect_garbage(ports, NOW + 31 * DAY)

    remaining = await ports.deliveries.list(ACME, "wh_1")
    assert [item.id for item, _ in remaining] == ["dl_3", "dl_2"]
