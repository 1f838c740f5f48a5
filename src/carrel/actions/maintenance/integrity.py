"""Looking after a whole store: examining it, and collecting what nothing refers to."""

from __future__ import annotations

import asyncio
import hashlib
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from carrel.actions.accounts import vault_check
from carrel.actions.policy.tenant_rules import secret_context
from carrel.actions.progress import ProgressCounter, Watch, no_progress
from carrel.actions.records import iter_records
from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.maintenance.findings import FindingList
from carrel.core.maintenance.store_check import PHASES, TREES, StoreCheck
from carrel.core.maintenance.tables import KEYS
from carrel.core.store.record import RecordType
from carrel.ports import CorruptContent, LargeBlobStore, Ports, StoreMaintenance, StoreSnapshot

Row = Sequence[Any]
Get = Callable[[Digest], Awaitable[bytes | None]]

_TOGETHER: Final = 4
"""Large bytes that are held in memory at once."""


async def examine(
    upkeep: StoreMaintenance,
    objects: LargeBlobStore | None,
    *,
    now: TimestampMs,
    grace: int,
    watch: Watch = no_progress,
) -> FindingList:
    """Say whether everything in the store agrees with everything else, while others go on writing.

    What is younger than ``grace`` milliseconds may be on its way, and is nothing to wonder about.
    """
    async with upkeep.snapshot() as frozen:
        examination = await check_rows(frozen, now, grace, ProgressCounter(watch, "examining rows"))
    findings = examination.finish()
    get = objects.get if objects else _nowhere
    await check_external_blobs(
        findings, examination.outside, get, ProgressCounter(watch, "examining objects")
    )
    if objects is not None:
        await _look_for_strays(findings, objects, examination.outside, now - grace)
    return findings


async def check_rows(
    frozen: StoreSnapshot, now: TimestampMs, grace: int, tally: ProgressCounter
) -> StoreCheck:
    """An examination that has seen every row."""
    examination = StoreCheck(now, grace)
    tally.expect(sum([await frozen.count(table) for phase in PHASES for table in phase]))
    for tables in PHASES:
        if tables == TREES:
            async for woven in merge_by_key(frozen, TREES):
                await asyncio.to_thread(examination.look_at_trees, woven)
                tally.add(len(woven))
        else:
            async for rows in frozen.rows(tables[0]):
                await asyncio.to_thread(examination.look, tables[0], rows)
                tally.add(len(rows))
    return examination


async def check_external_blobs(
    findings: FindingList, outside: Mapping[bytes, int], get: Get, tally: ProgressCounter
) -> None:
    """Check that all bytes that are kept outside are there, and are what their digest says."""
    wanted = sorted(outside)
    tally.expect(len(wanted))
    for start in range(0, len(wanted), _TOGETHER):
        some = wanted[start : start + _TOGETHER]
        problems = await asyncio.gather(
            *(_problem(digest, outside[digest], get) for digest in some)
        )
        for digest, problem in zip(some, problems, strict=True):
            if problem:
                findings.error(f"object {_name(digest)}", problem)
        tally.add(len(some))


async def check_secrets(ports: Ports, findings: FindingList) -> None:
    """Check that the vault's key is the store's, and opens every secret."""
    if await vault_check.known(ports) not in {None, ports.vault.fingerprint()}:
        findings.error("vault", "its key is not the one that this store was sealed with")
        return
    async for record in iter_records(ports, "", RecordType.SECRET):
        try:
            ports.vault.open(
                str(record.body.get("sealed")), secret_context(record.tenant, record.id)
            )
        except CorruptContent:
            text = "the key of the vault does not open it"
            findings.error(f"secret {record.id} of {record.tenant}", text)


async def collect(
    upkeep: StoreMaintenance,
    objects: LargeBlobStore | None,
    *,
    now: TimestampMs,
    grace: int,
    events_kept: int,
) -> Mapping[str, int]:
    """Remove what nothing refers to and what has run out, and say how much of what.

    Large bytes go in two steps: what is old and unreferenced is discarded, and what was discarded
    longer than ``grace`` milliseconds ago is deleted, unless something refers to it again: then it
    comes back. A writer that found its bytes present just before they were discarded has them all
    the same, provided that it commits within ``grace`` of putting them; and so does whoever reads
    an older view, such as a backup. The clocks of all who take part must agree far better than
    that.
    """
    counts = dict(await upkeep.collect(now, grace, events_kept))
    if objects is not None:
        counts |= await _collect_objects(upkeep, objects, now - grace)
    return counts


async def _collect_objects(
    upkeep: StoreMaintenance, objects: LargeBlobStore, before: TimestampMs
) -> Mapping[str, int]:
    """What is referred to is asked last: all that was put by then, and committed, is among it."""
    trashed = [found async for found in objects.trash()]
    old = [digest async for digest, _, at in objects.each() if at < before]
    kept = await upkeep.referenced_digests()
    back = [digest for digest, _ in trashed if digest in kept]
    gone = [digest for digest, at in trashed if at < before]
    discarded = [digest for digest in old if digest not in kept]
    await objects.restore(back)
    await objects.delete(gone)
    await objects.discard(discarded)
    deleted = sum(digest not in kept for digest in gone)
    return {"discarded": len(discarded), "restored": len(back), "objects": deleted}


async def merge_by_key(
    frozen: StoreSnapshot, tables: Sequence[str]
) -> AsyncIterator[Sequence[tuple[str, Row]]]:
    """The rows of several tables in one order of keys; a key comes before those it begins."""
    streams = {table: frozen.rows(table) for table in tables}
    waiting: dict[str, Sequence[Row]] = {table: () for table in tables}
    while True:
        for table in [table for table in streams if not waiting[table]]:
            rows = await anext(streams[table], None)
            waiting[table] = rows or ()
            if not rows:
                del streams[table]
        if not any(waiting.values()):
            return
        # Beyond the least of the last keys at hand, what is still to come may come first.
        bound = min((_key(table, waiting[table][-1]) for table in streams), default=None)
        ready: list[tuple[str, Row]] = []
        for table, rows in waiting.items():
            end = len(rows) if bound is None else _upto(table, rows, bound)
            ready += [(table, row) for row in rows[:end]]
            waiting[table] = rows[end:]
        yield sorted(ready, key=lambda tagged: _key(*tagged))


def _upto(table: str, rows: Sequence[Row], bound: tuple[Any, ...]) -> int:
    return bisect_right(rows, bound, key=lambda row: _key(table, row))


def _key(table: str, row: Row) -> tuple[Any, ...]:
    return tuple(row[: KEYS[table]])


async def _problem(digest: bytes, size: int, get: Get) -> str | None:
    content = await get(Digest(_name(digest)))
    if content is None:
        return "its bytes are gone"
    found = await asyncio.to_thread(hashlib.sha256, content)
    return None if (found.digest(), len(content)) == (digest, size) else "its bytes are others"


async def _look_for_strays(
    findings: FindingList,
    objects: LargeBlobStore,
    outside: Mapping[bytes, int],
    before: TimestampMs,
) -> None:
    count = weight = 0
    async for digest, size, at in objects.each():
        if at < before and bytes.fromhex(digest.removeprefix("sha256:")) not in outside:
            count, weight = count + 1, weight + size
    if count:
        text = f"nothing refers to {count} of them, of {weight} bytes; carrel gc takes them"
        findings.warn("objects", text)


async def _nowhere(_: Digest) -> None:
    return None


def _name(digest: bytes) -> str:
    return f"sha256:{digest.hex()}"
