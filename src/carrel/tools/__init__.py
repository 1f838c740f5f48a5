"""What an agent can do: one file a tool."""

from __future__ import annotations

from typing import Final

from carrel.tools import what_do_i_know
from carrel.tools.tool import Tool

ALL: Final[tuple[Tool, ...]] = (what_do_i_know.TOOL,)
"""In order of name."""
