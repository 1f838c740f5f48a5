"""Texts of file versions, for a caller whose file has changed."""

from __future__ import annotations

from msgspec import Struct

from carrel.actions.files import files
from carrel.actions.sandbox.workspace_files import WorkspaceFiles
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path


class VersionText(Struct, frozen=True):
    """Version of a file and its text."""

    version: int
    """0: the file did not exist."""
    text: str | None
    """None if there is no text; `note` says why."""
    note: str = ""

    def __str__(self) -> str:
        name = f"version {self.version}" if self.version else "no file"
        heading = f"{name} ({self.note})" if self.note else name
        return heading if self.text is None else f"{heading}\n{self.text}"


async def load_version_text(
    workspace: WorkspaceFiles, path: Path, version: int, max_bytes: int
) -> VersionText:
    """Load the text of a version, at most `max_bytes` of it."""
    if not version:
        return VersionText(0, None)
    try:
        _, content = await files.read_version(workspace.ports, (workspace.scope,), path, version)
    except NotFound:
        return VersionText(version, None, "no longer stored")
    text = content[:max_bytes].decode(errors="ignore" if len(content) > max_bytes else "replace")
    if "\0" in text or "\ufffd" in text:
        return VersionText(version, None, f"binary, {len(content)} bytes")
    is_cut = len(content) > max_bytes
    return VersionText(version, text, f"the first {max_bytes} of {len(content)} bytes" * is_cut)
