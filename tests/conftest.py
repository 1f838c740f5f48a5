"""Fixtures of all tests: a database, a bucket."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import logging
import os
import secrets
import sys
import tempfile
from collections.abc import Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from importlib.util import find_spec
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from tests.support.services import databases, service_client
from tests.support.services.s3 import Bucket

# Slow machines are no failure. Loaded before any test, so that it applies to every property.
settings.register_profile(
    "lenient", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("lenient")

# httpx looks for Trio at each request. A missing module is searched anew each time, in every
# directory of sys.path; None in sys.modules ends the search.
if find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]  # as the import system does

SLOWEST_FILES = {"test_every_screen.py", "test_fuzz.py", "test_kill.py"}
SHARED_MEMORY = "/dev/shm"
MIN_FREE_BYTES = 4 * 2**30
"""More than all tests together have ever used."""
DAEMON_KEY = pytest.StashKey[service_client.DaemonHandle]()
Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a thread, since a fixture may be requested inside an event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def pytest_configure(config: pytest.Config) -> None:
    # Collected tests stay until the end, so searching them for garbage finds none.
    gc.disable()
    is_worker = hasattr(config, "workerinput")
    is_off = (
        service_client.DAEMON_VARIABLE in os.environ
        or os.environ.get("CARREL_TEST_SERVICES") == "off"
    )
    if not is_worker and not is_off:
        config.stash[DAEMON_KEY] = service_client.start_daemon()
    write_to_memory()


def write_to_memory() -> None:
    """Put temporary files in memory if it is large enough and allows execution.

    Thousands of stores then wait for no disk. The servers of `tests/support/services` use a disk.
    """
    with suppress(OSError):
        space = os.statvfs(SHARED_MEMORY)
        is_large = space.f_bavail * space.f_frsize >= MIN_FREE_BYTES
        if "TMPDIR" not in os.environ and is_large and not space.f_flag & os.ST_NOEXEC:
            tempfile.tempdir = SHARED_MEMORY


def pytest_unconfigure(config: pytest.Config) -> None:
    # Event loops that end with the interpreter log to a stream that is already closed.
    logging.raiseExceptions = False
    daemon = config.stash.get(DAEMON_KEY, None)
    if daemon is not None:
        daemon.release()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let one worker compile a file and its imports while the others wait for the result."""
    if isinstance(collector, pytest.Session):
        return (yield)
    descriptor = os.open(collector.path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return (yield)
    finally:
        os.close(descriptor)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest first, so that the other workers have enough to do meanwhile."""
    items.sort(key=lambda item: item.path.name not in SLOWEST_FILES)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start the servers that the collected tests need while other tests run."""
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)
    gc.enable()
    if session.config.option.collectonly or service_client.DAEMON_VARIABLE not in os.environ:
        return
    needed = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    for server in ("postgres", "s3"):
        if f"{server}_server" in needed:
            service_client.warm_up(server)


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The URL of a PostgreSQL server's own database, as an administrator."""
    return service_client.url_of("postgres")


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """The name of the database that `databases.prepare` filled."""
    name = run(databases.create(postgres_server))
    run(databases.prepare(databases.database_url(postgres_server, name)))
    return name


@pytest.fixture(scope="session")
def postgres_copies(postgres_server: str, postgres_template: str) -> Iterator[databases.Copies]:
    with closing(databases.Copies(postgres_server, postgres_template)) as copies:
        yield copies


@pytest.fixture
def postgres_url(postgres_server: str, postgres_copies: databases.Copies) -> Iterator[str]:
    """The URL of a database with the content of the template."""
    name = postgres_copies.acquire()
    yield databases.database_url(postgres_server, name)
    postgres_copies.release(name)


@pytest.fixture
def empty_postgres_url(postgres_server: str) -> str:
    """The URL of an empty database."""
    name = run(databases.create(postgres_server))
    return databases.database_url(postgres_server, name)


@pytest.fixture(scope="session")
def s3_server() -> str:
    """The URL of an S3 server, with its keys."""
    return service_client.url_of("s3")


@pytest.fixture
def s3_bucket(s3_server: str) -> Bucket:
    """A new, empty bucket: its endpoint, name, region and keys."""
    bucket = Bucket.at(s3_server, f"test-{secrets.token_hex(8)}")
    bucket.create()
    return bucket
