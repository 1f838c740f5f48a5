"""Capture of structured logs, whatever level an earlier test configured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from structlog.testing import capture_logs
from structlog.typing import EventDict


@contextmanager
def captured_logs() -> Iterator[list[EventDict]]:
    structlog.reset_defaults()
    with capture_logs() as logs:
        yield logs
