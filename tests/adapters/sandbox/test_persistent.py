"""Instances that the local provider keeps between commands, and their jobs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from itertools import count
from pathlib import Path as File

import pytest
from msgspec.structs import replace
from tests.support.escape_harness import leftovers
from tests.support.local_providers import RecordingBlobs
from tests.support.wait import wait_until

from carrel.adapters.sandbox.local import LocalSandbox
from carrel.adapters.sandbox.local.isolation import SandboxSettings
from carrel.core.identifiers import Path
from carrel.core.store.entry import FileAttributes
from carrel.ports.sandbox import (
    BackgroundJob,
    CommandSpec,
    InputFile,
    InspectInstance,
    PersistentSandbox,
    ResourceLimits,
    SandboxUnavailable,
)

pytestmark = pytest.mark.anyio
HERE = "one"
SLEEP = f"sleep {100_000 + os.getpid()}"
"""A command that lasts, distinct from those of other test processes."""
UIDS = count(1_000_000 + os.getpid() * 100)
"""One user per instance: process limits count all processes of a user, unreaped ones too."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Instance:
    def __init__(self, sandbox: LocalSandbox) -> None:
        self.sandbox, self.cupboard = sandbox, RecordingBlobs()
        self.files: dict[Path, InputFile] = {}
        self.number = 0

    def put(self, path: str, text: str) -> None:
        self.files[Path(path)] = self.cupboard.add(text)

    def order(self, command: str, **more: object) -> CommandSpec:
        self.number += 1
        spec = CommandSpec(f"call-{self.number}", command, dict(self.files), instance_key=HERE)
        return replace(spec, **more)

    async def run(self, command: str, **more: object) -> tuple[str, dict[str, bytes | None]]:
        order = self.order(command, **more)
        async with self.sandbox.run(order, self.cupboard) as ran:
            changes: dict[str, bytes | None] = {path.text: None for path in ran.deleted}
            changes |= {path.text: await ran.content(path) for path in ran.changed}
            return (ran.stdout + ran.stderr).decode(), changes

    async def start(self, command: str, **more: object) -> str:
        order = self.order(command, **more)
        await self.sandbox.start(order, self.cupboard)
        return order.id

    async def ended(self, id: str) -> None:
        """Wait until all its changes were written back."""
        if following := self.sandbox._followers.get((HERE, id)):
            await following.task

    async def holds(self, path: str, content: bytes) -> None:
        """Wait until a file inside has this content."""
        root = self.sandbox._instances[HERE].files.root

        def has_content() -> bool:
            place = File(f"/proc/self/fd/{root}/{path}")
            return place.exists() and place.read_bytes() == content

        await wait_until(has_content, f"{path} holds {content!r}")


class WriteBack:
    """Write-back that accepts and records every change."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self.received: list[tuple[int | None, dict[str, bytes | None]]] = []

    async def __call__(self, look: InspectInstance, job: BackgroundJob | None) -> Sequence[str]:
        async with look(dict(self._instance.files), {}, FileAttributes()) as ran:
            changes: dict[str, bytes | None] = {path.text: None for path in ran.deleted}
            changes |= {path.text: await ran.content(path) for path in ran.changed}
        self.received.append((job.exit_code if job else None, changes))
        return ("[home]",) if job and job.exit_code == 143 else ()


@pytest.fixture
async def instance(tmp_path: File) -> AsyncIterator[Instance]:
    sandbox = LocalSandbox(tmp_path / "sandboxes")
    yield Instance(sandbox)
    await sandbox.close()
    assert leftovers(tmp_path / "sandboxes", SLEEP) == []


@pytest.fixture
async def watched_instance(tmp_path: File) -> AsyncIterator[Instance]:
    """An instance without control groups, as on most servers that do not run as root."""
    sandbox = LocalSandbox(tmp_path / "sandboxes", SandboxSettings(uid=next(UIDS), cgroups=False))
    yield Instance(sandbox)
    await sandbox.close()
    assert leftovers(tmp_path / "sandboxes", SLEEP) == []


ALLOCATE_MEMORY = "exec python3 -c 'import time; hoard = b\"x\" * (150 << 20); time.sleep(60)'"


async def test_memory_limit_counts_all_processes_of_an_instance(watched_instance: Instance) -> None:
    bounds = ResourceLimits(memory_mb=400)
    await watched_instance.run(f"(setsid {SLEEP} &)", limits=bounds)
    jobs = [await watched_instance.start(ALLOCATE_MEMORY, limits=bounds) for _ in range(2)]
    assert (await watched_instance.run("echo both", limits=bounds))[0] == "both\n"
    order = watched_instance.order(ALLOCATE_MEMORY, limits=bounds)
    async with watched_instance.sandbox.run(order, watched_instance.cupboard) as ran:
        assert ran.exit_code == 137
        assert ran.notes == ("killed: memory limit exceeded (400 MB)",)
    for id in jobs:
        await watched_instance.ended(id)
        job = await watched_instance.sandbox.get_job(HERE, id)
        assert job is not None and job.exit_code == 137
    assert (await watched_instance.run("pgrep -c sleep", limits=bounds))[0] == "1\n"


FORK_MANY = """python3 -c '
import os, time
for number in range(30):
    try:
        if os.fork() == 0:
            time.sleep(60)
    except BlockingIOError:
        break
    if number == {count}:
        open("full", "w").close()
        time.sleep(60)
print(number, flush=True)
os.kill(0, 9)
'"""


async def test_process_limit_counts_all_processes_of_an_instance(
    watched_instance: Instance,
) -> None:
    bounds = ResourceLimits(processes=24)
    job = await watched_instance.start(FORK_MANY.format(count=14), limits=bounds)
    root = watched_instance.sandbox._instances[HERE].files.root

    async def has_forked_or_ended() -> bool:
        state = await watched_instance.sandbox.get_job(HERE, job)
        assert state is not None and state.exit_code is None, f"ended: {state}"
        return os.access(f"/proc/self/fd/{root}/full", os.F_OK)

    await wait_until(has_forked_or_ended, "the job has 15 children")
    output, _ = await watched_instance.run(FORK_MANY.format(count=99), limits=bounds)
    assert int(output.split(maxsplit=1)[0]) <= 10
    running = await watched_instance.sandbox.get_job(HERE, job)
    assert running is not None and running.exit_code is None


async def test_memory_that_no_process_shows_cannot_be_allocated(watched_instance: Instance) -> None:
    hidden = "import os; os.memfd_create('x')"
    output, _ = await watched_instance.run(f'python3 -c "{hidden}"')
    assert "Operation not permitted" in output
    assert "Operation not permitted" in (await watched_instance.run("unshare -Ur true"))[0]


async def test_home_tmp_and_processes_last_until_the_next_command(instance: Instance) -> None:
    assert isinstance(instance.sandbox, PersistentSandbox)
    await instance.run(f"echo kept > ~/a; echo too > /tmp/b; (setsid {SLEEP} &)")
    output, _ = await instance.run(f"cat ~/a /tmp/b; pgrep -f '{SLEEP}' >/dev/null && echo alive")
    assert output == "kept\ntoo\nalive\n"
    output, _ = await instance.run("cat ~/a", instance_key="another")
    assert "No such file" in output


async def test_files_follow_outside_changes_and_keep_inside_changes(instance: Instance) -> None:
    instance.put("a", "1")
    instance.put("b", "1")
    assert await instance.run("cat a b; printf 2 > b; printf n > new") == (
        "11",
        {"b": b"2", "new": b"n"},
    )
    instance.put("a", "others")
    instance.put("b", "2")
    del instance.files[Path("a")]
    instance.put("c", "3")
    instance.put("new", "n")
    assert await instance.run("ls; cat b c new; rm c") == ("b\nc\nnew\n23n", {"c": None})
    del instance.files[Path("c")]
    late = "(until [ -e ~/go ]; do sleep 0.01; done; printf late > later) >/dev/null 2>&1 &"
    assert await instance.run(late) == ("", {})
    async with asyncio.timeout(30):
        while (await instance.run("touch ~/go"))[1] != {"later": b"late"}:
            pass


async def test_isolation_and_limits_are_the_same_in_an_instance(instance: Instance) -> None:
    output, _ = await instance.run(
        "id -u; grep -E 'CapBnd|NoNew' /proc/self/status; ls /proc/self/fd"
    )
    assert "1000\n" in output
    assert "CapBnd:\t0000000000000000" in output
    assert "NoNewPrivs:\t1" in output
    assert output.endswith("0\n1\n2\n3\n")
    output, _ = await instance.run(
        "unshare -Ur id; cat /etc/shadow; (exec 3<>/dev/tcp/127.0.0.1/22)"
    )
    assert "uid=0" not in output
    order = instance.order("echo begun; sleep 1000", limits=ResourceLimits(seconds=2))
    async with instance.sandbox.run(order, instance.cupboard) as ran:
        assert (ran.timed_out, ran.exit_code, ran.stdout) == (True, None, b"begun\n")
    assert (await instance.run("pgrep -c sleep"))[0] == "1\n"


async def test_job_continues_without_a_limit_of_time_and_reports_its_end(
    instance: Instance,
) -> None:
    id = await instance.start(
        "ulimit -t; while [ ! -e go ]; do sleep 0.05; done; echo done; exit 3"
    )
    running = await instance.sandbox.get_job(HERE, id)
    assert running is not None and running.exit_code is None
    await instance.run("touch go")
    await wait_until(lambda: not instance.sandbox._instances[HERE].jobs, "no job runs")
    job = await instance.sandbox.get_job(HERE, id)
    assert job is not None
    assert (job.exit_code, job.log) == (3, b"unlimited\ndone\n")
    assert await instance.sandbox.get_job(HERE, "never") is None
    assert await instance.sandbox.get_job("elsewhere", id) is None


async def test_stopped_job_ends_with_143_and_lost_job_with_137(instance: Instance) -> None:
    id = await instance.start(SLEEP)
    stopped = await instance.sandbox.stop_job(HERE, id)
    assert stopped is not None and stopped.exit_code == 143
    lost = await instance.start(SLEEP)
    await instance.sandbox.close()
    restarted = LocalSandbox(instance.sandbox._directory)
    job = await restarted.get_job(HERE, lost)
    await restarted.close()
    assert job is not None and job.exit_code == 137


async def test_processes_inside_cannot_inspect_our_own_processes(instance: Instance) -> None:
    await instance.start(SLEEP)
    resident = instance.sandbox._instances[HERE].init_process
    [ours] = resident.command_pids
    assert os.stat(f"/proc/{ours}/environ").st_uid == 0, "it has closed itself to its own user"


async def test_ten_jobs_run_at_once(instance: Instance) -> None:
    for _ in range(10):
        await instance.start(SLEEP)
    with pytest.raises(SandboxUnavailable, match="10 jobs"):
        await instance.start(SLEEP)
    await instance.sandbox.release_instance(HERE)


async def test_idle_instance_is_stopped(instance: Instance) -> None:
    await instance.run("echo x > ~/a", idle_seconds=0)
    await wait_until(lambda: not instance.sandbox._instances, "the instance is gone")
    assert "No such file" in (await instance.run("cat ~/a"))[0]


async def test_expired_instance_is_stopped_and_its_jobs_are_lost(instance: Instance) -> None:
    await instance.run("echo x > ~/a", lifetime_seconds=2)
    id = await instance.start(SLEEP, lifetime_seconds=2)
    await wait_until(lambda: not instance.sandbox._instances, "the instance is gone")
    await instance.ended(id)
    job = await instance.sandbox.get_job(HERE, id)
    assert job is not None and job.exit_code == 137
    assert "No such file" in (await instance.run("cat ~/a", lifetime_seconds=2))[0]


async def test_running_command_may_end_after_its_instance_has_expired(instance: Instance) -> None:
    output, changes = await instance.run("sleep 2; echo done > a; echo over", lifetime_seconds=1)
    assert (output, changes) == ("over\n", {"a": b"done\n"})
    await wait_until(lambda: not instance.sandbox._instances, "the instance is gone")


@pytest.mark.parametrize(
    "other",
    [
        {"limits": ResourceLimits(memory_mb=512)},
        {"env": {"TOKEN": "x"}},
        {"options": {"any": 1}},
        {"lifetime_seconds": 900},
    ],
)
async def test_instance_is_not_reused_with_other_settings(
    instance: Instance, other: dict[str, object]
) -> None:
    await instance.run("echo old > ~/a")
    job = await instance.start(SLEEP)
    assert (await instance.run("cat ~/a", limits=ResourceLimits(seconds=20, output_bytes=999)))[
        0
    ] == "old\n"
    assert "No such file" in (await instance.run("cat ~/a", **other))[0]
    await instance.ended(job)
    lost = await instance.sandbox.get_job(HERE, job)
    assert lost is not None and lost.exit_code == 137


async def test_unacknowledged_changes_are_reported_again(instance: Instance) -> None:
    order = instance.order("echo 1 > a; echo 2 > b")
    with pytest.raises(LookupError):
        async with instance.sandbox.run(order, instance.cupboard) as ran:
            await ran.content(Path("a"))
            raise LookupError
    assert (await instance.run("true"))[1] == {"a": b"1\n", "b": b"2\n"}
    instance.put("a", "1\n")
    instance.put("b", "2\n")
    assert (await instance.run("true"))[1] == {}


async def test_change_wins_over_a_deletion_on_either_side(instance: Instance) -> None:
    for path in ("a", "b", "c"):
        instance.put(path, "1")
    id = await instance.start("rm a b; printf 2 > c")
    await instance.ended(id)
    instance.put("a", "others")
    del instance.files[Path("c")]
    assert await instance.run("cat a") == ("others", {"b": None, "c": b"2"})


async def test_path_may_be_a_file_inside_and_a_directory_outside(instance: Instance) -> None:
    instance.put("d/x", "1")
    instance.put("e", "1")
    await instance.ended(
        await instance.start("echo mine > new; rm e; mkdir -p e other; echo 2 > e/y")
    )
    instance.put("new/theirs", "1")
    instance.put("other", "1")
    output, changes = await instance.run("cat other d/x; ls")
    assert (output, changes) == (
        "11d\ne\nnew\nother\n",
        {"new": b"mine\n", "e": None, "e/y": b"2\n"},
    )


async def test_files_are_not_written_through_links(instance: Instance, tmp_path: File) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o777)
    outside.chmod(0o777)
    await instance.ended(await instance.start(f"ln -s {outside} d"))
    instance.put("d/x", "1")
    instance.put("d/e/y", "1")
    await instance.run("true")
    assert list(outside.iterdir()) == []


async def test_changes_of_a_job_are_written_back_when_it_ends(instance: Instance) -> None:
    home = WriteBack(instance)
    instance.put("a", "1")
    id = await instance.start("printf 2 > a; printf n > new; exit 3", write_back=home)
    await instance.ended(id)
    assert home.received == [(3, {"a": b"2", "new": b"n"})]
    id = await instance.start(f"printf 3 > a; exec {SLEEP}", write_back=home)
    await instance.holds("a", b"3")
    await instance.sandbox.stop_job(HERE, id)
    assert home.received[1:] == [(143, {"a": b"3"})]
    job = await instance.sandbox.get_job(HERE, id)
    assert job is not None and job.log == b"[home]"


async def test_changes_are_written_back_before_an_instance_is_stopped(instance: Instance) -> None:
    home = WriteBack(instance)
    late = "(setsid sh -c 'sleep 0.2; echo late > a' >/dev/null 2>&1 &)"
    await instance.run(late, write_back=home, idle_seconds=2)
    await wait_until(lambda: home.received, "the changes are written back")
    assert home.received == [(None, {"a": b"late\n"})]
    await instance.start(f"echo half > b; {SLEEP}", write_back=home)
    await instance.holds("b", b"half\n")
    await instance.sandbox.close()
    assert home.received[1:] == [(137, {"b": b"half\n"}), (None, {})]


async def test_write_back_error_is_reported_and_all_changes_stay(instance: Instance) -> None:
    async def lost(look: InspectInstance, job: BackgroundJob | None) -> Sequence[str]:
        async with look(dict(instance.files), {}, FileAttributes()) as ran:
            await ran.content(Path("a"))
            raise LookupError

    id = await instance.start("echo 1 > a", write_back=lost)
    await instance.ended(id)
    job = await instance.sandbox.get_job(HERE, id)
    assert job is not None and job.log == b"[changed files could not be written back]"
    assert (await instance.run("true"))[1] == {"a": b"1\n"}
