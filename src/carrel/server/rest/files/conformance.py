"""The conformance suite's test seam: the four file operations in an owner named by the request.

It is off unless a setting turns it on. The owners it reaches are not tenants: they are kept apart
under the caller's own tenant, so that no real workspace can be read or written through it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

import msgspec

from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.core.access import Actor, Permission
from carrel.core.errors import Busy, NotFound, ValidationError, WorkspaceConflict, WorkspaceTooLarge
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack, wire_path
from carrel.core.overlay.edit import parse_condition
from carrel.server.http.endpoint import Request, RequestModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Files, Number, row, workspace_file

Owner = Annotated[str, msgspec.Meta(min_length=1, max_length=256, pattern="^[^\\x00]*$")]


class Operation(RequestModel, frozen=True):
    tenant: Owner
    workspace: Owner
    op: str
    path: str | None = None
    content: str | None = None
    content_type: str | None = None
    if_match: str | None = None
    prefix: str | None = None
    version: Number | None = None


@endpoint(
    "POST",
    "/v1/host/sample/workspace/op",
    body=Operation,
    permission=Permission.WORKSPACE_WRITE,
    responses={200: dict[str, Any], 204: None},
    refusals=(ValidationError, NotFound, WorkspaceConflict, WorkspaceTooLarge, Busy),
    tag="Conformance",
)
async def operate(call: Request[Operation]) -> Response:
    """Do one file operation in an owner of the suite's own."""
    asked = call.body
    actor = replace(call.actor, tenant=f"seam/{call.actor.tenant}/{asked.tenant}")
    stack = (Scope(actor.tenant, ScopeKind.WORKSPACE, asked.workspace),)
    match asked.op:
        case "list":
            workspace = await files.list_files(call.ports, stack, asked.prefix or "")
            shown = [row(file) for file in workspace.files.values() if file.path.fits_wire]
            return Response.json(Files(files=shown))
        case "get":
            return await _get(call, stack)
        case "put":
            return await _put(call, stack, actor)
        case "delete":
            await files.delete(call.ports, stack, _path(asked), actor, _intent(asked))
            return Response.empty(204)
        case _:
            raise ValidationError("op must be list, get, put or delete")


async def _get(call: Request[Operation], stack: Stack) -> Response:
    path = _path(call.body)
    if call.body.version is not None:
        file, content = await files.read_version(call.ports, stack, path, call.body.version)
    else:
        file = await files.find_file(call.ports, stack, path)
        content = await files.read_content(call.ports, file)
    return Response.json(workspace_file(file, content), headers={"ETag": file.etag})


async def _put(call: Request[Operation], stack: Stack, actor: Actor) -> Response:
    asked = call.body
    if asked.content is None:
        raise ValidationError("put needs content")
    content = asked.content.encode("utf-8", "replace")
    written = await files.put(call.ports, stack, _path(asked), content, actor, _intent(asked))
    shown = workspace_file(written.file, written.content)
    return Response.json(shown, headers={"ETag": written.file.etag})


def _path(asked: Operation) -> Path:
    if asked.path is None:
        raise ValidationError(f"{asked.op} needs a path")
    return wire_path(asked.path)


def _intent(asked: Operation) -> WriteOptions:
    return WriteOptions(parse_condition(asked.if_match, None), asked.content_type)


ENDPOINTS: Final = (operate,)
