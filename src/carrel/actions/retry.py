"""Retry of actions whose commit met a concurrent change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from carrel.core.errors import Busy

MAX_ATTEMPTS: Final = 10

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def retry_on_conflict(
    attempts: int = MAX_ATTEMPTS,
) -> Callable[[Callable[Parameters, Awaitable[Result]]], Callable[Parameters, Awaitable[Result]]]:
    """Decorate an action to run again while it raises Busy.

    The action reads, decides and commits; it raises Busy if an expectation of its commit failed,
    and then reads and decides again. The last attempt's Busy is raised; a decorated caller of the
    action does not repeat it.
    """

    def decorate(
        action: Callable[Parameters, Awaitable[Result]],
    ) -> Callable[Parameters, Awaitable[Result]]:
        @wraps(action)
        async def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            for _ in range(attempts - 1):
                try:
                    return await action(*args, **kwargs)
                except Busy as busy:
                    if busy.is_retried:
                        raise
            try:
                return await action(*args, **kwargs)
            except Busy as busy:
                busy.is_retried = True
                raise

        return run

    return decorate
