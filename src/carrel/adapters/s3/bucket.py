"""Connection to a bucket: its options, listing and reading of objects."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import NotFoundError
from obstore.store import S3Store

from carrel.adapters.s3.outages import unreachable_after
from carrel.ports.blobs import PART_BYTES

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta
    from obstore.store import ClientConfig, RetryConfig, S3Config

DIGEST_PATTERN: Final = re.compile(r"[0-9a-f]{64}")
MAX_CONCURRENT: Final = 16
"""Copies and requests in flight at a time."""
_DEFAULT_REGION: Final = "us-east-1"
"""Region sent to a custom endpoint if none is configured."""
_TRANSFER_TIMEOUT: Final = timedelta(minutes=5)
"""Timeout of a whole transfer; large files over slow lines need minutes."""
_CONNECT_TIMEOUT: Final = timedelta(seconds=5)
_RETRY: Final[RetryConfig] = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}
"""An unreachable bucket is reported within seconds."""


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


async def next_page(pages: AsyncIterator[Sequence[ObjectMeta]]) -> Sequence[ObjectMeta]:
    async with unreachable_after():
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
    async with unreachable_after():
        response = await obstore.get_async(store, key, options=options)
    parts = aiter(response.stream(min_chunk_size=PART_BYTES))
    while True:
        async with unreachable_after():
            part = await anext(parts, None)
        if part is None:
            return
        yield bytes(part)
