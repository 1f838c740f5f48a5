"""Connection to a bucket: requests with deadlines, and reading of objects."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import S3Store

from carrel.core.outages import Unreachable
from carrel.ports.blobs import PART_BYTES

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta
    from obstore.store import ClientConfig, RetryConfig, S3Config

DIGEST_PATTERN: Final = re.compile(r"[0-9a-f]{64}")
MAX_CONCURRENT: Final = 16
"""Copies and requests in flight at a time."""
ANSWER_SECONDS: Final = 10.0
"""Time for an answer, retries included, and between two parts of one."""
_DEFAULT_REGION: Final = "us-east-1"
"""Region sent to a custom endpoint if none is configured."""
_TRANSFER_TIMEOUT: Final = timedelta(minutes=5)
"""Timeout of a whole transfer; large files over slow lines need minutes."""
_CONNECT_TIMEOUT: Final = timedelta(seconds=5)
_RETRY: Final[RetryConfig] = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}
"""An unreachable bucket is reported within seconds."""
_MIN_BYTES_PER_SECOND: Final = 2**20
"""Slowest accepted rate of an upload."""
_NO_BUCKET: Final = "NoSuchBucket"
"""S3's error code for a bucket that does not exist, by which a lost object is told apart."""


def connect_bucket(
    bucket: str,
    endpoint: str | None,
    region: str | None,
    access_key: str | None,
    secret_key: str | None,
) -> S3Store:
    config: S3Config = {"virtual_hosted_style_request": endpoint is None}
    client: ClientConfig = {"timeout": _TRANSFER_TIMEOUT, "connect_timeout": _CONNECT_TIMEOUT}
    if endpoint is not None:
        config |= {"endpoint": endpoint, "region": region or _DEFAULT_REGION}
        client |= {"allow_http": endpoint.startswith("http://")}
    elif region is not None:
        config |= {"region": region}
    if access_key is not None and secret_key is not None:
        config |= {"access_key_id": access_key, "secret_access_key": secret_key}
    return S3Store(bucket, config=config, client_options=client, retry_config=_RETRY)


def transfer_seconds(size: int) -> float:
    """Time in which so many bytes are sent and answered."""
    return ANSWER_SECONDS + size / _MIN_BYTES_PER_SECOND


async def next_page(pages: AsyncIterator[Sequence[ObjectMeta]]) -> Sequence[ObjectMeta]:
    async with answer_in():
        return await anext(pages, [])


async def read_object(store: S3Store, key: str) -> bytes | None:
    """Return an object's content, or None if it does not exist."""
    try:
        return b"".join([part async for part in read_parts(store, key)])
    except (NotFoundError, FileNotFoundError):
        return None


async def read_parts(
    store: S3Store, key: str, byte_range: tuple[int, int] | None = None
) -> AsyncIterator[bytes]:
    """Yield an object's content in parts. Raises NotFoundError or FileNotFoundError."""
    options: GetOptions = {} if byte_range is None else {"range": byte_range}
    async with answer_in():
        response = await obstore.get_async(store, key, options=options)
    parts = aiter(response.stream(min_chunk_size=PART_BYTES))
    while True:
        async with answer_in():
            part = await anext(parts, None)
        if part is None:
            return
        yield bytes(part)


@asynccontextmanager
async def answer_in(seconds: float | None = None) -> AsyncIterator[None]:
    """Raise Unreachable for failed requests and for those that take longer."""
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
