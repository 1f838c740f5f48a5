"""Integrity check and garbage collection of a whole store."""

from __future__ import annotations

import asyncio
import hashlib
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from carrel.actions.accounts import vault_check
from carrel.actions.policy.tenant_rules import secret_context
from carrel.actions.progress import ProgressCallback, ProgressCounter, no_progress
from carrel.actions.records import iter_records
from carrel.core.accounts import SecretRecord
from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.maintenance.findings import FindingList
from carrel.core.maintenance.store_check import PHASES, TREE_TABLES, StoreCheck
from carrel.core.maintenance.tables import KEY_LENGTHS
from carrel.core.store.record import RecordType, decode_body
from carrel.ports import CorruptContent, LargeBlobStore, Ports, StoreMaintenance, TableRows

Row = Sequence[Any]
BlobGetter = Callable[[Digest], Awaitable[bytes | None]]

_BATCH_SIZE: Final = 4
"""Large blobs in memory at once."""


async def check_store(
    maintenance: StoreMaintenance,
    objects: LargeBlobStore | None,
    *,
    now: TimestampMs,
    grace: int,
    on_progress: ProgressCallback = no_progress,
) -> FindingList:
    """Check the consistency of the store, concurrently with writers.

    Content younger than `grace` milliseconds may be unreferenced still and is not reported.
    """
    async with maintenance.snapshot(skip_damaged=True) as snapshot:
        check = await check_rows(
            snapshot, now, grace, ProgressCounter(on_progress, "examining rows")
        )
        for subject, text in await snapshot.find_damage():
            check.findings.error(subject, text)
    findings = check.finish()
    get_blob = objects.get if objects else _no_blob
    await check_external_blobs(
        findings, check.external_blobs, get_blob, ProgressCounter(on_progress, "examining objects")
    )
    if objects is not None:
        await _check_unreferenced(findings, objects, check.external_blobs, now - grace)
    return findings


async def check_rows(
    snapshot: TableRows, now: TimestampMs, grace: int, progress: ProgressCounter
) -> StoreCheck:
    """Check every row; return the finished check."""
    check = StoreCheck(now, grace)
    progress.set_total(sum([await snapshot.count(table) for phase in PHASES for table in phase]))
    for tables in PHASES:
        if tables == TREE_TABLES:
            async for merged_rows in merge_by_key(snapshot, TREE_TABLES):
                await asyncio.to_thread(check.check_trees, merged_rows)
                progress.add(len(merged_rows))
        else:
            async for rows in snapshot.rows(tables[0]):
                await asyncio.to_thread(check.check_rows, tables[0], rows)
                progress.add(len(rows))
    return check


async def check_external_blobs(
    findings: FindingList,
    external: Mapping[bytes, int],
    get_blob: BlobGetter,
    progress: ProgressCounter,
) -> None:
    """Check that all external blobs exist and match their digests."""
    digests = sorted(external)
    progress.set_total(len(digests))
    for start in range(0, len(digests), _BATCH_SIZE):
        batch = digests[start : start + _BATCH_SIZE]
        problems = await asyncio.gather(
            *(_find_problem(digest, external[digest], get_blob) for digest in batch)
        )
        for digest, problem in zip(batch, problems, strict=True):
            if problem:
                findings.error(f"object {_digest_name(digest)}", problem)
        progress.add(len(batch))


async def check_secrets(ports: Ports, findings: FindingList) -> None:
    """Check that the vault key is the store's and opens every secret."""
    if await vault_check.load_fingerprint(ports) not in {None, ports.vault.fingerprint()}:
        findings.error("vault", "its key does not match this store")
        return
    async for record in iter_records(ports, "", RecordType.SECRET):
        try:
            sealed = decode_body(record, SecretRecord).sealed
            ports.vault.open(sealed, secret_context(record.tenant, record.id))
        except CorruptContent:
            text = "the vault key does not open it"
            findings.error(f"secret {record.id} of {record.tenant}", text)


async def collect(
    maintenance: StoreMaintenance,
    objects: LargeBlobStore | None,
    *,
    now: TimestampMs,
    grace: int,
    event_retention_ms: int,
) -> Mapping[str, int]:
    """Delete unreferenced and expired data; return counts by kind.

    Large blobs are deleted in two steps: old unreferenced blobs are discarded, and blobs discarded
    more than `grace` milliseconds ago are deleted, or restored if they are referenced again. So a
    writer that found its blob present just before the discard keeps it if it commits within
    `grace`; the same holds for readers of an older view, such as a backup. The clocks of all
    processes must agree far better than `grace`.
    """
    counts = dict(await maintenance.collect(now, grace, event_retention_ms))
    if objects is not None:
        counts |= await _collect_objects(maintenance, objects, now - grace)
    return counts


async def _collect_objects(
    maintenance: StoreMaintenance, objects: LargeBlobStore, before: TimestampMs
) -> Mapping[str, int]:
    """Reads references last, so that every blob committed by then is among them."""
    trashed = [entry async for entry in objects.list_trash()]
    old = [digest async for digest, _, timestamp in objects.list_blobs() if timestamp < before]
    referenced = await maintenance.referenced_digests()
    restored = [digest for digest, _ in trashed if digest in referenced]
    expired = [digest for digest, timestamp in trashed if timestamp < before]
    discarded = [digest for digest in old if digest not in referenced]
    await objects.restore(restored)
    await objects.delete(expired)
    await objects.discard(discarded)
    deleted = sum(digest not in referenced for digest in expired)
    return {"discarded": len(discarded), "restored": len(restored), "objects": deleted}


async def merge_by_key(
    snapshot: TableRows, tables: Sequence[str]
) -> AsyncIterator[Sequence[tuple[str, Row]]]:
    """Merge the rows of several tables by key; a key comes before its extensions."""
    streams = {table: snapshot.rows(table) for table in tables}
    pending: dict[str, Sequence[Row]] = {table: () for table in tables}
    while True:
        for table in [table for table in streams if not pending[table]]:
            rows = await anext(streams[table], None)
            pending[table] = rows or ()
            if not rows:
                del streams[table]
        if not any(pending.values()):
            return
        # Rows after the smallest last key must wait: unread rows may sort before them.
        bound = min((_key(table, pending[table][-1]) for table in streams), default=None)
        ready: list[tuple[str, Row]] = []
        for table, rows in pending.items():
            end = len(rows) if bound is None else _end_index(table, rows, bound)
            ready += [(table, row) for row in rows[:end]]
            pending[table] = rows[end:]
        yield sorted(ready, key=lambda tagged: _key(*tagged))


def _end_index(table: str, rows: Sequence[Row], bound: tuple[Any, ...]) -> int:
    return bisect_right(rows, bound, key=lambda row: _key(table, row))


def _key(table: str, row: Row) -> tuple[Any, ...]:
    return tuple(row[: KEY_LENGTHS[table]])


async def _find_problem(digest: bytes, size: int, get_blob: BlobGetter) -> str | None:
    content = await get_blob(Digest(_digest_name(digest)))
    if content is None:
        return "its content is missing"
    actual = await asyncio.to_thread(hashlib.sha256, content)
    return (
        None
        if (actual.digest(), len(content)) == (digest, size)
        else "its content does not match its digest"
    )


async def _check_unreferenced(
    findings: FindingList,
    objects: LargeBlobStore,
    external: Mapping[bytes, int],
    before: TimestampMs,
) -> None:
    count = total_bytes = 0
    async for digest, size, timestamp in objects.list_blobs():
        if timestamp < before and bytes.fromhex(digest.removeprefix("sha256:")) not in external:
            count, total_bytes = count + 1, total_bytes + size
    if count:
        text = f"{count} are unreferenced, {total_bytes} bytes in total; carrel gc deletes them"
        findings.warn("objects", text)


async def _no_blob(_: Digest) -> None:
    return None


def _digest_name(digest: bytes) -> str:
    return f"sha256:{digest.hex()}"
