"""A command in a workspace of many files, beside the bare isolation that it needs anyway."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path as File
from time import perf_counter

from bench.table import Book
from carrel.adapters.bubblewrap import LocalSandbox
from carrel.adapters.bubblewrap.trial import Wishes, program_of
from carrel.core.names import Digest, Path, digest
from carrel.core.tree import Blob
from carrel.ports.sandboxes import Form, Order, Placed

FILES, TIMES, THOUGHT = 200, 12, 0.15
OVER = f"`true` in {FILES} files, over bare bubblewrap"
_WALLS = (
    *("--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr"),
    *("--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"),
    *("--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
)


async def measure(folder: File, book: Book) -> None:
    """Time and again both, one after the other; an agent thinks for a moment between calls."""
    contents = [f"file {number}\n".encode() * 100 for number in range(FILES)]
    bytes_of = {digest(content): content for content in contents}
    files = {
        Path(f"room-{n % 20}/file-{n}.md"): Placed(Form.FILE, Blob(digest(content), len(content)))
        for n, content in enumerate(contents)
    }

    async def fetch(blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        return {blob.digest: bytes_of[blob.digest] for blob in blobs}

    sandbox = LocalSandbox(folder / "sandboxes")
    try:
        assert (await sandbox.ready()).tier == "bubblewrap"
        for number in range(TIMES + 1):
            await asyncio.sleep(THOUGHT)
            began = perf_counter()
            async with sandbox.run(Order(f"call-{number}", "true", files), fetch) as ran:
                assert ran.exit_code == 0
            took = perf_counter() - began
            bare = await asyncio.to_thread(_bare)
            if number:  # in the first the bytes come to the disk
                book.note(OVER, took - bare)
    finally:
        await sandbox.close()


def _bare() -> float:
    began = perf_counter()
    subprocess.run([program_of(Wishes()), *_WALLS, "bash", "-c", "true"], check=True)
    return perf_counter() - began
