"""S3 bucket as a store of large contents."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from typing import IO, Final

import obstore
from obstore.exceptions import AlreadyExistsError, NotFoundError
from obstore.store import S3Store

from carrel.adapters.s3.bucket import (
    DIGEST_PATTERN,
    MAX_CONCURRENT,
    connect_bucket,
    next_page,
    read_object,
    read_parts,
)
from carrel.adapters.s3.file_upload import put_file
from carrel.adapters.s3.outages import transfer_seconds, unreachable_after
from carrel.core.identifiers import Digest, TimestampMs
from carrel.ports.blobs import PartWriter
from carrel.ports.part_writers import TEMPORARY_FILES, FilePartWriter, close_temporary

_TRASH_PREFIX: Final = "trash/"
_PING_SECONDS: Final = 3.0


class S3BlobStore:
    """Large blobs as objects named by digest.

    Works on any S3-compatible store that supports If-None-Match. An object's bytes never change.
    """

    component = "bucket"

    def __init__(self, store: S3Store, prefix: str = "") -> None:
        self._store = store
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""

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
    ) -> S3BlobStore:
        """Connect to a bucket. Options that are None come from the AWS configuration.

        With an endpoint the bucket is addressed in the path, as MinIO and SeaweedFS expect.
        """
        return cls(connect_bucket(bucket, endpoint, region, access_key, secret_key), prefix)

    async def ping(self) -> None:
        async with unreachable_after(_PING_SECONDS):
            await anext(obstore.list(self._store, prefix=self._prefix or None, chunk_size=1), None)

    async def put(self, digest: Digest, content: bytes) -> None:
        """Store the content. An existing object is overwritten to renew its age."""
        key = self._key(digest)
        async with unreachable_after(transfer_seconds(len(content))):
            try:
                await obstore.put_async(self._store, key, content, mode="create")
            except AlreadyExistsError:
                await obstore.put_async(self._store, key, content, use_multipart=False)

    def open_writer(self) -> PartWriter:
        """Collect the content in a temporary file first, since its digest names the object."""
        return FilePartWriter(
            TEMPORARY_FILES, tempfile.TemporaryFile, self._upload, close_temporary
        )

    async def _upload(self, file: IO[bytes], digest: Digest) -> None:
        """Send a file in one request, of which nothing remains if it fails."""
        size = file.tell()
        await put_file(self._store, self._key(digest), file, size)
        await asyncio.to_thread(close_temporary, file)

    async def read_parts(self, digest: Digest) -> AsyncIterator[bytes]:
        for key in (self._key(digest), self._trash_key(digest), self._key(digest)):
            with suppress(NotFoundError, FileNotFoundError):
                async for part in read_parts(self._store, key):
                    yield part
                return
        raise FileNotFoundError(digest)

    async def read_range(self, digest: Digest, start: int, end: int) -> AsyncIterator[bytes]:
        for key in (self._key(digest), self._trash_key(digest), self._key(digest)):
            with suppress(NotFoundError, FileNotFoundError):
                async for part in read_parts(self._store, key, (start, end)):
                    yield part
                return
        raise FileNotFoundError(digest)

    async def identity(self, digest: Digest) -> str | None:
        for key in (self._key(digest), self._trash_key(digest), self._key(digest)):
            with suppress(NotFoundError, FileNotFoundError):
                async with unreachable_after():
                    meta = await obstore.head_async(self._store, key)
                return f"{meta['e_tag']} {meta['size']} {meta['last_modified'].isoformat()}"
        return None

    async def get(self, digest: Digest) -> bytes | None:
        """Return the content or None.

        Reads the main key again after the trash, since a restore may happen in between.
        """
        for key in (self._key(digest), self._trash_key(digest), self._key(digest)):
            if (content := await read_object(self._store, key)) is not None:
                return content
        return None

    async def discard(self, digests: Collection[Digest]) -> None:
        """Move to the trash. Copies before deleting, so that one copy always exists."""
        pairs = [(self._key(digest), self._trash_key(digest)) for digest in digests]
        await self._copy(pairs)
        await self._delete([key for key, _ in pairs])

    async def restore(self, digests: Collection[Digest]) -> None:
        """Copy back from the trash.

        The trash keeps its copy, so that concurrent collections lose nothing.
        """
        await self._copy([(self._trash_key(digest), self._key(digest)) for digest in digests])

    async def delete(self, digests: Collection[Digest]) -> None:
        await self._delete([self._trash_key(digest) for digest in digests])

    async def list_trash(self) -> AsyncIterator[tuple[Digest, TimestampMs]]:
        async for digest, _, at in self._list(self._prefix + _TRASH_PREFIX):
            yield digest, at

    async def list_blobs(self) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
        async for blob in self._list(self._prefix):
            yield blob

    async def _copy(self, pairs: Sequence[tuple[str, str]]) -> None:
        for start in range(0, len(pairs), MAX_CONCURRENT):
            batch = pairs[start : start + MAX_CONCURRENT]
            await asyncio.gather(*(self._copy_object(*pair) for pair in batch))

    async def _copy_object(self, source: str, target: str) -> None:
        with suppress(NotFoundError, FileNotFoundError):
            async with unreachable_after():
                await obstore.copy_async(self._store, source, target)

    async def _delete(self, keys: Sequence[str]) -> None:
        """Delete objects; obstore sends at most 1,000 keys a request."""
        if keys:
            async with unreachable_after():
                await obstore.delete_async(self._store, keys)

    async def _list(self, prefix: str) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
        pages = obstore.list(self._store, prefix=prefix or None)
        while page := await next_page(pages):
            for meta in page:
                name = meta["path"].removeprefix(prefix)
                if DIGEST_PATTERN.fullmatch(name):
                    modified_at = int(meta["last_modified"].timestamp() * 1000)
                    yield Digest(f"sha256:{name}"), meta["size"], modified_at

    def _trash_key(self, digest: Digest) -> str:
        return self._prefix + _TRASH_PREFIX + digest.removeprefix("sha256:")

    def _key(self, digest: Digest) -> str:
        return self._prefix + digest.removeprefix("sha256:")
