"""Searching through much text outside of this process, where the machine has something for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from carrel.core.search.grep_pattern import CompiledPattern


class GrepEngine(Protocol):
    async def lines(
        self, pattern: CompiledPattern, contents: Sequence[bytes], most: int
    ) -> Sequence[Sequence[int]] | None:
        """The numbers of the lines of each content that fit, in order, at most so many of each.

        They are those that ``core.searching.found_lines`` finds. None where it cannot tell.
        """
