"""Directory of a sandbox's working directory in which commands find the agent's skills.

It is reserved: a workspace's own files there are not given to commands, and what a command changes
in it is never stored.
"""

from __future__ import annotations

from typing import Final

from carrel.core.identifiers import Path

SANDBOX_DIRECTORY: Final = Path(".carrel/skills")
VARIABLE: Final = "CARREL_SKILLS"
"""Environment variable with the absolute path of the directory."""
EXPORT_COMMAND: Final = f'export {VARIABLE}="$PWD/{SANDBOX_DIRECTORY}"'
"""Sets the variable in a shell that starts in the working directory."""


_PARENTS: Final = frozenset(SANDBOX_DIRECTORY.parents)


def is_in_sandbox_directory(path: Path) -> bool:
    return path == SANDBOX_DIRECTORY or path.text.startswith(f"{SANDBOX_DIRECTORY}/")


def is_reserved_for_skills(path: Path) -> bool:
    """Whether a file or link is in the directory, or in the place of a parent of it.

    A link there would give commands other files than the skills.
    """
    return path in _PARENTS or is_in_sandbox_directory(path)


READ_ONLY_NOTE: Final = f"[warning: {SANDBOX_DIRECTORY} is read-only; changes in it are not saved]"
