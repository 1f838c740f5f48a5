"""MCP notifications about a running tool call: progress and log messages.

Both name the stage of the call, never arguments or contents.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from carrel.actions.progress import ProgressCallback, no_progress

Context: TypeAlias = ServerRequestContext[Any, Any]
LOGGER: Final = "carrel.tools"
REPEAT_SECONDS: Final = 5.0
"""Time after which a stage is reported again, so that a client sees that the call goes on."""
_LEVELS: Final[tuple[types.LoggingLevel, ...]] = (
    *("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"),
)


class LogLevel:
    """Lowest level of the log messages that a client with a handshake receives."""

    def __init__(self) -> None:
        self._lowest: types.LoggingLevel = "warning"

    def set(self, level: types.LoggingLevel) -> None:
        self._lowest = level

    def includes(self, level: types.LoggingLevel) -> bool:
        return _LEVELS.index(level) >= _LEVELS.index(self._lowest)


class CallProgress:
    """Sends the stages of one call to its client."""

    def __init__(self, ctx: Context, tool: str, log_level: LogLevel) -> None:
        self._ctx, self._tool, self._log_level = ctx, tool, log_level
        self._stages: asyncio.Queue[str | None] = asyncio.Queue()
        """None is the end of the call."""
        self._count = 0

    @property
    def is_requested(self) -> bool:
        """Whether the client asked for stages, as progress or as log messages."""
        meta = self._ctx.meta or {}
        return (
            "progress_token" in meta
            or types.LOG_LEVEL_META_KEY in meta
            or (not self._is_modern and self._log_level.includes("info"))
        )

    def report(self, label: str, completed: int, total: int) -> None:
        self._stages.put_nowait(f"{label} ({completed:,} of {total:,})" if total else label)

    def end(self) -> None:
        self._stages.put_nowait(None)

    async def send_stages(self) -> None:
        """Send stages as they come, and the current one again while it lasts, until the end."""
        stage: str | None = "started"
        while stage is not None:
            await self._send(stage)
            with suppress(TimeoutError):
                async with asyncio.timeout(REPEAT_SECONDS):
                    stage = await self._stages.get()
        await self._send("finished")

    async def log(self, level: types.LoggingLevel, stage: str) -> None:
        """Send a log message; since 2026 the SDK drops those that the request did not ask for."""
        if not self._is_modern and not self._log_level.includes(level):
            return
        data = {"tool": self._tool, "stage": stage}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            sending = self._ctx.session.send_log_message(level, data, LOGGER, self._ctx.request_id)
        await sending

    @property
    def _is_modern(self) -> bool:
        return self._ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def _send(self, stage: str) -> None:
        self._count += 1
        await self._ctx.session.report_progress(self._count, None, stage)
        await self.log("info", stage)


@asynccontextmanager
async def report_progress(progress: CallProgress) -> AsyncIterator[ProgressCallback]:
    """Send the stages that are reported while the context is open, if the client asked for them."""
    if not progress.is_requested:
        yield no_progress
        return
    task = asyncio.create_task(progress.send_stages())
    try:
        yield progress.report
        progress.end()
        await task
    finally:
        task.cancel()
