"""Snapshots of sandboxes as versioned files: the client of RemoteSnapshot."""

from __future__ import annotations

import io
from typing import Any

from carrel_client.drivers import await_steps, steps_of
from carrel_client.files import Files
from carrel_client.runtimes.path_segments import to_segment


class CarrelSnapshots:
    """Stores the archives of sandboxes in a workspace; an earlier one stays in its history.

    Bind it to the key of a RemoteSnapshotSpec: ``Dependencies.with_values({"carrel": snapshots})``
    and ``RemoteSnapshotSpec(client_dependency_key="carrel")``. The client may await or block.
    """

    def __init__(self, files: Files[Any], *, prefix: str = "snapshots") -> None:
        self._files, self._driver, self._prefix = files, files._driver, prefix.strip("/")

    async def upload(self, snapshot_id: str, data: Any) -> None:
        """Store an archive, read from its position; it is not held in memory."""
        path = self._path(snapshot_id)
        upload = steps_of(self._files.upload, path, data, content_type="application/x-tar")
        await await_steps(self._driver, upload)

    async def download(self, snapshot_id: str) -> io.IOBase:
        """The stored archive. Raises NotFound."""
        content = steps_of(self._files.read_bytes, self._path(snapshot_id))
        return io.BytesIO(await await_steps(self._driver, content))

    async def exists(self, snapshot_id: str) -> bool:
        entry = steps_of(self._files.stat, self._path(snapshot_id))
        return await await_steps(self._driver, entry) is not None

    def _path(self, snapshot_id: str) -> str:
        name = to_segment(snapshot_id, suffix=".tar")
        return f"{self._prefix}/{name}" if self._prefix else name
