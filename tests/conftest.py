"""What every test may ask for: a database of its own, a bucket of its own."""

from __future__ import annotations

import asyncio
import fcntl
import gc
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
from tests.support.services import databases
from tests.support.services import service_client as ask
from tests.support.services.s3 import Bucket

# A slow machine is no failure. Loaded before any test is read, so that every property has it.
settings.register_profile(
    "patient", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")

# For each request httpx looks for what it would know Trio by. That this is not there, Python finds
# out anew each time, in every directory that there is.
if find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]  # as the import system says it

LONGEST = {"test_fuzz.py", "test_kill.py"}
MEMORY = "/dev/shm"
ROOM = 4 * 2**30
"""More than all tests together have ever left behind."""
HOLD = pytest.StashKey[ask.Hold]()
Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run it to its end in a thread, since a fixture may be asked for inside an event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def pytest_configure(config: pytest.Config) -> None:
    # Reading the tests makes what stays to the end: looking through it for garbage finds none.
    gc.disable()
    is_worker = hasattr(config, "workerinput")
    is_off = ask.KEEPER in os.environ or os.environ.get("CARREL_TEST_SERVICES") == "off"
    if not is_worker and not is_off:
        config.stash[HOLD] = ask.start_keeper()
    write_to_memory()


def write_to_memory() -> None:
    """Temporary files of the tests lie in memory, where there is room and programs may be run:
    thousands of stores wait for no disk. The servers of `tests/support/services` use a disk."""
    with suppress(OSError):
        there = os.statvfs(MEMORY)
        is_large = there.f_bavail * there.f_frsize >= ROOM
        if "TMPDIR" not in os.environ and is_large and not there.f_flag & os.ST_NOEXEC:
            tempfile.tempdir = MEMORY


def pytest_unconfigure(config: pytest.Config) -> None:
    hold = config.stash.get(HOLD, None)
    if hold is not None:
        hold.release()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Workers come to a file together: one compiles it and all that it imports, the others wait for
    that and find it done."""
    if isinstance(collector, pytest.Session):
        return (yield)
    place = os.open(collector.path, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        return (yield)
    finally:
        os.close(place)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: when they are over there is still enough for everybody to do."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start what the chosen tests will need while those that need nothing run."""
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)
    gc.enable()
    if session.config.option.collectonly or ask.KEEPER not in os.environ:
        return
    needed = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    for server in ("postgres", "s3"):
        if f"{server}_server" in needed:
            ask.warm_up(server)


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The URL of a PostgreSQL server's own database, as an administrator."""
    return ask.url_of("postgres")


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> str:
    """The name of the database that `databases.prepare` filled."""
    name = run(databases.create(postgres_server))
    run(databases.prepare(databases.within(postgres_server, name)))
    return name


@pytest.fixture(scope="session")
def postgres_copies(postgres_server: str, postgres_template: str) -> Iterator[databases.Copies]:
    with closing(databases.Copies(postgres_server, postgres_template)) as copies:
        yield copies


@pytest.fixture
def postgres_url(postgres_server: str, postgres_copies: databases.Copies) -> Iterator[str]:
    """The URL of a database as the template is."""
    name = postgres_copies.take()
    yield databases.within(postgres_server, name)
    postgres_copies.give_back(name)


@pytest.fixture
def empty_postgres_url(postgres_server: str) -> str:
    """The URL of a fresh database in which there is nothing."""
    name = run(databases.create(postgres_server))
    return databases.within(postgres_server, name)


@pytest.fixture(scope="session")
def s3_server() -> str:
    """The URL of an S3 server, its keys within."""
    return ask.url_of("s3")


@pytest.fixture
def s3_bucket(s3_server: str) -> Bucket:
    """A fresh, empty bucket: its endpoint, name, region and keys."""
    bucket = Bucket.at(s3_server, f"test-{secrets.token_hex(8)}")
    bucket.create()
    return bucket
