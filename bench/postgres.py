"""A temporary PostgreSQL server for the benchmarks, started like in the tests."""

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
    """Yield the URL of an empty database; stop the server afterwards."""
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
