"""The tests' side of the keeper: start it, ask it for a server, let go of it."""

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

KEEPER = "CARREL_TEST_KEEPER"
URLS = {
    "postgres": "CARREL_TEST_POSTGRES",
    "s3": "CARREL_TEST_S3",
    "loaded": "CARREL_TEST_LOADED",
}
PATIENCE = 120
# A socket's address may be a hundred characters long, and servers put theirs beneath.
LONGEST = 60


@dataclass
class Hold:
    """While this is held the keeper lives; the environment tells every process where it is."""

    process: subprocess.Popen[bytes]

    def release(self) -> None:
        for name in (KEEPER, *URLS.values()):
            os.environ.pop(name, None)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def start_keeper() -> Hold:
    """Start a keeper, and put the addresses its servers will have into the environment."""
    directory = private_directory()
    mine = slot.take()
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
    os.environ[KEEPER] = str(directory / "keeper")
    os.environ.update({URLS[name]: url for name, url in urls.items()})
    return Hold(process)


def private_directory() -> File:
    """A new directory whose path is short, and passable for the user PostgreSQL runs as."""
    places = [tempfile.gettempdir(), "/tmp", "/var/tmp"]
    place = next(place for place in places if len(place) < LONGEST and passable(File(place)))
    directory = File(tempfile.mkdtemp(prefix="carrel-", dir=place))
    directory.chmod(0o711)
    return directory


def passable(place: File) -> bool:
    modes = [stat.S_IMODE(part.stat().st_mode) for part in (place, *place.parents)]
    return os.access(place, os.W_OK) and all(mode & 0o001 for mode in modes)


def url_of(name: str) -> str:
    """The URL of a server that answers; the first to ask for it waits while it starts."""
    with send(name) as asked, asked.makefile("rb") as replies:
        line = replies.readline()
    reply = json.loads(line) if line else {"problem": "its keeper is gone"}
    if "problem" in reply:
        raise RuntimeError(f"{name} is not to be had: {reply['problem']}")
    return str(reply["url"])


def warm_up(name: str) -> None:
    """Have a server start in the background."""
    send(name).close()


def send(name: str) -> socket.socket:
    if KEEPER not in os.environ:
        raise RuntimeError(f"{name} is not to be had: CARREL_TEST_SERVICES is off")
    asked = socket.socket(socket.AF_UNIX)
    asked.settimeout(PATIENCE)
    asked.connect(os.environ[KEEPER])
    asked.sendall(f"{name}\n".encode())
    return asked
