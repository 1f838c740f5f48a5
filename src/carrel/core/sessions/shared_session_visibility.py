"""What a shared session may see: one rule for every use of files.

Prompts, tools, commands, the file map, run snapshots, MCP resources and search ask `is_visible`.
"""

from __future__ import annotations

from typing import Final

from carrel.core.errors import Forbidden
from carrel.core.identifiers import Path
from carrel.core.runs import Audience

POLICY_PATHS: Final = tuple(map(Path, ("PLATFORM.md", "GUARDRAILS.md", "CAPABILITIES.md")))
"""Policy files of an agent."""
SHARED_PATHS: Final = frozenset(
    {*POLICY_PATHS, *map(Path, ("IDENTITY.md", "SOUL.md", "AGENTS.md"))}
)
"""Files of an agent, its template and the defaults that a shared session may see."""
_PRIVATE_NAMES: Final = frozenset(
    {"user.md", "memory.md", "dreams.md", "memory-index.json", "notes", "memory"}
)
"""Names at the root of a workspace that are private, with everything below them."""
_OUTPUT_DIRECTORIES: Final = {
    Audience.MAIN: Path(".carrel/output"),
    Audience.SHARED: Path(".carrel/shared-output"),
}
"""Directories of a shared workspace that hold the long output of commands."""


def is_private_path(path: Path) -> bool:
    """Whether a path is private to an agent by its name, in any letter case and layer."""
    return path.text.partition("/")[0].casefold() in _PRIVATE_NAMES


def output_directory(audience: Audience) -> Path:
    """Directory of a shared workspace for the output of a session of this audience.

    A command of a main session reads private files, so its output is private too.
    """
    return _OUTPUT_DIRECTORIES[audience]


def _is_main_output(path: Path) -> bool:
    directory = output_directory(Audience.MAIN).text
    return f"{path.text}/".casefold().startswith(f"{directory}/")


def is_visible(path: Path, audience: Audience, *, is_shared_workspace: bool = False) -> bool:
    """Whether a session of this audience may see a file, or write one at this path.

    Files of an agent have names with a meaning, so only those of `SHARED_PATHS` are visible. Files
    of a shared workspace (`ws_…`) have any names; all are visible but those whose first segment
    is, in any letter case, the name of private content, and the saved output of main sessions.
    """
    if audience is Audience.MAIN:
        return True
    if is_shared_workspace:
        return not is_private_path(path) and not _is_main_output(path)
    return path in SHARED_PATHS


def require_visible(path: Path, audience: Audience, *, is_shared_workspace: bool = False) -> None:
    """Raise Forbidden for a path that is not visible, whether a file exists or not."""
    if not is_visible(path, audience, is_shared_workspace=is_shared_workspace):
        raise Forbidden(unavailable_message(path))


def unavailable_message(path: Path) -> str:
    return f"{path} is not available in a shared session"
