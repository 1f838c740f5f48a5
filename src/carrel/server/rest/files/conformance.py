"""Endpoint of the conformance suite: file operations on any named owner.

Off unless a setting enables it. Its owners are stored under the caller's tenant and are not
tenants, so that no real workspace can be reached through it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

import msgspec

from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.core.access import Actor, Permission
from carrel.core.errors import Busy, NotFound, ValidationError, WorkspaceConflict, WorkspaceTooLarge
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack, parse_wire_path
from carrel.core.overlay.write_condition import parse_condition
from carrel.server.http.endpoint import Request, RequestModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import (
    FileListModel,
    PositiveInt,
    file_to_summary,
    workspace_file_to_model,
)

Owner = Annotated[str, msgspec.Meta(min_length=1, max_length=256, pattern="^[^\\x00]*$")]


class ConformanceOperationBody(RequestModel, frozen=True):
    tenant: Owner
    workspace: Owner
    op: str
    path: str | None = None
    content: str | None = None
    content_type: str | None = None
    if_match: str | None = None
    prefix: str | None = None
    version: PositiveInt | None = None


@endpoint(
    "POST",
    "/v1/host/sample/workspace/op",
    body=ConformanceOperationBody,
    permission=Permission.WORKSPACE_WRITE,
    responses={200: dict[str, Any], 204: None},
    refusals=(ValidationError, NotFound, WorkspaceConflict, WorkspaceTooLarge, Busy),
    tag="Conformance",
)
async def run_operation(request: Request[ConformanceOperationBody]) -> Response:
    """Run one file operation for the conformance suite."""
    body = request.body
    actor = replace(request.actor, tenant=f"seam/{request.actor.tenant}/{body.tenant}")
    stack = (Scope(actor.tenant, ScopeKind.WORKSPACE, body.workspace),)
    match body.op:
        case "list":
            workspace = await files.list_files(request.ports, stack, body.prefix or "")
            rows = [
                file_to_summary(file) for file in workspace.files.values() if file.path.fits_wire
            ]
            return Response.json(FileListModel(files=rows))
        case "get":
            return await _get(request, stack)
        case "put":
            return await _put(request, stack, actor)
        case "delete":
            await files.delete(request.ports, stack, _path(body), actor, _write_options(body))
            return Response.empty(204)
        case _:
            raise ValidationError("op must be list, get, put or delete")


async def _get(request: Request[ConformanceOperationBody], stack: Stack) -> Response:
    path = _path(request.body)
    if request.body.version is not None:
        file, content = await files.read_version(request.ports, stack, path, request.body.version)
    else:
        file = await files.get_file(request.ports, stack, path)
        content = await files.read_content(request.ports, file)
    return Response.json(workspace_file_to_model(file, content), headers={"ETag": file.etag})


async def _put(request: Request[ConformanceOperationBody], stack: Stack, actor: Actor) -> Response:
    body = request.body
    if body.content is None:
        raise ValidationError("put requires content")
    content = body.content.encode("utf-8", "replace")
    result = await files.put(
        request.ports, stack, _path(body), content, actor, _write_options(body)
    )
    model = workspace_file_to_model(result.file, result.content)
    return Response.json(model, headers={"ETag": result.file.etag})


def _path(body: ConformanceOperationBody) -> Path:
    if body.path is None:
        raise ValidationError(f"{body.op} requires a path")
    return parse_wire_path(body.path)


def _write_options(body: ConformanceOperationBody) -> WriteOptions:
    return WriteOptions(parse_condition(body.if_match, None), body.content_type)


ENDPOINTS: Final = (run_operation,)
