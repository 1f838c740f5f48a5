"""S3 bucket as a store of large blobs and as a keyed object store."""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import IO, TYPE_CHECKING, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import S3Store

from carrel.adapters.s3_upload import put_file
from carrel.core.catalog.object_keys import parse_segments
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.identifiers import digest as digest_of
from carrel.core.outages import Unreachable
from carrel.ports.blobs import PART_BYTES, PartWriter
from carrel.ports.part_writers import TEMPORARY_FILES, FilePartWriter, close_temporary

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta
    from obstore.store import ClientConfig, RetryConfig, S3Config

_DIGEST_PATTERN: Final = re.compile(r"[0-9a-f]{64}")
_TRASH_PREFIX: Final = "trash/"
_MAX_CONCURRENT: Final = 16
"""Copies and requests in flight at a time."""
_DEFAULT_REGION: Final = "us-east-1"
"""Region sent to a custom endpoint if none is configured."""
_PAGE_SIZE: Final = 1000
_MAX_KEY_BYTES: Final = 1024
_DIGEST_ATTRIBUTE: Final = "carrel-sha256"
"""Object attribute holding the content's SHA-256, so that it need not be read."""
_MAX_CACHED_DIGESTS: Final = 500_000
_TRANSFER_TIMEOUT: Final = timedelta(minutes=5)
"""Timeout of a whole transfer; large files over slow lines need minutes."""
_CONNECT_TIMEOUT: Final = timedelta(seconds=5)
_RETRY: Final[RetryConfig] = {"max_retries": 3, "retry_timeout": timedelta(seconds=10)}
"""An unreachable bucket is reported within seconds."""
_ANSWER_SECONDS: Final = 10.0
"""Time for an answer, retries included, and between two parts of one."""
_MIN_BYTES_PER_SECOND: Final = 2**20
"""Slowest accepted rate of an upload."""
_PING_SECONDS: Final = 3.0
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
        async with _answer_in(_PING_SECONDS):
            await anext(obstore.list(self._store, prefix=self._prefix or None, chunk_size=1), None)

    async def put(self, digest: Digest, content: bytes) -> None:
        """Store the content. An existing object is overwritten to renew its age."""
        key = self._key(digest)
        async with _answer_in(_ANSWER_SECONDS + len(content) / _MIN_BYTES_PER_SECOND):
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
        seconds = _ANSWER_SECONDS + size / _MIN_BYTES_PER_SECOND
        await put_file(self._store, self._key(digest), file, size, seconds)
        await asyncio.to_thread(close_temporary, file)

    async def read_parts(self, digest: Digest) -> AsyncIterator[bytes]:
        for key in (self._key(digest), self._trash_key(digest), self._key(digest)):
            with suppress(NotFoundError, FileNotFoundError):
                async for part in _read_parts(self._store, key):
                    yield part
                return
        raise FileNotFoundError(digest)

    async def read_range(self, digest: Digest, start: int, end: int) -> AsyncIterator[bytes]:
        for key in (self._key(digest), self._trash_key(digest), self._key(digest)):
            with suppress(NotFoundError, FileNotFoundError):
                async for part in _read_parts(self._store, key, (start, end)):
                    yield part
                return
        raise FileNotFoundError(digest)

    async def identity(self, digest: Digest) -> str | None:
        for key in (self._key(digest), self._trash_key(digest), self._key(digest)):
            with suppress(NotFoundError, FileNotFoundError):
                async with _answer_in(_ANSWER_SECONDS):
                    meta = await obstore.head_async(self._store, key)
                return f"{meta['e_tag']} {meta['size']} {meta['last_modified'].isoformat()}"
        return None

    async def get(self, digest: Digest) -> bytes | None:
        """Return the content or None.

        Reads the main key again after the trash, since a restore may happen in between.
        """
        for key in (self._key(digest), self._trash_key(digest), self._key(digest)):
            if (content := await _read_object(self._store, key)) is not None:
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
        for start in range(0, len(pairs), _MAX_CONCURRENT):
            batch = pairs[start : start + _MAX_CONCURRENT]
            await asyncio.gather(*(self._copy_object(*pair) for pair in batch))

    async def _copy_object(self, source: str, target: str) -> None:
        with suppress(NotFoundError, FileNotFoundError):
            async with _answer_in(_ANSWER_SECONDS):
                await obstore.copy_async(self._store, source, target)

    async def _delete(self, keys: Sequence[str]) -> None:
        """Delete objects; obstore sends at most 1,000 keys a request."""
        if keys:
            async with _answer_in(_ANSWER_SECONDS):
                await obstore.delete_async(self._store, keys)

    async def _list(self, prefix: str) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
        pages = obstore.list(self._store, prefix=prefix or None)
        while page := await _next_page(pages):
            for meta in page:
                name = meta["path"].removeprefix(prefix)
                if _DIGEST_PATTERN.fullmatch(name):
                    modified_at = int(meta["last_modified"].timestamp() * 1000)
                    yield Digest(f"sha256:{name}"), meta["size"], modified_at

    def _trash_key(self, digest: Digest) -> str:
        return self._prefix + _TRASH_PREFIX + digest.removeprefix("sha256:")

    def _key(self, digest: Digest) -> str:
        return self._prefix + digest.removeprefix("sha256:")


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
        self._requests = asyncio.Semaphore(_MAX_CONCURRENT)

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
        return await _read_object(self._store, self._prefix + key)

    async def delete(self, keys: Collection[str]) -> None:
        full_keys = [self._prefix + key for key in keys if not self._unsupported_key_reason(key)]
        if full_keys:
            async with _answer_in(_ANSWER_SECONDS):
                await obstore.delete_async(self._store, full_keys)

    async def list(self, prefix: str) -> AsyncIterator[tuple[str, Digest | None]]:
        full_prefix = (self._prefix + prefix) or None
        pages = obstore.list(self._store, prefix=full_prefix, chunk_size=_PAGE_SIZE)
        while page := await _next_page(pages):
            digests = await asyncio.gather(*map(self._digest, page))
            for meta, digest in zip(page, digests, strict=True):
                yield meta["path"].removeprefix(self._prefix), digest

    async def _put(self, key: str, content: bytes) -> None:
        digest = digest_of(content)
        attributes = {
            "Content-Type": _content_type(content),
            _DIGEST_ATTRIBUTE: digest.removeprefix("sha256:"),
        }
        seconds = _ANSWER_SECONDS + len(content) / _MIN_BYTES_PER_SECOND
        async with self._requests, _answer_in(seconds):
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
                async with _answer_in(_ANSWER_SECONDS):
                    response = await obstore.get_async(self._store, key, options={"head": True})
            except (NotFoundError, FileNotFoundError):
                return None
        hex_digest = str(response.attributes.get(_DIGEST_ATTRIBUTE, ""))
        digest = Digest(f"sha256:{hex_digest}") if _DIGEST_PATTERN.fullmatch(hex_digest) else None
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


async def _next_page(pages: AsyncIterator[Sequence[ObjectMeta]]) -> Sequence[ObjectMeta]:
    async with _answer_in(_ANSWER_SECONDS):
        return await anext(pages, [])


async def _read_object(store: S3Store, key: str) -> bytes | None:
    """Return an object's content, or None if it does not exist."""
    try:
        return b"".join([part async for part in _read_parts(store, key)])
    except (NotFoundError, FileNotFoundError):
        return None


async def _read_parts(
    store: S3Store, key: str, byte_range: tuple[int, int] | None = None
) -> AsyncIterator[bytes]:
    """Yield an object's content in parts. Raises NotFoundError or FileNotFoundError."""
    options: GetOptions = {} if byte_range is None else {"range": byte_range}
    async with _answer_in(_ANSWER_SECONDS):
        response = await obstore.get_async(store, key, options=options)
    parts = aiter(response.stream(min_chunk_size=PART_BYTES))
    while True:
        async with _answer_in(_ANSWER_SECONDS):
            part = await anext(parts, None)
        if part is None:
            return
        yield bytes(part)


@asynccontextmanager
async def _answer_in(seconds: float) -> AsyncIterator[None]:
    """Raise Unreachable for failed requests and for those that take too long."""
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


def _content_type(content: bytes) -> str:
    try:
        content.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain; charset=utf-8"
