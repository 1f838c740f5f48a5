"""Machines of which one can only ask: take this file, run this line, give me that file.

What a program says goes into two files there, so that it comes back to the byte and its errors are
apart from the rest, whatever a provider makes of the two.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

from carrel.adapters.sandbox.remote.remote_run import ProviderUnreachable, Take
from carrel.adapters.sandbox.remote.scripts import RemotePaths
from carrel.adapters.sandbox.remote.tar_transfer import Owner

_BOX: Final = """\
case "$1" in
  unpack) tar -xpf "$0.parcel" --no-same-owner -C "${0%/*}" ;;
  *) bash "${0%/*}/$1" </dev/null >"$0.out" 2>"$0.err" ;;
esac
echo "ended $?"
"""
_ENDED: Final = re.compile(r"ended ([0-9]{1,3})\s*\Z")


class ShellTransport(Protocol):
    """What such a provider can do. Each raises Unreachable."""

    async def write(self, path: str, content: bytes) -> None:
        """Make a file, and the directories that it is in."""

    def read(self, path: str) -> AsyncIterator[bytes]:
        """The bytes of a file, as they come."""

    async def call(self, line: str) -> str:
        """Run a line of plain words, without quotes, and tell what it says."""


class ShellMachine:
    """Each program is run by a script of ours, which tells how it ended."""

    owner = Owner()

    def __init__(self, far: ShellTransport, place: RemotePaths) -> None:
        self.place = place
        self._far, self._box = far, f"{place.root}/box"
        self._is_there = False

    async def put(self, parcel: bytes) -> None:
        if not self._is_there:
            await self._far.write(self._box, _BOX.encode())
            self._is_there = True
        await self._far.write(f"{self._box}.parcel", parcel)
        if await self._called("unpack") != 0:
            raise ProviderUnreachable("the files could not be unpacked there")

    async def execute(self, words: Sequence[str], out: Take, err: Take) -> int:
        code = await self._called(words[-1].rpartition("/")[2])
        for name, take in (("out", out), ("err", err)):
            async for part in self._far.read(f"{self._box}.{name}"):
                take(part)
        return code

    async def _called(self, name: str) -> int:
        said = await self._far.call(f"bash {self._box} {name}")
        if ended := _ENDED.search(said):
            return int(ended[1])
        raise ProviderUnreachable("it was not told how the program ended")
