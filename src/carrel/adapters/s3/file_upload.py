"""Uploads of files to a bucket in one request, of which nothing remains if it fails.

The parts of a multipart upload stay in the bucket when the server is lost before it is completed or
aborted, and obstore cannot list them. A single request of obstore would hold the content in memory.
So the URL is signed with the store's credentials, and the body is streamed to it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import cache
from typing import IO, Final

import httpx
import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from carrel.adapters.s3.outages import transfer_seconds
from carrel.core.outages import Unreachable
from carrel.ports.blobs import PART_BYTES

_URL_LIFETIME: Final = timedelta(minutes=15)
"""Until the request begins; it may take longer."""
_CONNECT_SECONDS: Final = 5.0
_MAX_ATTEMPTS: Final = 4
_FIRST_PAUSE_SECONDS: Final = 0.2
_TRANSIENT_STATUSES: Final = frozenset({408, 429, 500, 502, 503, 504})


async def put_file(store: S3Store, key: str, file: IO[bytes], size: int) -> None:
    """Store a file under a key. Raises Unreachable.

    Attempts that fail at the connection or the server are repeated.
    """
    seconds = transfer_seconds(size)
    try:
        async with (
            asyncio.timeout(seconds),
            httpx.AsyncClient(
                verify=_tls_context(), timeout=httpx.Timeout(seconds, connect=_CONNECT_SECONDS)
            ) as client,
        ):
            await _put_with_retry(client, store, key, file, size)
    except TimeoutError as problem:
        raise Unreachable("bucket", f"no answer in {seconds:.0f} s") from problem


async def _put_with_retry(
    client: httpx.AsyncClient, store: S3Store, key: str, file: IO[bytes], size: int
) -> None:
    for attempt in range(_MAX_ATTEMPTS):
        problem: Exception | None = None
        try:
            url = await obstore.sign_async(store, "PUT", key, _URL_LIFETIME)
            body = _read_file(file)
            response = await client.put(url, content=body, headers={"Content-Length": str(size)})
        except (httpx.HTTPError, BaseError) as error:
            reason, is_transient, problem = type(error).__name__, True, error
        else:
            if response.is_success:
                return
            reason = f"status {response.status_code}"
            is_transient = response.status_code in _TRANSIENT_STATUSES
        if not is_transient or attempt == _MAX_ATTEMPTS - 1:
            raise Unreachable("bucket", reason) from problem
        await asyncio.sleep(_FIRST_PAUSE_SECONDS * 2**attempt)


async def _read_file(file: IO[bytes]) -> AsyncIterator[bytes]:
    await asyncio.to_thread(file.seek, 0)
    while part := await asyncio.to_thread(file.read, PART_BYTES):
        yield part


@cache
def _tls_context() -> ssl.SSLContext:
    """The authorities of the system, as obstore has them."""
    return ssl.create_default_context()
