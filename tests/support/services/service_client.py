"""Client of the service daemon: start it, request a server, release it."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path as File

from tests.support.services import port_slot as slot

DAEMON_VARIABLE = "CARREL_TEST_KEEPER"
URLS = {
    "postgres": "CARREL_TEST_POSTGRES",
    "s3": "CARREL_TEST_S3",
    "loaded": "CARREL_TEST_LOADED",
}
TIMEOUT_SECONDS = 120
# A socket's path may have a hundred characters, and servers put theirs below.
LONGEST = 60


@dataclass
class DaemonHandle:
    """Keeps the daemon alive; the environment has its address for child processes."""

    process: subprocess.Popen[bytes]

    def release(self) -> None:
        for name in (DAEMON_VARIABLE, *URLS.values()):
            os.environ.pop(name, None)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def start_daemon() -> DaemonHandle:
    """Start a daemon and put the addresses of its servers into the environment."""
    directory = private_directory()
    mine = slot.reserve_slot()
    with mine.guard:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.support.services.service_daemon",
                directory,
                *map(str, mine.ports),
            ],
            cwd=File(__file__).parents[3],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            pass_fds=[mine.guard.fileno()],
        )
    assert process.stdout is not None
    urls = json.loads(process.stdout.readline())
    os.environ[DAEMON_VARIABLE] = str(directory / "daemon")
    os.environ.update({URLS[name]: url for name, url in urls.items()})
    return DaemonHandle(process)


def private_directory() -> File:
    """A new directory with a short path, which PostgreSQL's user may traverse."""
    places = [tempfile.gettempdir(), "/tmp", "/var/tmp"]
    place = next(place for place in places if len(place) < LONGEST and is_traversable(File(place)))
    directory = File(tempfile.mkdtemp(prefix="carrel-", dir=place))
    directory.chmod(0o711)
    return directory


def is_traversable(place: File) -> bool:
    modes = [stat.S_IMODE(part.stat().st_mode) for part in (place, *place.parents)]
    return os.access(place, os.W_OK) and all(mode & 0o001 for mode in modes)


def url_of(name: str) -> str:
    """The URL of a running server; the first request waits while it starts."""
    with send(name) as connection, connection.makefile("rb") as replies:
        line = replies.readline()
    reply = json.loads(line) if line else {"problem": "the daemon has ended"}
    if "problem" in reply:
        raise RuntimeError(f"{name} is not to be had: {reply['problem']}")
    return str(reply["url"])


def warm_up(name: str) -> None:
    """Start a server in the background."""
    send(name).close()


def send(name: str) -> socket.socket:
    if DAEMON_VARIABLE not in os.environ:
        raise RuntimeError(f"{name} is not to be had: CARREL_TEST_SERVICES is off")
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(TIMEOUT_SECONDS)
    connection.connect(os.environ[DAEMON_VARIABLE])
    connection.sendall(f"{name}\n".encode())
    return connection
