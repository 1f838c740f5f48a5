"""RemoteMachine for providers that only write files, run a line and read files.

Output goes to two files on the machine and is then read. So it is byte-exact, and stdout and stderr
stay separate, whatever the provider does with them.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

from carrel.adapters.sandbox.remote.remote_run import OutputSink, ProviderUnreachable
from carrel.adapters.sandbox.remote.scripts import RemotePaths
from carrel.adapters.sandbox.remote.tar_transfer import Owner

_RUNNER_SCRIPT: Final = """\
case "$1" in
  unpack) tar -xpf "$0.parcel" --no-same-owner -C "${0%/*}" ;;
  *) bash "${0%/*}/$1" </dev/null >"$0.out" 2>"$0.err" ;;
esac
echo "ended $?"
"""
_END_LINE: Final = re.compile(r"ended ([0-9]{1,3})\s*\Z")


class ShellTransport(Protocol):
    """Operations of such a provider. Each raises ProviderUnreachable."""

    async def write(self, path: str, content: bytes) -> None:
        """Create a file and its parent directories."""

    def read(self, path: str) -> AsyncIterator[bytes]:
        """Stream the bytes of a file."""

    async def call(self, line: str) -> str:
        """Run a line of unquoted words and return its output."""


class ShellMachine:
    """Runs programs through a script that reports the exit code."""

    owner = Owner()

    def __init__(self, transport: ShellTransport, paths: RemotePaths) -> None:
        self.paths = paths
        self._transport, self._runner = transport, f"{paths.root}/box"
        self._is_installed = False

    async def put(self, archive: bytes) -> None:
        if not self._is_installed:
            await self._transport.write(self._runner, _RUNNER_SCRIPT.encode())
            self._is_installed = True
        await self._transport.write(f"{self._runner}.parcel", archive)
        if await self._call_runner("unpack") != 0:
            raise ProviderUnreachable("the files could not be unpacked")

    async def execute(self, arguments: Sequence[str], out: OutputSink, err: OutputSink) -> int:
        code = await self._call_runner(arguments[-1].rpartition("/")[2])
        for name, sink in (("out", out), ("err", err)):
            async for part in self._transport.read(f"{self._runner}.{name}"):
                sink(part)
        return code

    async def _call_runner(self, name: str) -> int:
        output = await self._transport.call(f"bash {self._runner} {name}")
        if match := _END_LINE.search(output):
            return int(match[1])
        raise ProviderUnreachable("the provider reported no exit code")
