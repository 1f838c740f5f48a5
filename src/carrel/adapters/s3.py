"""Large bytes as objects of an S3 bucket, named by their digest."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import AlreadyExistsError, NotFoundError
from obstore.store import S3Store

from carrel.core.names import Digest, Moment

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config

_NAME: Final = re.compile(r"[0-9a-f]{64}")
_TRASH: Final = "trash/"
_TOGETHER: Final = 16
"""Copies that are under way at once."""
_REGION: Final = "us-east-1"
"""What servers other than Amazon's take when none is named."""
_PATIENCE: Final = timedelta(minutes=5)
"""A whole transfer: a large file over a slow line is no failure."""


class S3Objects:
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
    ) -> S3Objects:
        """Connect; what is None is taken from where Amazon's own tools find it.

        With an endpoint the bucket is named in the path, as MinIO, SeaweedFS and the like expect.
        """
        config: S3Config = {"virtual_hosted_style_request": endpoint is None}
        client: ClientConfig = {"timeout": _PATIENCE}
        if endpoint is not None:
            config |= {"endpoint": endpoint, "region": region or _REGION}
            client |= {"allow_http": endpoint.startswith("http://")}
        elif region is not None:
            config |= {"region": region}
        if access_key is not None and secret_key is not None:
            config |= {"access_key_id": access_key, "secret_access_key": secret_key}
        return cls(S3Store(bucket, config=config, client_options=client), prefix)

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

    async def trash(self) -> AsyncIterator[tuple[Digest, Moment]]:
        async for digest, _, at in self._listed(self._prefix + _TRASH):
            yield digest, at

    async def each(self) -> AsyncIterator[tuple[Digest, int, Moment]]:
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

    async def _listed(self, prefix: str) -> AsyncIterator[tuple[Digest, int, Moment]]:
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
