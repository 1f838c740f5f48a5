"""Purging a text leaves it in no row, index, log, file, object or repository."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import pytest
from tests.support.services.s3 import Bucket
from tests.support.stores import advance_clock, ports_over
from tests.support.tenants import add_person, create_tenant

from carrel.actions import items
from carrel.actions.accounts import audit
from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.files import history as file_history
from carrel.actions.files.file_writer import WriteOptions
from carrel.actions.git import history
from carrel.actions.maintenance.integrity import check_store
from carrel.actions.maintenance.purge import PurgeRequest, PurgeStep, purge_text
from carrel.actions.memory import memories
from carrel.actions.memory.memories import NewMemory
from carrel.actions.overlay import stacks
from carrel.actions.runs import runs, snapshots
from carrel.actions.runs.run_request import RunRequest
from carrel.actions.sessions import sessions
from carrel.actions.sessions.new_entries import NewEntry
from carrel.actions.sessions.transcript_mirror import MirrorFollower
from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.adapters.filesystem.transcript_directory import DirectoryTranscriptMirror
from carrel.adapters.postgres import open_store as open_postgres
from carrel.adapters.s3 import S3BlobStore
from carrel.adapters.sqlite import open_store as open_sqlite
from carrel.core.access import Actor
from carrel.core.errors import Forbidden, ValidationError
from carrel.core.identifiers import Path
from carrel.core.maintenance.tables import TABLES
from carrel.core.redaction.text_purge import MARKER
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

SECRET = 'zanzibarquince"\u00e9'
WORD = "zanzibarquince"
SESSION = "5f0c8a52-2f5e-4d3c-9f10-000000000001"
CONFIG = {"transcriptsDir": "cook", "workspaceGit": {"enabled": True}}
NOTE, LARGE = Path("notes/a.md"), Path("notes/large.md")
INLINE_BYTES = 4096


class PurgedStore:
    """An open store with everything that lies beside it."""

    def __init__(self, ports: Ports, store: Any, objects: Any, directory: File) -> None:
        self.ports, self.store, self.objects, self.directory = ports, store, objects, directory

    async def find_text(self, text: str) -> list[str]:
        """Tables, objects and files that contain a text in any letter case."""
        places = [
            str(file.relative_to(self.directory))
            for file in sorted(self.directory.rglob("*"))
            if file.is_file() and text.encode() in file.read_bytes().lower()
        ]
        async with self.store.maintenance.snapshot() as snapshot:
            for table in TABLES:
                async for rows in snapshot.rows(table):
                    places += [table for row in rows if text in repr(row).lower()]
        async for digest, _, _ in self.objects.list_blobs():
            places += [digest] if text.encode() in (await self.objects.get(digest)).lower() else []
        async for digest, _ in self.objects.list_trash():
            places += [digest] if text.encode() in (await self.objects.get(digest)).lower() else []
        return sorted(set(places))

    async def find_problems(self) -> list[str]:
        advance_clock(self.ports, 1)
        findings = await check_store(
            self.store.maintenance, self.objects, now=self.ports.clock.now(), grace=0
        )
        return [f"{finding}" for finding in findings.items]


@asynccontextmanager
async def open_purged_store(request: Any, tmp_path: File) -> AsyncIterator[PurgedStore]:
    objects: Any
    opened: Any
    if request.param == "sqlite":
        objects = DirectoryBlobStore(tmp_path / "blobs")
        opened = open_sqlite(tmp_path / "carrel.db", objects=objects, inline=INLINE_BYTES)
    else:
        bucket: Bucket = request.getfixturevalue("s3_bucket")
        objects = S3BlobStore.open(
            bucket.name,
            "some/where",
            endpoint=bucket.endpoint,
            region=bucket.region,
            access_key=bucket.access_key,
            secret_key=bucket.secret_key,
        )
        opened = open_postgres(
            request.getfixturevalue("postgres_url"), objects=objects, inline=INLINE_BYTES
        )
    async with opened as store:
        ports = ports_over(store, directory=tmp_path)
        mirror = DirectoryTranscriptMirror(tmp_path / "transcripts")
        yield PurgedStore(replace(ports, transcript_files=mirror), store, objects, tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
async def purged(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[PurgedStore]:
    async with open_purged_store(request, tmp_path) as store:
        yield store


async def live(ports: Ports, owner: Actor) -> str:
    """Leave a text everywhere an agent can; return the id of a run."""
    await agents.create(ports, owner, NewAgent("cook", f"Cook {SECRET}", config=CONFIG))
    stack = await stacks.agent_stack(ports, owner, "cook")
    for text in (f"one {SECRET}", f"two {SECRET} {SECRET}", "three"):
        await files.put(ports, stack, NOTE, text.encode(), owner)
    await files.put(ports, stack, LARGE, (SECRET + " large " * 2000).encode(), owner)
    await files.put(ports, stack, Path(f"notes/{WORD}.md"), json.dumps(SECRET).encode(), owner)
    typed = Path("notes/typed")
    for content, type in ((b"1", f"text/x-{WORD}"), (b"2", "text/plain"), (b"3", f"text/x-{WORD}")):
        options = WriteOptions(type=type)
        await files.put(ports, stack, typed, content, owner, options)
    run = await runs.start(ports, owner, RunRequest(agent="cook", variables={"topic": SECRET}))
    await memories.remember(ports, owner, "cook", NewMemory(f"{SECRET} is a fact"))
    await memories.recall(ports, owner, "cook", f"{SECRET} fact")
    await items.put(ports, owner, "cook", "list", SECRET)
    await sessions.start(ports, owner, "cook", id=SESSION)
    entries = [NewEntry("user", f"{SECRET} and word{n}") for n in range(60)]
    await sessions.append(ports, owner, "cook", SESSION, entries)
    assert ports.transcript_files is not None
    await MirrorFollower(ports, ports.transcript_files).catch_up()
    await history.refresh(ports, owner, "cook")
    return run.id


async def purge_all(ports: Ports, owner: Actor, text: str, *, dry_run: bool = False) -> PurgeStep:
    step = await purge_text(ports, owner, PurgeRequest(text, dry_run))
    while step.cursor:
        step = await purge_text(ports, owner, PurgeRequest(text, dry_run, step.cursor))
    return step


async def test_a_purged_text_is_in_no_row_index_log_file_object_or_repository(
    purged: PurgedStore,
) -> None:
    ports, (_, owner) = purged.ports, await create_tenant(purged.ports)
    run = await live(ports, owner)
    before = await purged.find_text(WORD)
    assert len(before) >= 10
    expected = (await purge_all(ports, owner, SECRET, dry_run=True)).counts
    assert await purged.find_text(WORD) == before
    counts = (await purge_all(ports, owner, SECRET)).counts
    assert {kind: counts[kind] for kind in expected if kind != "audit"} == {
        kind: count for kind, count in expected.items() if kind != "audit"
    }
    await purge_all(ports, owner, WORD)
    assert await purged.find_text(WORD) == []
    assert await purged.find_problems() == []
    stack = await stacks.agent_stack(ports, owner, "cook")
    [third, second, first] = (await file_history.list_versions(ports, stack, NOTE)).items
    assert (await files.read_version(ports, stack, NOTE, first.number))[1] == (
        f"one {MARKER}".encode()
    )
    assert (await files.read_version(ports, stack, NOTE, second.number))[1] == (
        f"two {MARKER} {MARKER}".encode()
    )
    assert (await files.read_version(ports, stack, NOTE, third.number))[1] == b"three"
    frozen = await runs.get(ports, owner, run)
    assert (await snapshots.read_file(ports, frozen, LARGE))[1].startswith(MARKER.encode())
    assert len(await sessions.search(ports, owner, "cook", "purged", limit=100)) == 60
    assert (await history.refresh(ports, owner, "cook")).commits_added > 0
    assert await purged.find_text(WORD) == []
    assert await purged.find_problems() == []


async def test_the_audit_of_a_purge_names_the_person_and_counts(purged: PurgedStore) -> None:
    ports, (_, owner) = purged.ports, await create_tenant(purged.ports)
    await live(ports, owner)
    await purge_all(ports, owner, SECRET)
    entries = (await audit.list_audit_entries(ports, owner)).items
    assert entries[0].author == owner.name
    assert entries[0].reason.startswith("purge a text: ")
    assert "60 session_entry" in entries[0].reason
    assert "purge a text" in {entry.reason for entry in entries[1:]}


async def test_another_tenant_keeps_the_text(purged: PurgedStore) -> None:
    ports, (_, owner) = purged.ports, await create_tenant(purged.ports)
    _, other = await create_tenant(ports, "other")
    for actor in (owner, other):
        workspace = await stacks.default_stack(ports, actor)
        await files.put(ports, workspace, LARGE, (SECRET + " large " * 2000).encode(), actor)
    await purge_all(ports, owner, SECRET)
    others = await files.get_file(ports, await stacks.default_stack(ports, other), LARGE)
    assert (await files.read_content(ports, others)).startswith(SECRET.encode())
    own = await files.get_file(ports, await stacks.default_stack(ports, owner), LARGE)
    assert (await files.read_content(ports, own)).startswith(MARKER.encode())
    assert await purged.find_problems() == []


async def test_only_owners_purge_and_unsuitable_texts_are_refused(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    _, member = await add_person(ports, owner, "luis")
    with pytest.raises(Forbidden):
        await purge_text(ports, member, PurgeRequest(SECRET))
    for text in ("short", "agt_" + "0" * 24, "workspace", "maxVersions", "REDACTED", " " * 9):
        with pytest.raises(ValidationError):
            await purge_text(ports, owner, PurgeRequest(text))
    with pytest.raises(ValidationError):
        await purge_text(ports, owner, PurgeRequest(SECRET, cursor="nonsense"))
