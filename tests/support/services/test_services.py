"""The servers of the tests are real, durable, separate and always stopped."""

from __future__ import annotations

import asyncio
import marshal
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path as File
from urllib.parse import urlsplit

import asyncpg
import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, PermissionDeniedError, UnauthenticatedError
from tests.support.server_process import command, preloaded_address
from tests.support.services import databases, service_client
from tests.support.services import port_slot as slot
from tests.support.services.fork_server import Forked
from tests.support.services.postgres import (
    Postgres,
    copy_binaries,
    is_readable_by_all,
    wheel_binaries,
)
from tests.support.services.preloaded_process import KIND
from tests.support.services.s3 import Bucket
from tests.support.services.service_daemon import removal_path
from tests.support.wait import wait_until_sync

ROOT = File(__file__).parents[3]


async def value(url: str, query: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


@pytest.mark.parametrize("setting", ["fsync", "synchronous_commit", "full_page_writes"])
def test_postgres_syncs_acknowledged_writes(postgres_server: str, setting: str) -> None:
    assert asyncio.run(value(postgres_server, f"SHOW {setting}")) == "on"


def test_postgres_requires_its_password(postgres_server: str) -> None:
    stranger = postgres_server.replace(urlsplit(postgres_server).password or "", "guess")
    with pytest.raises(asyncpg.InvalidPasswordError):
        asyncio.run(value(stranger, "SELECT 1"))


@pytest.mark.parametrize("turn", ["first", "second"])
def test_each_test_has_its_own_database(postgres_url: str, turn: str) -> None:
    status = asyncio.run(value(postgres_url, f"CREATE TABLE mine AS SELECT '{turn}' AS turn"))
    assert status is None
    assert asyncio.run(value(postgres_url, "SELECT turn FROM mine")) == turn


def test_copy_has_the_content_of_its_template(postgres_server: str) -> None:
    async def scenario() -> object:
        template = await databases.create(postgres_server)
        await value(databases.database_url(postgres_server, template), "CREATE TABLE seed ()")
        copy = await databases.create(postgres_server, template)
        return await value(
            databases.database_url(postgres_server, copy), "SELECT count(*) FROM seed"
        )

    assert asyncio.run(scenario()) == 0


@pytest.mark.parametrize("place", ["in its place", "copied"])
def test_postgres_of_the_wheel_works_without_a_system_installation(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = service_client.private_directory()
    binaries = wheel_binaries()[0]
    if place == "copied":
        binaries = copy_binaries(binaries, directory / "binaries")
    monkeypatch.setenv("CARREL_TEST_POSTGRES_BIN", str(binaries))

    async def scenario(server: Postgres) -> object:
        try:
            await server.start()
            return await value(server.url, "SHOW fsync")
        finally:
            await server.stop()

    mine = slot.reserve_slot()
    with mine.guard:
        answer = asyncio.run(scenario(Postgres(directory, mine.ports[0])))
    shutil.rmtree(directory)
    assert answer == "on"


def test_files_below_a_private_directory_are_not_passable(tmp_path: File) -> None:
    inside = tmp_path / "closed" / "inside"
    inside.mkdir(parents=True)
    inside.parent.chmod(0o700)
    assert not is_readable_by_all(inside)
    assert is_readable_by_all(File("/"))


def test_a_second_conditional_put_is_refused(s3_bucket: Bucket) -> None:
    store = s3_bucket.store()
    obstore.put(store, "key", b"first", mode="create")
    with pytest.raises(AlreadyExistsError):
        obstore.put(store, "key", b"second", mode="create")
    assert obstore.get(store, "key").bytes() == b"first"


@pytest.mark.parametrize("turn", ["first", "second"])
def test_each_test_has_its_own_empty_bucket(s3_bucket: Bucket, turn: str) -> None:
    store = s3_bucket.store()
    assert list(obstore.list(store).collect()) == []
    obstore.put(store, turn, b"")


def test_s3_requires_its_keys(s3_server: str) -> None:
    stranger = s3_server.replace(urlsplit(s3_server).password or "", "guess")
    with pytest.raises((PermissionDeniedError, UnauthenticatedError)):
        obstore.put(Bucket.at(stranger, "theirs").store(), "key", b"")


def test_two_slots_share_no_port() -> None:
    slots = [slot.reserve_slot() for _ in range(20)]
    ports = [port for taken in slots for port in taken.ports]
    for taken in slots:
        taken.guard.close()
    assert len(ports) == len(set(ports))


def listens(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex((slot.HOST, port)) == 0


REQUESTER = """
import os, sys
from tests.support.services import service_client
daemon = service_client.start_daemon()
postgres, s3 = service_client.url_of("postgres"), service_client.url_of("s3")
print(postgres, s3, os.environ[service_client.DAEMON_VARIABLE], flush=True)
sys.stdin.read()
"""


def test_servers_end_when_their_requester_is_killed() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    requester = subprocess.Popen(
        [sys.executable, "-c", REQUESTER],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with requester:
        assert requester.stdout is not None
        postgres, s3, daemon = requester.stdout.readline().split()
        ports = [urlsplit(url).port or 0 for url in (postgres, s3)]
        assert all(listens(port) for port in ports)
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(daemon)
            requester.send_signal(signal.SIGKILL)
            assert line.recv(1) == b"", "the daemon closes its connections when it ends"
    assert not any(listens(port) for port in ports)
    assert not File(daemon).parent.exists()
    leftovers = removal_path(File(daemon).parent)
    wait_until_sync(lambda: not leftovers.exists(), "what they left is removed")


def program(text: str, *arguments: str) -> list[str]:
    return [*command(text), *arguments]


def test_forked_process_behaves_like_a_started_one(tmp_path: File) -> None:
    text = """
import atexit, os, sys, threading
assert "carrel.wiring.server" in sys.modules
threading.Thread(target=lambda: print("thread", flush=True)).start()
atexit.register(print, "at its end")
print(sys.argv[1:], dict(os.environ), os.getcwd(), sys.stdin.read(), __name__, file=sys.stderr)
sys.exit(7)
"""
    variables = {"ONE": "1", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        program(text, "an argument", "ü"),
        cwd=tmp_path,
        env=variables,
        input="said",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == f"['an argument', 'ü'] {variables} {tmp_path} said __main__\n"
    assert (done.returncode, done.stdout) == (7, "thread\nat its end\n")


@pytest.mark.parametrize(
    ("text", "code", "output"),
    [
        ("pass", 0, ""),
        ("raise SystemExit('why')", 1, "why"),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("import os; os.kill(os.getpid(), 9)", -9, ""),
    ],
)
def test_exit_status_of_a_forked_process_is_reported(text: str, code: int, output: str) -> None:
    done = subprocess.run(program(text), capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert output in done.stderr


WAITING = "import time; print('there', flush=True); time.sleep(600)"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_forked_process_receives_signals(number: signal.Signals) -> None:
    with subprocess.Popen(
        program(WAITING), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as waiting:
        assert waiting.stdout
        assert waiting.stdout.readline() == b"there\n"
        waiting.send_signal(number)
        assert waiting.stdout.read() == b""  # raises, since the process is gone
    assert waiting.returncode == -number


def test_forked_process_does_not_outlive_its_requester() -> None:
    read_end, write_end = os.pipe()
    context = Forked(preloaded_address(), [WAITING], {}, (0, write_end, 2))
    os.close(write_end)
    with open(read_end, "rb") as out:
        assert out.readline() == b"there\n"
        assert context.poll() is None
        context.close()
        assert out.read() == b""


def test_requester_that_ends_before_it_reads_the_process_id_stops_no_other() -> None:
    request = marshal.dumps(([WAITING], {}, str(ROOT)))
    with socket.socket(*KIND) as requester, open(os.devnull, "r+b") as null:
        requester.connect(preloaded_address())
        socket.send_fds(requester, [request], [null.fileno()] * 3)
        select.select([requester], [], [])  # closing with an unread message resets the connection
    done = subprocess.run(program("pass"), capture_output=True, check=False)
    assert done.returncode == 0


def test_returned_database_is_restored(postgres_server: str, postgres_template: str) -> None:
    async def change(name: str, *statements: str) -> None:
        for statement in statements:
            await databases.execute(databases.database_url(postgres_server, name), statement)

    async def scenario(copies: databases.Copies) -> None:
        first = copies.acquire()
        url = databases.database_url(postgres_server, first)
        other = await asyncpg.connect(url)  # remaining sessions are ended
        fresh = await databases.read_schema(url)
        await change(
            first,
            "UPDATE counter SET value = 7",
            "INSERT INTO delivery_cursor (name, cursor) VALUES ('a', 'b')",
            "INSERT INTO audit (tenant, at, author, reason, subjects)"
            " VALUES ('t', 0, 'b', 'w', '[]')",
        )
        copies.release(first)
        assert copies.acquire() == first
        assert await databases.read_schema(url) == fresh
        [count] = await _rows(url, "SELECT count(*) FROM delivery_cursor, audit")
        assert count == 0
        await change(
            first,
            "INSERT INTO audit (tenant, at, author, reason, subjects) VALUES ('t',0,'','','[]')",
        )
        assert await _rows(url, "SELECT id FROM audit") == [1]
        other.terminate()
        for spoil in ("ALTER TABLE delivery_cursor ADD COLUMN more text", "DELETE FROM migration"):
            await change(first, spoil)
            copies.release(first)
            second = copies.acquire()
            assert second != first
            first = second

    with closing(databases.Copies(postgres_server, postgres_template)) as copies:
        asyncio.run(scenario(copies))


async def _rows(url: str, question: str) -> list[object]:
    connection = await asyncpg.connect(url)
    try:
        return [row[0] for row in await connection.fetch(question)]
    finally:
        await connection.close()
