"""URL roots with file endpoints, and the stacks behind them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.actions.overlay.stacks import ReadableStack
from carrel.core.access import Permission
from carrel.core.identifiers import Path, Stack, parse_wire_path
from carrel.core.overlay.compose import File
from carrel.server.http.endpoint import Request
from carrel.server.rest.files.file_models import (
    OverlayFileModel,
    WirePath,
    WorkspaceFileModel,
    overlay_file_to_model,
    workspace_file_to_model,
)

AnyRequest = Request[Any, Any]


@dataclass(frozen=True, slots=True)
class FileCollection:
    """A URL root with file endpoints, and the stack behind it."""

    name: str
    root: str
    load_stack: Callable[[AnyRequest], Awaitable[Stack]]
    wire: bool = False
    """Implements exactly RFC 0059: its paths and closed objects."""
    admin: bool = False
    """Writes affect other agents, so they require tenant:admin."""

    async def load_readable_stack(self, request: AnyRequest) -> ReadableStack:
        """Stack of a read, with the files that the caller may read."""
        if self.load_stack is not _agent_stack:
            return ReadableStack(await self.load_stack(request))
        return await stacks.readable_agent_stack(request.ports, request.actor, request.params["id"])

    def path(self, request: AnyRequest) -> Path:
        return self.parse_path(request.params["path"])

    def parse_path(self, text: str) -> Path:
        """Raises ValidationError."""
        return parse_wire_path(text) if self.wire else Path(text)

    def sibling_root(self, name: str) -> str:
        """URL of an endpoint beside the files."""
        return f"{self.root.removesuffix('/files')}/{name}"

    def to_model(
        self, file: File, stored: bytes, *, raw: bool = False
    ) -> WorkspaceFileModel | OverlayFileModel:
        if not self.wire:
            return overlay_file_to_model(file, stored, raw=raw)
        return workspace_file_to_model(file, stored if raw else files.render_content(file, stored))

    @property
    def write_permission(self) -> Permission:
        return Permission.TENANT_ADMIN if self.admin else Permission.WORKSPACE_WRITE

    def endpoint_options(self, operation: str) -> dict[str, Any]:
        """Options shared by all endpoints of this collection."""
        path = WirePath if self.wire else str
        tag = "Workspace files" if self.wire else f"Files of {self.name}"
        return {"id": f"{self.name}_files_{operation}", "tag": tag, "params": {"path": path}}


async def _default_stack(request: AnyRequest) -> Stack:
    return await stacks.default_stack(request.ports, request.actor)


async def _agent_stack(request: AnyRequest) -> Stack:
    return await stacks.agent_stack(request.ports, request.actor, request.params["id"])


async def _template_stack(request: AnyRequest) -> Stack:
    return await stacks.template_stack(request.ports, request.actor, request.params["id"])


async def _defaults_stack(request: AnyRequest) -> Stack:
    return await stacks.defaults_stack(request.ports, request.actor)


async def _workspace_stack(request: AnyRequest) -> Stack:
    return await stacks.workspace_stack(request.ports, request.actor, request.params["id"])


HOST: Final = FileCollection("host", "/v1/host/workspace/files", _default_stack, wire=True)
FILE_COLLECTIONS: Final = (
    HOST,
    FileCollection("agents", "/v1/agents/{id}/files", _agent_stack),
    FileCollection("templates", "/v1/templates/{id}/files", _template_stack, admin=True),
    FileCollection("defaults", "/v1/defaults/files", _defaults_stack, admin=True),
    FileCollection("workspaces", "/v1/workspaces/{id}/files", _workspace_stack),
)
