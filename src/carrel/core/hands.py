"""What an agent can lay its hands on: which workspaces, through which sandboxes, with which tools.

A workspace without a sandbox is read-only: no setting of anything else lets a command reach it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import UNSET, Struct

from carrel.core.config import Config
from carrel.core.errors import Malformed

READING: Final = ("read", "glob")
WRITING: Final = ("write", "edit")
SEARCHING: Final = ("grep",)
RUNNING: Final = ("bash",)


class PermissionMode(StrEnum):
    EDIT = "edit"
    ASK = "ask"
    BYPASS = "bypass"


class Sandbox(Struct, frozen=True):
    """A sandbox as a call finds it."""

    id: str
    revision: int
    """Of its record."""
    mode: PermissionMode
    config: Mapping[str, Any]
    """As it is stored, its secrets still sealed."""

    @property
    def is_persistent(self) -> bool:
        return self.config.get("persistent") is True


class Reach(Struct, frozen=True):
    """One workspace that an agent can reach."""

    name: str
    """What the agent calls it."""
    workspace: str
    namespace: str
    sandbox: Sandbox | None
    """None: read-only."""
    description: str = ""
    harness: bool = True
    """Whether the prompt tells how to keep MEMORY.md and TASKS.md there."""


class Hands(Struct, frozen=True):
    sandbox: Sandbox | None = None
    workspaces: tuple[Reach, ...] = ()
    """In the agent's own order: the first is meant where none is named."""

    def chosen(self, name: str | None) -> Reach:
        """The workspace that a call means, never another in its place. Raises Malformed."""
        if not name:
            return self.workspaces[0]
        for reach in self.workspaces:
            if reach.name == name:
                return reach
        raise Malformed(f"unknown workspace {name}")


EMPTY: Final = Hands()


def surface(config: Config) -> frozenset[str]:
    """The names of the tools that an agent has hands for."""
    if not config.workspaces:
        return frozenset(RUNNING if config.sandbox else ())
    writable = any(
        config.sandbox if attached.sandbox is UNSET else attached.sandbox
        for attached in config.workspaces
    )
    return frozenset((*READING, *WRITING, *SEARCHING, *RUNNING) if writable else READING)


def asks(tool: str, mode: PermissionMode) -> bool:
    """Whether a person is asked before this tool does its work in a sandbox of this mode."""
    if tool in RUNNING:
        return mode is not PermissionMode.BYPASS
    return tool in WRITING and mode is PermissionMode.ASK


def namespace(account: str, workspace: str) -> str:
    """What a workspace is called outside, whoever looks at it."""
    named = f"filesystem-namespace\0{account}:{workspace}".encode()
    return "fs-" + hashlib.sha256(named).hexdigest()[:40]
