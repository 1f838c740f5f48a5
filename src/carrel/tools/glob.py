"""Finding files of a shared workspace by their names."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions import handiwork
from carrel.core.errors import Malformed
from carrel.core.filetools import matcher, relative, truncated
from carrel.tools.hand import Grip, Workspace, fitted, gate_of, gripped
from carrel.tools.tool import Asked, Sitting, Tool


class Arguments(Asked, frozen=True):
    pattern: Annotated[
        str,
        Meta(description="* and ? stay within a segment, ** is any number of segments: **/*.py"),
    ]
    path: Annotated[str, Meta(description="The directory to look in; else the whole.")] = ""
    workspace: Workspace = ""


async def _checked(sitting: Sitting, asked: Arguments) -> Grip:
    grip = await gripped("glob", sitting, asked, asked.workspace)
    if not asked.pattern.strip():
        raise Malformed("pattern is required")
    relative(asked.path)
    matcher(asked.pattern.strip())
    return grip


async def _run(sitting: Sitting, asked: Arguments) -> object:
    grip = await _checked(sitting, asked)
    found = await handiwork.find(grip.bench, asked.pattern.strip(), relative(asked.path))
    if not found:
        return "No files found"
    return truncated("".join(f"{name}\n" for name in found).encode(), grip.limit)


TOOL: Final = Tool(
    "glob",
    "Lists the files of a workspace whose paths fit a pattern, those changed last first.",
    Arguments,
    _run,
    gate=gate_of(_checked),
    fitted=fitted,
)
