"""Structured logs: JSON lines on stderr with request ids, without content.

An error is logged by type, location and code. Its message is omitted, since it may contain content,
unless it comes from the operating system or SQLite.
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
"""Id of the request being served in this context."""

_encode: Final = msgspec.json.Encoder(enc_hook=str).encode
_MAX_FRAMES: Final = 12
_MODULES_WITH_SAFE_MESSAGES: Final = ("sqlite3",)
_QUIETED_LOGGERS: Final = ("uvicorn.access", "httpx", "httpcore", "dulwich")
"""They log full URLs with queries, or text sent by callers."""

LogLine = MutableMapping[str, Any]


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Configure logging of this process, libraries included. Called once, by wiring."""
    level_number = logging.getLevelNamesMapping()[level.upper()]
    output = stream or sys.stderr
    structlog.configure(
        processors=[_add_context, _render],
        wrapper_class=structlog.make_filtering_bound_logger(level_number),
        logger_factory=structlog.WriteLoggerFactory(output),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(output)
    handler.setFormatter(_LibraryFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level_number, logging.INFO))
    for name in _QUIETED_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)


def error_fields(error: BaseException) -> dict[str, Any]:
    """Loggable fields of an error: type, location, code and cause."""
    error_type = type(error)
    fields: dict[str, Any] = {
        "error": f"{error_type.__module__}.{error_type.__qualname__}",
        "at": _frames(error.__traceback__),
    }
    code = getattr(error, "sqlstate", None) or getattr(error, "errno", None)
    if code is not None:
        fields["code"] = code
    if isinstance(error, OSError):
        fields["said"] = error.strerror
    elif error_type.__module__ in _MODULES_WITH_SAFE_MESSAGES:
        fields["said"] = str(error)
    if error.__cause__ is not None:
        fields["cause"] = error_fields(error.__cause__)
    return fields


def _frames(trace: TracebackType | None) -> list[str]:
    frames = []
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"{PurePath(code.co_filename).stem}.{code.co_qualname}:{trace.tb_lineno}")
        trace = trace.tb_next
    return frames[-_MAX_FRAMES:]


def _add_context(_: Any, method: str, line: LogLine) -> LogLine:
    line["level"] = method
    line["time"] = datetime.now(UTC).isoformat(timespec="milliseconds")
    if "request_id" not in line and (request_id := REQUEST_ID.get(None)):
        line["request_id"] = request_id
    return line


def _render(_: Any, __: str, line: LogLine) -> str:
    return _encode(line).decode()


class _LibraryFormatter(logging.Formatter):
    """Formats log records of libraries as the same JSON lines."""

    def format(self, record: logging.LogRecord) -> str:
        line: LogLine = {"event": record.getMessage(), "logger": record.name}
        if record.exc_info and record.exc_info[1] is not None:
            line["failure"] = error_fields(record.exc_info[1])
        return _render(None, "", _add_context(None, record.levelname.lower(), line))


class RequestLog:
    """Logs one line for each write, error or slow request.

    Logs no requests until logging is configured; failures are always logged.
    """

    __slots__ = ("_log", "logs_reads", "logs_writes", "slow_seconds")

    def __init__(self, slow_seconds: float = 1.0) -> None:
        self._log = structlog.get_logger("carrel.rest").bind()
        configured = structlog.is_configured()
        self.logs_reads: bool = configured and self._log.is_enabled_for(logging.DEBUG)
        self.logs_writes: bool = configured and self._log.is_enabled_for(logging.INFO)
        self.slow_seconds = slow_seconds

    def request(self, level: int, request_id: str, **fields: Any) -> None:
        self._log.log(level, "request", request_id=request_id, **fields)

    def failure(self, request_id: str, error: BaseException) -> None:
        self._log.error("failed", request_id=request_id, failure=error_fields(error))
