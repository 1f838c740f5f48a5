"""A PostgreSQL of its own for the measurements: the same that the tests use."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as File

from tests.support.services.postgres import Postgres


@contextmanager
def database() -> Iterator[str]:
    """The URL of an empty database, for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="carrel-bench-") as folder, asyncio.Runner() as runner:
        File(folder).chmod(0o755)
        server = Postgres(File(folder), _free_port())
        runner.run(server.start())
        try:
            yield server.url
        finally:
            runner.run(server.stop())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
