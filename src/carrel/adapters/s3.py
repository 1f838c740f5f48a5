"""Objects of an S3 bucket: large bytes by their digest, and bytes by key for others to read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import S3Store

from carrel.core.catalog.object_keys import segments
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.identifiers import digest as digest_of

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, S3Config

_NAME: Final = re.compile(r"[0-9a-f]{64}")
_TRASH: Final = "trash/"
_TOGETHER: Final = 16
"""Copies that are under way at once."""
_REGION: Final = "us-east-1"
"""What servers other than Amazon's take when none is named."""
_PAGE: Final = 1000
_LONGEST_KEY: Final = 1024
_DIGEST: Final = "carrel-sha256"
"""The attribute of an object by which it is known again without reading it."""
_MOST_KNOWN: Final = 500_000
_PATIENCE: Final = timedelta(minutes=5)
"""A whole transfer: a large file over a slow line is no failure."""


def connected(
    bucket: str,
    endpoint: str | None,
    region: str | None,
    access_key: str | None,
    secret_key: str | None,
) -> S3Store:
    config: S3Config = {"virtual_hosted_style_request": endpoint is None}
    client: ClientConfig = {"timeout": _PATIENCE}
    if endpoint is not None:
        config |= {"endpoint": endpoint, "region": region or _REGION}
        client |= {"allow_http": endpoint.startswith("http://")}
    elif region is not None:
        config |= {"region": region}
    if access_key is not None and secret_key is not None:
        config |= {"access_key_id": access_key, "secret_access_key": secret_key}
    return S3Store(bucket, config=config, client_options=client)


class S3BlobStore:
    """Works on any store that knows If-None-Match: the bytes under a name are put there once."""

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
        """Connect; what is None is taken from where Amazon's own tools find it.

        With an endpoint the bucket is named in the path, as MinIO, SeaweedFS and the like expect.
        """
        return cls(connected(bucket, endpoint, region, access_key, secret_key), prefix)

    async def put(self, digest: Digest, content: bytes) -> None:
        """Where they are already, the same bytes are put over them, so that their age is new."""
        key = self._key(digest)
        try:
            await obstore.put_async(self._store, key, content, mode="create")
        except AlreadyExistsError:
            await obstore.put_async(self._store, key, content, use_multipart=False)

    async def get(self, digest: Digest) -> bytes | None:
        """Looks here twice: it may come back from the trash while that is being looked at."""
        for key in (self._key(digest), self._trashed(digest), self._key(digest)):
            with suppress(NotFoundError, FileNotFoundError):
                found = await obstore.get_async(self._store, key)
                return bytes(await found.bytes_async())
        return None

    async def discard(self, digests: Collection[Digest]) -> None:
        """Copied before it is deleted, so that at every moment it is in one place at least."""
        pairs = [(self._key(digest), self._trashed(digest)) for digest in digests]
        await self._copy(pairs)
        await self._delete([key for key, _ in pairs])

    async def restore(self, digests: Collection[Digest]) -> None:
        """The trash keeps its copy: two collections at once cannot lose it between them."""
        await self._copy([(self._trashed(digest), self._key(digest)) for digest in digests])

    async def delete(self, digests: Collection[Digest]) -> None:
        await self._delete([self._trashed(digest) for digest in digests])

    async def trash(self) -> AsyncIterator[tuple[Digest, TimestampMs]]:
        async for digest, _, at in self._listed(self._prefix + _TRASH):
            yield digest, at

    async def each(self) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
        async for found in self._listed(self._prefix):
            yield found

    async def _copy(self, pairs: Sequence[tuple[str, str]]) -> None:
        for start in range(0, len(pairs), _TOGETHER):
            some = pairs[start : start + _TOGETHER]
            await asyncio.gather(*(self._copy_one(*pair) for pair in some))

    async def _copy_one(self, source: str, target: str) -> None:
        with suppress(NotFoundError, FileNotFoundError):
            await obstore.copy_async(self._store, source, target)

    async def _delete(self, keys: Sequence[str]) -> None:
        """In requests of up to a thousand names each."""
        if keys:
            await obstore.delete_async(self._store, keys)

    async def _listed(self, prefix: str) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
        async for page in obstore.list(self._store, prefix=prefix or None):
            for found in page:
                name = found["path"].removeprefix(prefix)
                if _NAME.fullmatch(name):
                    at = int(found["last_modified"].timestamp() * 1000)
                    yield Digest(f"sha256:{name}"), found["size"], at

    def _trashed(self, digest: Digest) -> str:
        return self._prefix + _TRASH + digest.removeprefix("sha256:")

    def _key(self, digest: Digest) -> str:
        return self._prefix + digest.removeprefix("sha256:")


class S3ObjectStore:
    """Each object carries its digest as an attribute, since an ETag may be anything.

    A listing does not show attributes, so they are asked for one by one; but only of objects that
    are not as they were when last seen.
    """

    forbids_nested_keys = False

    def __init__(self, store: S3Store, prefix: str = "") -> None:
        self._store = store
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._known: dict[str, tuple[str, Digest | None]] = {}
        """The digest of each object, and the ETag that it had then."""
        self._hands = asyncio.Semaphore(_TOGETHER)

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
        """Connect, as S3Objects does."""
        return cls(connected(bucket, endpoint, region, access_key, secret_key), prefix)

    async def put(self, contents: Mapping[str, bytes]) -> Mapping[str, str]:
        reasons = {key: self._unfit(key) for key in contents}
        fit = [key for key in contents if reasons[key] is None]
        puts = [self._put(key, contents[key]) for key in fit]
        for done in await asyncio.gather(*puts, return_exceptions=True):
            if isinstance(done, BaseException):
                with _explained():
                    raise done
        return {key: reason for key, reason in reasons.items() if reason}

    async def get(self, key: str) -> bytes | None:
        if self._unfit(key):
            return None
        with _explained(), suppress(NotFoundError, FileNotFoundError):
            found = await obstore.get_async(self._store, self._prefix + key)
            return bytes(await found.bytes_async())
        return None

    async def delete(self, keys: Collection[str]) -> None:
        fit = [self._prefix + key for key in keys if not self._unfit(key)]
        if fit:
            with _explained():
                await obstore.delete_async(self._store, fit)

    async def list(self, prefix: str) -> AsyncIterator[tuple[str, Digest | None]]:
        within = (self._prefix + prefix) or None
        pages = obstore.list(self._store, prefix=within, chunk_size=_PAGE)
        while page := await self._next(pages):
            with _explained():
                digests = await asyncio.gather(*map(self._digest, page))
            for found, known in zip(page, digests, strict=True):
                yield found["path"].removeprefix(self._prefix), known

    async def _next(self, pages: AsyncIterator[Sequence[ObjectMeta]]) -> Sequence[ObjectMeta]:
        with _explained():
            return await anext(pages, [])

    async def _put(self, key: str, content: bytes) -> None:
        name = digest_of(content)
        attributes = {"Content-Type": _type(content), _DIGEST: name.removeprefix("sha256:")}
        async with self._hands:
            put = await obstore.put_async(
                self._store,
                self._prefix + key,
                content,
                attributes=attributes,
                use_multipart=False,
            )
        self._remember(self._prefix + key, put["e_tag"] or "", name)

    async def _digest(self, found: ObjectMeta) -> Digest | None:
        key, etag = found["path"], found["e_tag"] or ""
        known = self._known.get(key)
        if known is not None and etag and known[0] == etag:
            return known[1]
        async with self._hands:
            try:
                seen = await obstore.get_async(self._store, key, options={"head": True})
            except (NotFoundError, FileNotFoundError):
                return None
        name = str(seen.attributes.get(_DIGEST, ""))
        digest = Digest(f"sha256:{name}") if _NAME.fullmatch(name) else None
        self._remember(key, seen.meta["e_tag"] or "", digest)
        return digest

    def _remember(self, key: str, etag: str, digest: Digest | None) -> None:
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[key] = (etag, digest)

    def _unfit(self, key: str) -> str | None:
        try:
            segments(key)
        except ValidationError as problem:
            return str(problem)
        if len((self._prefix + key).encode()) > _LONGEST_KEY:
            return f"a key has at most {_LONGEST_KEY} bytes"
        return None


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except BaseError as problem:
        raise OSError(f"the bucket did not do it: {problem}") from problem


def _type(content: bytes) -> str:
    try:
        content.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    return "text/plain; charset=utf-8"
