"""Snapshots of sandboxes in a workspace, through the SDK's own RemoteSnapshot."""

from __future__ import annotations

import asyncio
import io

import pytest
from agent_fixture import TOKEN, URL
from agents.sandbox import RemoteSnapshotSpec, resolve_snapshot
from agents.sandbox.errors import SnapshotRestoreError
from agents.sandbox.session.dependencies import Dependencies

from carrel_client import Client
from carrel_client.openai_agents import CarrelSnapshots

ID = "session/7"


def test_snapshot_is_persisted_and_restored() -> None:
    with Client(URL, TOKEN) as client:
        files = client.workspace(client.workspaces.create("snapshots").id)
        bound = Dependencies.with_values({"carrel": CarrelSnapshots(files)})
        remote = resolve_snapshot(RemoteSnapshotSpec(client_dependency_key="carrel"), ID)

        async def persist(content: bytes) -> None:
            await remote.persist(io.BytesIO(content), dependencies=bound)

        async def restore() -> bytes:
            return bytes((await remote.restore(dependencies=bound)).read())

        assert not asyncio.run(remote.restorable(dependencies=bound))
        with pytest.raises(SnapshotRestoreError):
            asyncio.run(restore())
        for content in (b"first", b"\x00second" * 300_000):
            asyncio.run(persist(content))
            assert asyncio.run(remote.restorable(dependencies=bound))
            assert asyncio.run(restore()) == content
        [stored] = files.list("snapshots/")
        assert [version.version for version in files.history(stored.path)] == [2, 1]
        assert files.read_bytes(stored.path, version=1) == b"first"
