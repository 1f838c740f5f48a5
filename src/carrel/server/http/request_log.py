"""Structured logs: JSON on standard error, each line with its request's id, none with content.

What failed is told by its type and by where it happened. Its message is left out, since nobody
can know what a library puts there, unless it comes from the disk or the database file.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import PurePath
from types import TracebackType
from typing import Any, Final, TextIO

import msgspec

from carrel.ports.logging import structlog

REQUEST_ID: Final[ContextVar[str]] = ContextVar("carrel_request_id")
"""Whose request is being served here."""

_encode: Final = msgspec.json.Encoder(enc_hook=str).encode
_FRAMES: Final = 12
_SPEAKING: Final = ("sqlite3",)
_INDISCREET: Final = ("uvicorn.access", "httpx", "httpcore", "dulwich")
"""They write whole addresses, query included, or what a caller says of itself."""

Line = MutableMapping[str, Any]


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Set up logging for this process, that of libraries included. Once, by wiring."""
    number = logging.getLevelNamesMapping()[level.upper()]
    out = stream or sys.stderr
    structlog.configure(
        processors=[_complete, _render],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    libraries = logging.StreamHandler(out)
    libraries.setFormatter(_Libraries())
    root = logging.getLogger()
    root.handlers[:] = [libraries]
    root.setLevel(max(number, logging.INFO))
    for name in _INDISCREET:
        logging.getLogger(name).setLevel(logging.WARNING)


def error_fields(error: BaseException) -> dict[str, Any]:
    """What may be written down of an error: its type, its place, and a code where it has one."""
    kind = type(error)
    told: dict[str, Any] = {
        "error": f"{kind.__module__}.{kind.__qualname__}",
        "at": _places(error.__traceback__),
    }
    code = getattr(error, "sqlstate", None) or getattr(error, "errno", None)
    if code is not None:
        told["code"] = code
    if isinstance(error, OSError):
        told["said"] = error.strerror
    elif kind.__module__ in _SPEAKING:
        told["said"] = str(error)
    if error.__cause__ is not None:
        told["cause"] = error_fields(error.__cause__)
    return told


def _places(trace: TracebackType | None) -> list[str]:
    places = []
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{PurePath(code.co_filename).stem}.{code.co_qualname}:{trace.tb_lineno}")
        trace = trace.tb_next
    return places[-_FRAMES:]


def _complete(_: Any, method: str, line: Line) -> Line:
    line["level"] = method
    line["time"] = datetime.now(UTC).isoformat(timespec="milliseconds")
    if "request_id" not in line and (request := REQUEST_ID.get(None)):
        line["request_id"] = request
    return line


def _render(_: Any, __: str, line: Line) -> str:
    return _encode(line).decode()


class _Libraries(logging.Formatter):
    """Lines of libraries, in the same form."""

    def format(self, record: logging.LogRecord) -> str:
        line: Line = {"event": record.getMessage(), "logger": record.name}
        if record.exc_info and record.exc_info[1] is not None:
            line["failure"] = error_fields(record.exc_info[1])
        return _render(None, "", _complete(None, record.levelname.lower(), line))


class RequestLog:
    """One line a request, where it is worth one: writes, errors and what took long.

    None until logging is configured; failures are always told.
    """

    __slots__ = ("_log", "reads", "slow", "writes")

    def __init__(self, slow: float = 1.0) -> None:
        self._log = structlog.get_logger("carrel.rest").bind()
        wanted = structlog.is_configured()
        self.reads: bool = wanted and self._log.is_enabled_for(logging.DEBUG)
        self.writes: bool = wanted and self._log.is_enabled_for(logging.INFO)
        self.slow = slow

    def request(self, level: int, request_id: str, **facts: Any) -> None:
        self._log.log(level, "request", request_id=request_id, **facts)

    def failure(self, request_id: str, error: BaseException) -> None:
        self._log.error("failed", request_id=request_id, failure=error_fields(error))
