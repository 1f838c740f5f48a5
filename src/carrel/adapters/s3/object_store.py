"""S3 bucket as a keyed object store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import NotFoundError
from obstore.store import S3Store

from carrel.adapters.s3.bucket import (
    DIGEST_PATTERN,
    MAX_CONCURRENT,
    connect_bucket,
    next_page,
    read_object,
)
from carrel.adapters.s3.outages import transfer_seconds, unreachable_after
from carrel.core.catalog.object_keys import parse_segments
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Digest
from carrel.core.identifiers import digest as digest_of

if TYPE_CHECKING:
    from obstore import ObjectMeta

_PAGE_SIZE: Final = 1000
_MAX_KEY_BYTES: Final = 1024
_DIGEST_ATTRIBUTE: Final = "carrel-sha256"
"""Object attribute holding the content's SHA-256, so that it need not be read."""
_MAX_CACHED_DIGESTS: Final = 500_000


class S3ObjectStore:
    """Keyed object store in a bucket. Each object carries its digest as an attribute.

    ETags are not digests on every store, and listings do not show attributes. So attributes are
    fetched per object, but only if the ETag differs from the cached one.
    """

    forbids_nested_keys = False

    def __init__(self, store: S3Store, prefix: str = "") -> None:
        self._store = store
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._digests: dict[str, tuple[str, Digest | None]] = {}
        """ETag and digest by object key."""
        self._requests = asyncio.Semaphore(MAX_CONCURRENT)

    @classmethod
    def open(
        cls,
        bucket: str,
        prefix: str = "",
        *,
        endpoint: str | None = None,
        region: str | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
    ) -> S3ObjectStore:
        """Connect to a bucket, as S3BlobStore.open does."""
        return cls(connect_bucket(bucket, endpoint, region, access_key, secret_key), prefix)

    async def put(self, contents: Mapping[str, bytes]) -> Mapping[str, str]:
        reasons = {key: self._unsupported_key_reason(key) for key in contents}
        accepted = [key for key in contents if reasons[key] is None]
        puts = [self._put(key, contents[key]) for key in accepted]
        for result in await asyncio.gather(*puts, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
        return {key: reason for key, reason in reasons.items() if reason}

    async def get(self, key: str) -> bytes | None:
        if self._unsupported_key_reason(key):
            return None
        return await read_object(self._store, self._prefix + key)

    async def delete(self, keys: Collection[str]) -> None:
        full_keys = [self._prefix + key for key in keys if not self._unsupported_key_reason(key)]
        if full_keys:
            async with unreachable_after():
                await obstore.delete_async(self._store, full_keys)

    async def list(self, prefix: str) -> AsyncIterator[tuple[str, Digest | None]]:
        full_prefix = (self._prefix + prefix) or None
        pages = obstore.list(self._store, prefix=full_prefix, chunk_size=_PAGE_SIZE)
        while page := await next_page(pages):
            digests = await asyncio.gather(*map(self._digest, page))
            for meta, digest in zip(page, digests, strict=True):
                yield meta["path"].removeprefix(self._prefix), digest

    async def _put(self, key: str, content: bytes) -> None:
        digest = digest_of(content)
        attributes = {
            "Content-Type": _content_type(content),
            _DIGEST_ATTRIBUTE: digest.removeprefix("sha256:"),
        }
        async with self._requests, unreachable_after(transfer_seconds(len(content))):
            result = await obstore.put_async(
                self._store,
                self._prefix + key,
                content,
                attributes=attributes,
                use_multipart=False,
            )
        self._remember(self._prefix + key, result["e_tag"] or "", digest)

    async def _digest(self, meta: ObjectMeta) -> Digest | None:
        key, etag = meta["path"], meta["e_tag"] or ""
        cached = self._digests.get(key)
        if cached is not None and etag and cached[0] == etag:
            return cached[1]
        async with self._requests:
            try:
                async with unreachable_after():
                    response = await obstore.get_async(self._store, key, options={"head": True})
            except (NotFoundError, FileNotFoundError):
                return None
        hex_digest = str(response.attributes.get(_DIGEST_ATTRIBUTE, ""))
        digest = Digest(f"sha256:{hex_digest}") if DIGEST_PATTERN.fullmatch(hex_digest) else None
        self._remember(key, response.meta["e_tag"] or "", digest)
        return digest

    def _remember(self, key: str, etag: str, digest: Digest | None) -> None:
        if len(self._digests) >= _MAX_CACHED_DIGESTS:
            self._digests.clear()
        self._digests[key] = (etag, digest)

    def _unsupported_key_reason(self, key: str) -> str | None:
        try:
            parse_segments(key)
        except ValidationError as problem:
            return str(problem)
        if len((self._prefix + key).encode()) > _MAX_KEY_BYTES:
            return f"key exceeds {_MAX_KEY_BYTES} bytes"
        return None


def _content_type(content: bytes) -> str:
    try:
        content.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain; charset=utf-8"
