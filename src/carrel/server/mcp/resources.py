"""An agent's files as resources."""

from __future__ import annotations

from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from carrel.actions.files import files
from carrel.actions.runs import runs
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.overlay.compose import File
from carrel.core.prompt.assembly import SHARED
from carrel.core.runs import Audience
from carrel.core.sessions import told_at
from carrel.server.mcp.request_context import McpRequest
from carrel.tools.tool import ToolContext

Context: TypeAlias = ServerRequestContext[Any, Any]
PAGE: Final = 200
_NOT_FOUND: Final = -32002
"""What the protocol has for a resource that is not there."""


def uri_of(slug: str, path: Path) -> str:
    return f"carrel://agents/{slug}/files/{quote(path.text, safe='/')}"


async def listing(visit: McpRequest, ctx: Context, cursor: str | None) -> types.ListResourcesResult:
    """In order of path, without content, some at a time."""
    context = await visit.tool_context(ctx.meta)
    after = _place(cursor)
    found = [file for path, file in (await seen(context)).items() if path.text > after]
    some = found[:PAGE]
    more = _cursor(some[-1].path.text) if len(found) > PAGE else None
    rows = [_row(context.slug, file) for file in some]
    return types.ListResourcesResult(resources=rows, next_cursor=more)


async def templates(visit: McpRequest, ctx: Context) -> types.ListResourceTemplatesResult:
    context = await visit.tool_context(ctx.meta)
    one = types.ResourceTemplate(
        name="file",
        title="A file of the agent",
        uri_template=f"carrel://agents/{context.slug}/files/{{+path}}",
        description="As it is served now: its own, or its template's, or the default.",
    )
    return types.ListResourceTemplatesResult(resource_templates=[one])


async def read_resource(visit: McpRequest, ctx: Context, uri: str) -> types.ReadResourceResult:
    """The content as it is served, as text where it is text."""
    context = await visit.tool_context(ctx.meta)
    try:
        path = _path(context, uri)
        file, content = await _content(context, path)
    except (NotFound, ValidationError, UnicodeDecodeError):
        raise MCPError(_NOT_FOUND, "there is no such resource", {"uri": uri[:1200]}) from None
    return types.ReadResourceResult(contents=[_contents(uri, file, content)])


async def seen(context: ToolContext) -> Mapping[Path, File]:
    """The files that may be told of: where others listen, none that is private."""
    if context.run is not None:
        found = (await runs.manifest(context.ports, context.run)).files
    else:
        found = (await files.list_files(context.ports, context.stack)).files
    if context.mode is Audience.MAIN:
        return found
    return {path: file for path, file in found.items() if path in SHARED}


async def _content(context: ToolContext, path: Path) -> tuple[File, bytes]:
    if context.mode is Audience.SHARED and path not in SHARED:
        raise NotFound(f"there is no {path}")
    if context.run is not None:
        return await runs.file(context.ports, context.run, path)
    file = await files.find_file(context.ports, context.stack, path)
    return file, await files.read_content(context.ports, file)


def _path(context: ToolContext, uri: str) -> Path:
    """Raises Missing and Malformed."""
    for name in (context.slug, context.agent.id):
        start = f"carrel://agents/{name}/files/"
        if uri.startswith(start):
            return Path(unquote(uri.removeprefix(start), errors="strict"))
    raise NotFound("it is another's")


def _row(slug: str, file: File) -> types.Resource:
    return types.Resource(
        name=file.path.text,
        uri=uri_of(slug, file.path),
        mime_type=file.entry.type,
        size=file.blob.size if file.variables is None else None,
        annotations=types.Annotations(last_modified=told_at(file.head.at)),
    )


def _contents(
    uri: str, file: File, content: bytes
) -> types.TextResourceContents | types.BlobResourceContents:
    kind = file.entry.type
    try:
        return types.TextResourceContents(uri=uri, mime_type=kind, text=content.decode())
    except UnicodeDecodeError:
        blob = b64encode(content).decode()
        return types.BlobResourceContents(uri=uri, mime_type=kind, blob=blob)


def _cursor(path: str) -> str:
    return urlsafe_b64encode(path.encode()).decode()


def _place(cursor: str | None) -> str:
    if not cursor:
        return ""
    try:
        return b64decode(cursor, altchars="-_", validate=True).decode()
    except ValueError:
        raise ValidationError("the cursor is none that a page gave") from None
