"""The conformance suite's test seam: the four file operations in an owner named by the request.

It is off unless a setting turns it on. The owners it reaches are not tenants: they are kept apart
under the caller's own tenant, so that no real workspace can be read or written through it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

import msgspec

from carrel.actions.files import files
from carrel.actions.files.files import Intent
from carrel.core.access import Actor, Permission
from carrel.core.errors import Busy, Malformed, Missing, Stale, TooLarge
from carrel.core.identifiers import Kind, Path, Scope, Stack, wire_path
from carrel.core.overlay.edit import parse_condition
from carrel.server.http.endpoint import Call, Received, endpoint
from carrel.server.http.response import Answer
from carrel.server.rest.files.file_models import Files, Number, row, workspace_file

Owner = Annotated[str, msgspec.Meta(min_length=1, max_length=256, pattern="^[^\\x00]*$")]


class Operation(Received, frozen=True):
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
    answers={200: dict[str, Any], 204: None},
    refuses=(Malformed, Missing, Stale, TooLarge, Busy),
    tag="Conformance",
)
async def operate(call: Call[Operation]) -> Answer:
    """Do one file operation in an owner of the suite's own."""
    asked = call.body
    actor = replace(call.actor, tenant=f"seam/{call.actor.tenant}/{asked.tenant}")
    stack = (Scope(actor.tenant, Kind.WORKSPACE, asked.workspace),)
    match asked.op:
        case "list":
            workspace = await files.listing(call.world, stack, asked.prefix or "")
            shown = [row(file) for file in workspace.files.values() if file.path.fits_wire]
            return Answer.json(Files(files=shown))
        case "get":
            return await _get(call, stack)
        case "put":
            return await _put(call, stack, actor)
        case "delete":
            await files.delete(call.world, stack, _path(asked), actor, _intent(asked))
            return Answer.empty(204)
        case _:
            raise Malformed("op must be list, get, put or delete")


async def _get(call: Call[Operation], stack: Stack) -> Answer:
    path = _path(call.body)
    if call.body.version is not None:
        file, content = await files.version(call.world, stack, path, call.body.version)
    else:
        file = await files.look(call.world, stack, path)
        content = await files.content(call.world, file)
    return Answer.json(workspace_file(file, content), headers={"ETag": file.etag})


async def _put(call: Call[Operation], stack: Stack, actor: Actor) -> Answer:
    asked = call.body
    if asked.content is None:
        raise Malformed("put needs content")
    content = asked.content.encode("utf-8", "replace")
    written = await files.put(call.world, stack, _path(asked), content, actor, _intent(asked))
    shown = workspace_file(written.file, written.content)
    return Answer.json(shown, headers={"ETag": written.file.etag})


def _path(asked: Operation) -> Path:
    if asked.path is None:
        raise Malformed(f"{asked.op} needs a path")
    return wire_path(asked.path)


def _intent(asked: Operation) -> Intent:
    return Intent(parse_condition(asked.if_match, None), asked.content_type)


ENDPOINTS: Final = (operate,)
