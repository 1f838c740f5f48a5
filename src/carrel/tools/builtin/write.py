"""Writing a whole file of a shared workspace."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.sandbox import workspace_files as handiwork
from carrel.core.sandbox.file_tools import file_path
from carrel.tools.tool import Asked, Sitting, Tool
from carrel.tools.workspace_tool import FilePath, Grip, Workspace, fitted, gate_of, gripped, noted


class Arguments(Asked, frozen=True):
    file_path: FilePath
    content: Annotated[str, Meta(description="The whole of what it is to hold.")]
    workspace: Workspace = ""


async def _checked(sitting: Sitting, asked: Arguments) -> Grip:
    grip = await gripped("write", sitting, asked, asked.workspace)
    file_path(asked.file_path)
    return grip


async def _run(sitting: Sitting, asked: Arguments) -> object:
    grip = await _checked(sitting, asked)
    path = file_path(asked.file_path)
    written = await handiwork.write(grip.bench, path, asked.content.encode())
    return noted(f"Wrote {path} ({len(written.content)} bytes)", written.redacted)


TOOL: Final = Tool(
    "write",
    "Writes a file of a workspace as a whole, over what was there; directories need not be made. "
    "To change a part of a file, edit is safer.",
    Arguments,
    _run,
    writes=True,
    destroys=True,
    gate=gate_of(_checked),
    fitted=fitted,
)
