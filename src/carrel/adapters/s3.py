"""Large bytes as objects of an S3 bucket, named by their digest."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Collection
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import AlreadyExistsError, NotFoundError
from obstore.store import S3Store

from carrel.core.names import Digest, Moment

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config

_NAME: Final = re.compile(r"[0-9a-f]{64}")
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
        try:
            found = await obstore.get_async(self._store, self._key(digest))
            return bytes(await found.bytes_async())
        except (NotFoundError, FileNotFoundError):
            return None

    async def delete(self, digests: Collection[Digest]) -> None:
        """In requests of up to a thousand names each."""
        if digests:
            await obstore.delete_async(self._store, [self._key(digest) for digest in digests])

    async def each(self) -> AsyncIterator[tuple[Digest, int, Moment]]:
        async for page in obstore.list(self._store, prefix=self._prefix or None):
            for found in page:
                name = found["path"].removeprefix(self._prefix)
                if _NAME.fullmatch(name):
                    at = int(found["last_modified"].timestamp() * 1000)
                    yield Digest(f"sha256:{name}"), found["size"], at

    def _key(self, digest: Digest) -> str:
        return self._prefix + digest.removeprefix("sha256:")
