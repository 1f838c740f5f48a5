"""What goes wrong, as the protocol tells of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError

from carrel.core.errors import Refusal

P = ParamSpec("P")
R = TypeVar("R")

Tell = Callable[[BaseException], str]
"""Logs what nobody foresaw, and gives the id that the operator finds it by."""

_BROKEN: Final = "something went wrong here; the operator can find it by its correlationId"


def refused(refusal: Refusal) -> MCPError:
    """A refusal, whose message and details are its sender's to see."""
    told = {"error": refusal.code, **refusal.details}
    return MCPError(types.INVALID_PARAMS, str(refusal), told)


def log_failures(
    tell: Tell,
) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    """Let a handler raise what it likes: the client is told only what it may know."""

    def of(handler: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        @wraps(handler)
        async def told(*args: P.args, **more: P.kwargs) -> R:
            try:
                return await handler(*args, **more)
            except MCPError:
                raise
            except Refusal as refusal:
                raise refused(refusal) from None
            except Exception as failure:
                found = {"correlationId": tell(failure)}
                raise MCPError(types.INTERNAL_ERROR, _BROKEN, found) from None

        return told

    return of
