"""What an agent can lay its hands on: which workspaces, through which sandboxes, with which tools.

A workspace without a sandbox is read-only: no setting of anything else lets a command reach it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import UNSET, Struct

from carrel.core.agents.config import AgentConfig
from carrel.core.errors import Forbidden, NotFound, ValidationError

READING: Final = ("read", "glob")
WRITING: Final = ("write", "edit")
SEARCHING: Final = ("grep",)
RUNNING: Final = ("bash",)
FOLLOWING: Final = ("async_status",)
TOOLS: Final = frozenset((*READING, *WRITING, *SEARCHING, *RUNNING, *FOLLOWING))
"""All that an agent has hands for, if any."""

READ_ONLY: Final = "workspace is read-only"
NO_SANDBOX: Final = "no sandbox available for this command"


class PermissionMode(StrEnum):
    EDIT = "edit"
    ASK = "ask"
    BYPASS = "bypass"


class SandboxSpec(Struct, frozen=True):
    """A sandbox as a call finds it."""

    id: str
    revision: int
    """Of its record."""
    mode: PermissionMode
    config: Mapping[str, Any]
    """As it is stored, its secrets still sealed."""
    tenant: str = ""

    @property
    def is_persistent(self) -> bool:
        return self.config.get("persistent") is True


class AttachedWorkspace(Struct, frozen=True):
    """One workspace that an agent can reach."""

    name: str
    """What the agent calls it."""
    workspace: str
    namespace: str
    sandbox: SandboxSpec | None
    """None: read-only."""
    description: str = ""
    harness: bool = True
    """Whether the prompt tells how to keep MEMORY.md and TASKS.md there."""


class ToolAccess(Struct, frozen=True):
    sandbox: SandboxSpec | None = None
    workspaces: tuple[AttachedWorkspace, ...] = ()
    """In the agent's own order: the first is meant where none is named."""

    def find_workspace(self, name: str | None) -> AttachedWorkspace:
        """The workspace that a call means, never another in its place. Raises Malformed."""
        if not name and self.workspaces:
            return self.workspaces[0]
        for reach in self.workspaces:
            if reach.name == name:
                return reach
        raise ValidationError(f"unknown workspace {name}" if name else "there is no workspace")

    @property
    def has_persistent_sandbox(self) -> bool:
        """Whether some command can outlive the call that started it."""
        return any(reach.sandbox and reach.sandbox.is_persistent for reach in self.workspaces)


EMPTY: Final = ToolAccess()


def available_tool_names(config: AgentConfig, hands: ToolAccess | None = None) -> frozenset[str]:
    """The names of the tools that an agent has hands for.

    Its config alone tells all but whether there are commands to follow: where what it refers to
    cannot be found, ``hands`` is None and there are none.
    """
    if not config.workspaces:
        return frozenset(RUNNING if config.sandbox else ())
    writable = any(
        config.sandbox if attached.sandbox is UNSET else attached.sandbox
        for attached in config.workspaces
    )
    if not writable:
        return frozenset(READING)
    following = FOLLOWING if hands is not None and hands.has_persistent_sandbox else ()
    return frozenset((*READING, *WRITING, *SEARCHING, *RUNNING, *following))


def requires_approval(tool: str, mode: PermissionMode) -> bool:
    """Whether a person is asked before this tool does its work in a sandbox of this mode."""
    if tool in RUNNING:
        return mode is not PermissionMode.BYPASS
    return tool in WRITING and mode is PermissionMode.ASK


class CallTarget(Struct, frozen=True):
    """Where one call works, and whether somebody is asked first."""

    asks: bool
    reach: AttachedWorkspace | None
    """None: a command in no workspace."""
    sandbox: SandboxSpec | None
    """None: nothing is started and nothing is written."""


def resolve_call_target(tool: str, hands: ToolAccess, workspace: str | None = None) -> CallTarget:
    """What a call of a tool means, its ``workspace`` as the model said it.

    Raises Malformed for a workspace that it does not know, Forbidden where the one that it means is
    read-only, Missing where there is nothing to run a command in.
    """
    if tool in RUNNING and not hands.workspaces and not workspace:
        if hands.sandbox is None:
            raise NotFound(NO_SANDBOX)
        return CallTarget(requires_approval(tool, hands.sandbox.mode), None, hands.sandbox)
    reach = hands.find_workspace(workspace)
    if reach.sandbox is not None:
        return CallTarget(requires_approval(tool, reach.sandbox.mode), reach, reach.sandbox)
    if tool not in READING:
        raise Forbidden(READ_ONLY)
    return CallTarget(False, reach, None)


_WORKSPACE: Final = "Which workspace, by its name. Left out, it is {}."
_BACKGROUND: Final = (
    "Let it go on and answer at once with an id for async_status. Only in a workspace whose sandbox"
    " is persistent."
)


def with_workspace(schema: Mapping[str, Any], hands: ToolAccess) -> Mapping[str, Any]:
    """A tool's schema with a ``workspace`` to choose, where there are two or more, else without."""
    names = [reach.name for reach in hands.workspaces]
    if len(names) < 2:
        return _without(schema, "workspace")
    about = _WORKSPACE.format(names[0])
    return _with(schema, "workspace", {"type": "string", "enum": names, "description": about})


def with_background(schema: Mapping[str, Any], hands: ToolAccess) -> Mapping[str, Any]:
    """The same with a ``background``, where a command can go on, else without."""
    if not hands.has_persistent_sandbox:
        return _without(schema, "background")
    return _with(schema, "background", {"type": "boolean", "description": _BACKGROUND})


def _with(schema: Mapping[str, Any], name: str, said: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**schema, "properties": {**schema["properties"], name: said}}


def _without(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    kept = {each: said for each, said in schema["properties"].items() if each != name}
    required = [each for each in schema.get("required", ()) if each != name]
    return {**schema, "properties": kept, "required": required}


def reservation(namespace: str, sandbox: str) -> str:
    """What the instance is known by that a persistent sandbox keeps for a workspace."""
    return f"{namespace}-{sandbox}"


def namespace(account: str, workspace: str) -> str:
    """What a workspace is called outside, whoever looks at it."""
    named = f"filesystem-namespace\0{account}:{workspace}".encode()
    return "fs-" + hashlib.sha256(named).hexdigest()[:40]
