"""Refusals and failures as MCP errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError

from carrel.core.errors import Refusal
from carrel.core.outages import failure_code_and_message

P = ParamSpec("P")
R = TypeVar("R")

LogFailure = Callable[[BaseException], str]
"""Logs an unexpected exception and returns its correlation id."""


def refusal_error(refusal: Refusal) -> MCPError:
    """MCP error of a refusal, with its message and details."""
    data = {"error": refusal.code, **refusal.details}
    return MCPError(types.INVALID_PARAMS, str(refusal), data)


def log_failures(
    log_failure: LogFailure,
) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    """Decorator that converts exceptions to MCP errors and logs unexpected ones."""

    def decorate(handler: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        @wraps(handler)
        async def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return await handler(*args, **kwargs)
            except MCPError:
                raise
            except Refusal as refusal:
                raise refusal_error(refusal) from None
            except Exception as failure:
                code, message = failure_code_and_message(failure)
                data = {"error": code, "correlationId": log_failure(failure)}
                raise MCPError(types.INTERNAL_ERROR, message, data) from None

        return wrapped

    return decorate
