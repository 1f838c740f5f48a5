"""Searching with ripgrep, in files that stand in a directory for the time of one search.

They are called by number: nothing of a workspace's names reaches a command line or a disk.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path as File
from typing import Final

from carrel.core.search.grep_pattern import CompiledPattern

_MANNER: Final = (
    "--no-config",
    "--color=never",
    "--no-heading",
    "--no-ignore",
    "--hidden",
    "--text",
    "--encoding=none",
    "--null",
    "--with-filename",
    "--line-number",
    "--max-columns=1",
    "--no-messages",
)
"""Every file is searched as the bytes that it is, and of the lines only numbers are wanted."""


class Ripgrep:
    def __init__(self, program: str) -> None:
        self._program = program

    async def lines(
        self, pattern: CompiledPattern, contents: Sequence[bytes], most: int
    ) -> Sequence[Sequence[int]] | None:
        directory = await asyncio.to_thread(tempfile.mkdtemp, prefix="carrel-grep-")
        try:
            await asyncio.to_thread(_lay_out, File(directory), contents)
            said = await self._said(pattern, File(directory), most)
        finally:
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
        if said is None:
            return None
        return await asyncio.to_thread(_numbers, said, len(contents))

    async def _said(self, pattern: CompiledPattern, directory: File, most: int) -> bytes | None:
        process = await asyncio.create_subprocess_exec(
            self._program,
            *_MANNER,
            f"--max-count={most}",
            f"--regexp={pattern.ripgrep}",
            "./",
            cwd=directory,
            env={},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return None if process.returncode not in {0, 1} else said


def found() -> Ripgrep | None:
    """The machine's own, or the one that is installed beside us."""
    beside = str(File(sys.executable).parent)
    program = shutil.which("rg") or shutil.which("rg", path=beside)
    return Ripgrep(program) if program else None


def _lay_out(directory: File, contents: Sequence[bytes]) -> None:
    for number, content in enumerate(contents):
        (directory / str(number)).write_bytes(content)


def _numbers(said: bytes, files: int) -> Sequence[Sequence[int]]:
    numbers: list[list[int]] = [[] for _ in range(files)]
    for line in said.split(b"\n"):
        name, _, rest = line.partition(b"\0")
        if rest:
            numbers[int(name.removeprefix(b"./"))].append(int(rest.partition(b":")[0]))
    return numbers
