"""Outages of a bucket: failed and late requests are raised as Unreachable.

Callers get 503 `unavailable` with Retry-After (`server/http/error_responses.py`); the text is in
`core/outages.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError

from carrel.core.outages import Unreachable

ANSWER_SECONDS: Final = 10.0
"""Time for an answer, retries included, and between two parts of one."""
_MIN_BYTES_PER_SECOND: Final = 2**20
"""Slowest accepted rate of an upload."""
_NO_BUCKET: Final = "NoSuchBucket"
"""S3's error code for a bucket that does not exist, by which a lost object is told apart."""


def transfer_seconds(size: int) -> float:
    """Time in which so many bytes are sent and answered."""
    return ANSWER_SECONDS + size / _MIN_BYTES_PER_SECOND


@asynccontextmanager
async def unreachable_after(seconds: float | None = None) -> AsyncIterator[None]:
    """Raise Unreachable for failed requests and for those that take longer.

    Without a time, after ANSWER_SECONDS.
    """
    seconds = ANSWER_SECONDS if seconds is None else seconds
    try:
        async with asyncio.timeout(seconds):
            yield
    except AlreadyExistsError:
        raise
    except (NotFoundError, FileNotFoundError) as problem:
        if _NO_BUCKET in str(problem):
            raise Unreachable("bucket", _NO_BUCKET) from problem
        raise
    except (BaseError, TimeoutError) as problem:
        is_late = isinstance(problem, TimeoutError)
        reason = f"no answer in {seconds:.0f} s" if is_late else type(problem).__name__
        raise Unreachable("bucket", reason) from problem
