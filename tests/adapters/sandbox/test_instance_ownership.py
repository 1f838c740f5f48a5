"""Ownership of persistent instances: one process on a machine, and loss when it is killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as File

import pytest
from tests.support.escape_harness import leftovers
from tests.support.server_process import carrel, serving

from carrel.adapters.sandbox.local import LocalSandbox
from carrel.adapters.sandbox.local.isolation import ProbeContents, SandboxSettings
from carrel.adapters.sandbox.local.persistent import INSTANCE_IN_USE, NEEDS_SINGLE_WORKER
from carrel.ports.sandbox import BackgroundJob, CommandSpec, ResourceLimits, SandboxUnavailable

pytestmark = pytest.mark.anyio
SANDBOXES = "/accounts/me/sandboxes"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def output_of(sandbox: LocalSandbox, command: str) -> bytes:
    async with sandbox.run(
        CommandSpec("call", command, {}, instance_key="one"), ProbeContents()
    ) as ran:
        return ran.stdout


async def test_two_processes_never_keep_an_instance_of_the_same_name(tmp_path: File) -> None:
    first, second = LocalSandbox(tmp_path), LocalSandbox(tmp_path)
    try:
        assert await output_of(first, "echo here > ~/a; cat ~/a") == b"here\n"
        for _ in range(2):
            with pytest.raises(SandboxUnavailable, match=INSTANCE_IN_USE):
                await output_of(second, "true")
        assert await output_of(first, "cat ~/a") == b"here\n"
        await first.release_instance("one")
        assert await output_of(second, "ls ~; echo mine > ~/a; cat ~/a") == b"mine\n"
        with pytest.raises(SandboxUnavailable, match=INSTANCE_IN_USE):
            await output_of(first, "true")
    finally:
        await first.close()
        await second.close()


async def test_replacement_of_an_instance_is_owned_by_one_process_too(
    tmp_path: File,
) -> None:
    first, second = LocalSandbox(tmp_path), LocalSandbox(tmp_path)
    try:
        assert await output_of(first, "touch ~/a; ls ~; kill -9 -1") == b"a\n"
        assert await output_of(first, "ls ~; touch ~/b") == b"", "it is a new one"
        for _ in range(3):
            with pytest.raises(SandboxUnavailable, match=INSTANCE_IN_USE):
                await output_of(second, "true")
        assert await output_of(first, "ls ~") == b"b\n"
    finally:
        await first.close()
        await second.close()


async def test_command_during_the_end_of_an_instance_gets_a_new_one(tmp_path: File) -> None:
    sandbox = LocalSandbox(tmp_path)
    try:
        for n in range(10):
            assert await output_of(sandbox, "echo one; kill -9 -1") == b"one\n"
            if n % 2:
                job = CommandSpec(f"job{n}", "true", {}, instance_key="one")
                await sandbox.start(job, ProbeContents())
    finally:
        await sandbox.close()


async def test_instance_that_failed_to_start_is_available_to_other_processes(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = LocalSandbox(tmp_path), LocalSandbox(tmp_path)

    async def broken(*arguments: object) -> None:
        raise SandboxUnavailable("it ended at once")

    try:
        monkeypatch.setattr(first, "_create_instance", broken)
        with pytest.raises(SandboxUnavailable, match="ended at once"):
            await output_of(first, "true")
        assert await output_of(second, "echo mine") == b"mine\n"
    finally:
        await first.close()
        await second.close()


async def test_server_with_several_workers_keeps_no_instance(tmp_path: File) -> None:
    sandbox = LocalSandbox(tmp_path, SandboxSettings(is_single_process=False))
    try:
        await sandbox.ready()
        assert sandbox.unsupported_reason(ResourceLimits()) is None
        assert sandbox.unsupported_reason(ResourceLimits(), persistent=True) == NEEDS_SINGLE_WORKER
        with pytest.raises(SandboxUnavailable, match="need a server with one worker"):
            await output_of(sandbox, "true")
    finally:
        await sandbox.close()


async def test_several_workers_refuse_the_setting_by_name(tmp_path: File) -> None:
    with serving(tmp_path, workers=2) as live:
        async with live.http() as ada, asyncio.timeout(60):
            while (await ada.get("/readyz")).json()["sandbox"]["tier"] == "untested":
                pass
            record = {"name": "box", "config": {"persistent": True}}
            responses = {(await ada.post(SANDBOXES, json=record)).status_code for _ in range(20)}
            assert 400 in responses, (
                "at the latest when a command is to run, every worker refuses it"
            )
            refused = await ada.post(SANDBOXES, json=record)
            assert refused.status_code == 201 or NEEDS_SINGLE_WORKER in refused.text
    assert carrel(tmp_path, "doctor").returncode == 0


KEEPER_PROGRAM = """
import asyncio, sys
from pathlib import Path as File
from carrel.adapters.sandbox.local import LocalSandbox
from carrel.adapters.sandbox.local.isolation import ProbeContents
from carrel.ports.sandbox import CommandSpec

async def main():
    sandbox = LocalSandbox(File(sys.argv[1]))
    spec = CommandSpec("job", "echo begun; sleep 10931", {}, instance_key="one")
    await sandbox.start(spec, ProbeContents())
    print("started", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


@contextmanager
def process_with_a_job(directory: File) -> Iterator[None]:
    """A process that keeps an instance with a job in it, until it is killed."""
    line = [sys.executable, "-c", KEEPER_PROGRAM, str(directory)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout and server.stdout.readline() == "started\n"
            yield
        finally:
            server.kill()


def instance_directories(directory: File) -> list[File]:
    return list(directory.glob("keepers/*"))


async def test_job_of_a_killed_server_is_reported_as_lost_and_nothing_remains(
    tmp_path: File,
) -> None:
    beside = LocalSandbox(tmp_path)
    with process_with_a_job(tmp_path):
        assert await beside.get_job("one", "job") == BackgroundJob("job", None, b"")
    lost = BackgroundJob("job", 137, b"[lost: the server stopped before the job ended]")
    assert await beside.get_job("one", "job") == lost
    assert await output_of(beside, "echo anew") == b"anew\n"
    assert await beside.get_job("one", "job") == lost
    await beside.delete_job("one", "job")
    assert await beside.get_job("one", "job") is None
    await beside.close()
    assert leftovers(tmp_path, "sleep 10931") == []
    assert instance_directories(tmp_path) == []
