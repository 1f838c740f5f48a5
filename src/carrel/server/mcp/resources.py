"""An agent's files as MCP resources."""

from __future__ import annotations

from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from carrel.actions.files import files
from carrel.actions.runs import snapshots
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.overlay.compose import File
from carrel.core.sessions.session import format_timestamp
from carrel.core.sessions.shared_session_visibility import is_visible
from carrel.server.mcp import skills
from carrel.server.mcp.request_context import McpRequest
from carrel.tools.tool import ToolContext

Context: TypeAlias = ServerRequestContext[Any, Any]
PAGE_SIZE: Final = 200
PATH_VARIABLE: Final = "path"
"""Variable of the URI template of files."""
_NOT_FOUND: Final = -32002
"""MCP error code for a missing resource."""


def uri_of(slug: str, path: Path) -> str:
    return f"carrel://agents/{slug}/files/{quote(path.text, safe='/')}"


def template_of(slug: str) -> str:
    """URI template of an agent's files."""
    return f"carrel://agents/{slug}/files/{{+{PATH_VARIABLE}}}"


async def list_resources(
    request: McpRequest, ctx: Context, cursor: str | None
) -> types.ListResourcesResult:
    """List a page of files, ordered by path, without content."""
    context = await request.tool_context(ctx.meta)
    after = _parse_cursor(cursor)
    visible = [file for path, file in (await visible_files(context)).items() if path.text > after]
    page = visible[:PAGE_SIZE]
    next_cursor = _cursor(page[-1].path.text) if len(visible) > PAGE_SIZE else None
    rows = [_resource(context.slug, file) for file in page]
    return types.ListResourcesResult(resources=rows, next_cursor=next_cursor)


async def list_templates(request: McpRequest, ctx: Context) -> types.ListResourceTemplatesResult:
    context = await request.tool_context(ctx.meta)
    template = types.ResourceTemplate(
        name="file",
        title="A file of the agent",
        uri_template=template_of(context.slug),
        description="Current content: the agent's own, its template's or the default.",
    )
    return types.ListResourceTemplatesResult(resource_templates=[template, skills.TEMPLATE])


async def read_resource(request: McpRequest, ctx: Context, uri: str) -> types.ReadResourceResult:
    """Served content of a file, as text if it is UTF-8."""
    context = await request.tool_context(ctx.meta)
    try:
        if uri.startswith(skills.SCHEME):
            file = await skills.find_skill_file(context, uri)
            content = await files.read_content(context.ports, file)
        else:
            file, content = await _content(context, _path(context, uri))
    except (NotFound, ValidationError, UnicodeDecodeError):
        raise MCPError(_NOT_FOUND, "no such resource", {"uri": uri[:1200]}) from None
    return types.ReadResourceResult(contents=[_contents(uri, file, content)])


async def visible_files(context: ToolContext) -> Mapping[Path, File]:
    """Files visible to the audience; a shared audience sees no private ones."""
    if context.run is not None:
        visible = (await snapshots.load_manifest(context.ports, context.run)).files
    else:
        visible = (await files.list_files(context.ports, context.stack)).files
    return {path: file for path, file in visible.items() if is_visible(path, context.audience)}


async def _content(context: ToolContext, path: Path) -> tuple[File, bytes]:
    if not is_visible(path, context.audience):
        raise NotFound(f"no such file: {path}")
    if context.run is not None:
        return await snapshots.read_file(context.ports, context.run, path)
    file = await files.get_file(context.ports, context.stack, path)
    return file, await files.read_content(context.ports, file)


def _path(context: ToolContext, uri: str) -> Path:
    """Path of a resource URI. Raises NotFound and ValidationError."""
    for name in (context.slug, context.agent.id):
        start = f"carrel://agents/{name}/files/"
        if uri.startswith(start):
            return Path(unquote(uri.removeprefix(start), errors="strict"))
    raise NotFound("the resource belongs to another agent")


def _resource(slug: str, file: File) -> types.Resource:
    return types.Resource(
        name=file.path.text,
        uri=uri_of(slug, file.path),
        mime_type=file.entry.type,
        size=file.blob.size if file.variables is None else None,
        annotations=types.Annotations(last_modified=format_timestamp(file.head.at)),
    )


def _contents(
    uri: str, file: File, content: bytes
) -> types.TextResourceContents | types.BlobResourceContents:
    mime_type = file.entry.type
    try:
        return types.TextResourceContents(uri=uri, mime_type=mime_type, text=content.decode())
    except UnicodeDecodeError:
        blob = b64encode(content).decode()
        return types.BlobResourceContents(uri=uri, mime_type=mime_type, blob=blob)


def _cursor(path: str) -> str:
    return urlsafe_b64encode(path.encode()).decode()


def _parse_cursor(cursor: str | None) -> str:
    if not cursor:
        return ""
    try:
        return b64decode(cursor, altchars="-_", validate=True).decode()
    except ValueError:
        raise ValidationError("invalid cursor") from None
