"""Workspaces, sandboxes and tools that an agent can use.

A workspace without a sandbox is read-only: no other setting lets a command reach it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import UNSET, Struct

from carrel.core.agents.config import AgentConfig
from carrel.core.errors import Forbidden, NotFound, ValidationError
from carrel.core.runs import Audience

READ_TOOLS: Final = ("read", "ls", "glob")
WRITE_TOOLS: Final = ("write", "edit")
SEARCH_TOOLS: Final = ("grep",)
COMMAND_TOOLS: Final = ("bash",)
JOB_TOOLS: Final = ("async_status",)
WORKSPACE_TOOL_NAMES: Final = frozenset(
    (*READ_TOOLS, *WRITE_TOOLS, *SEARCH_TOOLS, *COMMAND_TOOLS, *JOB_TOOLS)
)
"""All tools that work on workspaces."""

READ_ONLY_MESSAGE: Final = "workspace is read-only"
NO_SANDBOX_MESSAGE: Final = "no sandbox available for this command"


class PermissionMode(StrEnum):
    EDIT = "edit"
    ASK = "ask"
    BYPASS = "bypass"


class SandboxSpec(Struct, frozen=True):
    """A sandbox as seen by a tool call."""

    id: str
    mode: PermissionMode
    config: Mapping[str, Any]
    """Stored config, secrets still sealed."""
    tenant: str = ""

    @property
    def is_persistent(self) -> bool:
        return self.config.get("persistent") is True

    @property
    def config_digest(self) -> str:
        """Digest of what a call depends on; name and description are no part of it."""
        canonical = json.dumps(self.config, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


class AttachedWorkspace(Struct, frozen=True):
    """A workspace attached to an agent."""

    name: str
    """Name under which the agent addresses it."""
    workspace: str
    namespace: str
    sandbox: SandboxSpec | None
    """None: read-only."""
    description: str = ""
    notes_enabled: bool = True
    """Whether the prompt explains MEMORY.md and TASKS.md of this workspace."""


class ToolAccess(Struct, frozen=True):
    sandbox: SandboxSpec | None = None
    workspaces: tuple[AttachedWorkspace, ...] = ()
    """In configured order; the first is the default."""

    def find_workspace(self, name: str | None) -> AttachedWorkspace:
        """Return the named workspace, or the default. Raises ValidationError."""
        if not name and self.workspaces:
            return self.workspaces[0]
        for attached in self.workspaces:
            if attached.name == name:
                return attached
        raise ValidationError(f"unknown workspace {name}" if name else "no workspace is attached")

    @property
    def has_persistent_sandbox(self) -> bool:
        """Whether some command can outlive the call that started it."""
        return any(
            attached.sandbox and attached.sandbox.is_persistent for attached in self.workspaces
        )


NO_ACCESS: Final = ToolAccess()


def available_tool_names(config: AgentConfig, access: ToolAccess | None = None) -> frozenset[str]:
    """Names of the workspace tools that an agent has.

    `access` is None if the referenced records cannot be loaded; then there are no job tools.
    """
    if not config.workspaces:
        return frozenset(COMMAND_TOOLS if config.sandbox else ())
    writable = any(
        config.sandbox if attached.sandbox is UNSET else attached.sandbox
        for attached in config.workspaces
    )
    if not writable:
        return frozenset(READ_TOOLS)
    job_tools = JOB_TOOLS if access is not None and access.has_persistent_sandbox else ()
    return frozenset((*READ_TOOLS, *WRITE_TOOLS, *SEARCH_TOOLS, *COMMAND_TOOLS, *job_tools))


def requires_approval(tool: str, mode: PermissionMode) -> bool:
    """Whether the tool needs approval in a sandbox of this permission mode."""
    if tool in COMMAND_TOOLS:
        return mode is not PermissionMode.BYPASS
    return tool in WRITE_TOOLS and mode is PermissionMode.ASK


class CallTarget(Struct, frozen=True):
    """Workspace and sandbox of one call, and whether it needs approval."""

    requires_approval: bool
    workspace: AttachedWorkspace | None
    """None: a command without a workspace."""
    sandbox: SandboxSpec | None
    """None: read from storage; nothing is executed or written."""


def resolve_call_target(tool: str, access: ToolAccess, workspace: str | None = None) -> CallTarget:
    """Resolve the `workspace` argument of a tool call.

    Raises ValidationError for an unknown workspace, Forbidden if it is read-only, NotFound if there
    is no sandbox to run a command in.
    """
    if tool in COMMAND_TOOLS and not access.workspaces and not workspace:
        if access.sandbox is None:
            raise NotFound(NO_SANDBOX_MESSAGE)
        return CallTarget(requires_approval(tool, access.sandbox.mode), None, access.sandbox)
    attached = access.find_workspace(workspace)
    if attached.sandbox is not None:
        return CallTarget(
            requires_approval(tool, attached.sandbox.mode), attached, attached.sandbox
        )
    if tool not in READ_TOOLS:
        raise Forbidden(READ_ONLY_MESSAGE)
    return CallTarget(False, attached, None)


_WORKSPACE_DESCRIPTION: Final = "Name of the workspace. Default: {}."
_BACKGROUND_DESCRIPTION: Final = (
    "Run in the background and return an id for async_status. Requires a workspace with a"
    " persistent"
    " sandbox."
)


def with_workspace(schema: Mapping[str, Any], access: ToolAccess) -> Mapping[str, Any]:
    """Add a `workspace` property if there are several workspaces, else remove it."""
    names = [attached.name for attached in access.workspaces]
    if len(names) < 2:
        return _without_property(schema, "workspace")
    description = _WORKSPACE_DESCRIPTION.format(names[0])
    return _with_property(
        schema, "workspace", {"type": "string", "enum": names, "description": description}
    )


def with_background(schema: Mapping[str, Any], access: ToolAccess) -> Mapping[str, Any]:
    """Add a `background` property if a sandbox is persistent, else remove it."""
    if not access.has_persistent_sandbox:
        return _without_property(schema, "background")
    return _with_property(
        schema, "background", {"type": "boolean", "description": _BACKGROUND_DESCRIPTION}
    )


def _with_property(
    schema: Mapping[str, Any], name: str, property_schema: Mapping[str, Any]
) -> Mapping[str, Any]:
    return {**schema, "properties": {**schema["properties"], name: property_schema}}


def _without_property(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    properties = {
        key: property_schema for key, property_schema in schema["properties"].items() if key != name
    }
    required = [key for key in schema.get("required", ()) if key != name]
    return {**schema, "properties": properties, "required": required}


def derive_instance_key(namespace: str, sandbox: str, audience: Audience) -> str:
    """Key of the persistent instance of a sandbox for a workspace.

    Shared sessions have an instance of their own: the other one has private files and output.
    """
    suffix = "" if audience is Audience.MAIN else f"-{audience}"
    return f"{namespace}-{sandbox}{suffix}"


def derive_namespace(account: str, workspace: str) -> str:
    """Stable external name of a workspace."""
    seed = f"filesystem-namespace\0{account}:{workspace}".encode()
    return "fs-" + hashlib.sha256(seed).hexdigest()[:40]
