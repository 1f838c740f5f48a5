"""Files over HTTP: RFC 0059's four endpoints, and the same wire for every other stack."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Final

import msgspec

from carrel.actions.files import files
from carrel.actions.files.files import FileContents, WorkspaceView, WriteOptions, WriteResult
from carrel.actions.overlay import stacks
from carrel.core.access import Permission
from carrel.core.errors import (
    Busy,
    Conflict,
    Forbidden,
    NotFound,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack, wire_path
from carrel.core.overlay.compose import File
from carrel.core.overlay.edit import parse_condition
from carrel.server.http.conditional import file_answer, matches, unchanged
from carrel.server.http.endpoint import (
    IF_ABSENT,
    IF_MATCH,
    IF_NONE_MATCH,
    Endpoint,
    Request,
    RequestHeader,
    RequestModel,
    endpoint,
)
from carrel.server.http.response import JSON_TYPE, Response, encode
from carrel.server.rest.files.file_models import (
    FileBody,
    Files,
    Number,
    OverlayFile,
    OverlayFileBody,
    OverlayFileList,
    WirePath,
    WorkspaceFile,
    layered_file,
    row,
    workspace_file,
)
from carrel.server.rest.files.listing_templates import LISTING_TEMPLATES
from carrel.server.rest.files.response_cache import (
    RESPONSE_CACHE,
    ROW_CACHE,
    SharedBody,
    SupersededByWrite,
    raise_if_superseded,
)

RUN: Final = RequestHeader("Carrel-Run", "The run that writes: the event stands in its log too.")
REASON: Final = RequestHeader("Carrel-Reason", "Why, for the history.")
LONGEST_BODY: Final = 6 * 4 * 2**20 + 2**16

Asked = Request[Any, Any]


class WireFileQuery(RequestModel, frozen=True):
    version: Number | None = None


class FileQuery(RequestModel, frozen=True):
    version: Number | None = None
    raw: bool = False
    """With its placeholders as they stand, which is what an editor edits."""


class ListQuery(RequestModel, frozen=True):
    prefix: Annotated[str, msgspec.Meta(max_length=256)] = ""
    content: bool = False
    raw: bool = False


class WireListQuery(RequestModel, frozen=True):
    prefix: Annotated[str, msgspec.Meta(max_length=256)] = ""


@dataclass(frozen=True, slots=True)
class FileCollection:
    """One family of URLs under which files stand."""

    name: str
    root: str
    stack: Callable[[Asked], Awaitable[Stack]]
    wire: bool = False
    """Speaks RFC 0059 and nothing more: its paths, its closed objects."""
    admin: bool = False
    """Writing here changes other people's agents, so it takes more than workspace:write."""

    def path(self, call: Asked) -> Path:
        text = call.params["path"]
        return wire_path(text) if self.wire else Path(text)

    def shown(self, file: File, stored: bytes, *, raw: bool = False) -> WorkspaceFile | OverlayFile:
        if not self.wire:
            return layered_file(file, stored, raw=raw)
        return workspace_file(file, stored if raw else files.render_content(file, stored))

    @property
    def writing(self) -> Permission:
        return Permission.TENANT_ADMIN if self.admin else Permission.WORKSPACE_WRITE

    def facts(self, doing: str) -> dict[str, Any]:
        """What all endpoints of this place have in common."""
        path = WirePath if self.wire else str
        tag = "Workspace files" if self.wire else f"Files of {self.name}"
        return {"id": f"{self.name}_files_{doing}", "tag": tag, "params": {"path": path}}


async def _own(call: Asked) -> Stack:
    return await stacks.default_stack(call.ports, call.actor)


async def _agent(call: Asked) -> Stack:
    return await stacks.agent_stack(call.ports, call.actor, call.params["id"])


async def _template(call: Asked) -> Stack:
    return await stacks.template_stack(call.ports, call.actor, call.params["id"])


async def _defaults(call: Asked) -> Stack:
    return await stacks.defaults_stack(call.ports, call.actor)


async def _workspace(call: Asked) -> Stack:
    return await stacks.workspace_stack(call.ports, call.actor, call.params["id"])


HOST: Final = FileCollection("host", "/v1/host/workspace/files", _own, wire=True)
FILE_COLLECTIONS: Final = (
    HOST,
    FileCollection("agents", "/v1/agents/{id}/files", _agent),
    FileCollection("templates", "/v1/templates/{id}/files", _template, admin=True),
    FileCollection("defaults", "/v1/defaults/files", _defaults, admin=True),
    FileCollection("workspaces", "/v1/workspaces/{id}/files", _workspace),
)


def write_options(call: Asked, type: str | None = None, *, accepted: bool = False) -> WriteOptions:
    return WriteOptions(
        condition=parse_condition(call.header(b"if-match"), call.header(b"if-none-match")),
        type=type,
        reason=reason_of(call),
        run=call.header(b"carrel-run"),
        idempotency_key=call.receipt,
        accept_template_update=accepted,
    )


def reason_of(call: Asked) -> str:
    given = call.headers.get(b"carrel-reason")
    if given is None:
        return ""
    try:
        reason = given.decode()
    except UnicodeDecodeError:
        raise ValidationError("Carrel-Reason is not UTF-8") from None
    if len(reason) > 500 or not reason.isprintable():
        raise ValidationError("Carrel-Reason is one line of at most 500 characters")
    return reason


def _listing(place: FileCollection) -> Endpoint:
    @endpoint(
        "GET",
        place.root,
        query=WireListQuery if place.wire else ListQuery,
        permission=Permission.WORKSPACE_READ,
        allow_unknown_query=place.wire,
        responses={200: Files if place.wire else OverlayFileList, 304: None},
        refusals=() if place.wire else (NotFound,),
        headers=(IF_NONE_MATCH,),
        response_headers=("ETag", "Carrel-Agent") if place.name == "agents" else ("ETag",),
        **place.facts("list"),
    )
    async def listing(call: Asked) -> Response:
        """List the files, without their content unless it is asked for."""
        stack = await place.stack(call)
        full = not place.wire and call.query.content
        form = "wire" if place.wire else f"content: {full and ('raw' if call.query.raw else 1)}"
        tag = await files.etag(call.ports, stack, call.query.prefix, form)
        if matches(call, tag):
            return _with_agent_header(unchanged(tag), stack)

        async def make() -> Files | OverlayFileList | SharedBody:
            view = await files.load_view(call.ports, stack, call.query.prefix)
            listed = await _build_listing(place, call, view, full)
            raise_if_superseded(tag, view.etag(call.query.prefix, form), listed)
            return listed

        try:
            body = await RESPONSE_CACHE.get_or_create((stack[0].tenant, tag), make)
        except SupersededByWrite as newer:
            tag = newer.tag
            body = RESPONSE_CACHE.encode_and_keep((stack[0].tenant, tag), newer.value)
        return _with_agent_header(file_answer(body, tag), stack)

    return listing


def _with_agent_header(answer: Response, stack: Stack) -> Response:
    """Say whose files these are by id: a slug may be another agent's tomorrow."""
    if stack[0].kind is ScopeKind.AGENT:
        answer.headers.append((b"carrel-agent", stack[0].name.encode("latin-1")))
    return answer


async def _build_listing(
    place: FileCollection, call: Asked, view: WorkspaceView, full: bool
) -> Files | OverlayFileList | SharedBody:
    if full and not (call.query.raw or call.query.prefix):
        alike = view.alike
        if alike and (template := await LISTING_TEMPLATES.of(call.ports, alike.files)):
            return template.fill(alike.variables)
    workspace = view.workspace
    found = workspace.files.values()
    if place.wire:
        return Files(files=[row(file) for file in found if file.path.fits_wire])
    if not full:
        return OverlayFileList(files=[layered_file(file) for file in found])
    contents = await files.read_contents(call.ports, workspace, raw=True)
    if not contents.failed:
        with suppress(Conflict):
            rows = ((file, contents.found[path]) for path, file in workspace.files.items())
            return ROW_CACHE.listed(rows, raw=call.query.raw)
    return OverlayFileList(files=[_with_text(file, contents, call.query.raw) for file in found])


def _with_text(file: File, contents: FileContents, raw: bool) -> OverlayFile:
    """With its content, if that can be had and is text."""
    if file.path in contents.failed:
        return layered_file(file, error=contents.failed[file.path])
    try:
        return layered_file(file, contents.found[file.path], raw=raw)
    except Conflict:
        return layered_file(file)


def _get(place: FileCollection) -> Endpoint:
    @endpoint(
        "GET",
        place.root + "/{path...}",
        query=WireFileQuery if place.wire else FileQuery,
        permission=Permission.WORKSPACE_READ,
        allow_unknown_query=place.wire,
        responses={200: WorkspaceFile if place.wire else OverlayFile, 304: None},
        refusals=(ValidationError, NotFound, Conflict),
        headers=(IF_NONE_MATCH,),
        response_headers=("ETag",),
        **place.facts("get"),
    )
    async def get(call: Asked) -> Response:
        """Read one file, as it is now or as it was at a version."""
        stack, path = await place.stack(call), place.path(call)
        if call.query.version is not None:
            return await _version(place, call, call.query.version)
        file = await files.find_file(call.ports, stack, path)
        if matches(call, file.etag):
            return unchanged(file.etag)
        raw = not place.wire and call.query.raw
        shape = (place.wire, raw, file.upstream is None, file.origin, file.file_class)
        key = (*_scope_key(file.source), path.text, file.etag, *shape)
        body = RESPONSE_CACHE.get(key)
        if body is None:
            content = await files.read_content(call.ports, file, raw=True)
            body = RESPONSE_CACHE.put(key, place.shown(file, content, raw=raw))
        return file_answer(body, file.etag)

    return get


def _scope_key(scope: Scope) -> tuple[str, str, str]:
    """A scope as words, which are quicker to look up by."""
    return (scope.tenant, scope.kind, scope.name)


async def _version(place: FileCollection, call: Asked, number: int) -> Response:
    """One version as it was said by the nearest layer."""
    stack = await place.stack(call)
    file, content = await files.read_version(call.ports, stack, place.path(call), number)
    if matches(call, file.etag):
        return unchanged(file.etag)
    return Response.json(place.shown(file, content, raw=True), headers={"ETag": file.etag})


def _put(place: FileCollection) -> Endpoint:
    async def rebuild(call: Asked, versions: tuple[int, ...]) -> Response:
        return await _version(place, call, versions[0])

    @endpoint(
        "PUT",
        place.root + "/{path...}",
        body=FileBody if place.wire else OverlayFileBody,
        permission=place.writing,
        responses={200: WorkspaceFile if place.wire else OverlayFile},
        refusals=(
            ValidationError,
            Forbidden,
            NotFound,
            WorkspaceConflict,
            WorkspaceTooLarge,
            Conflict,
            Busy,
        ),
        headers=(IF_MATCH, IF_ABSENT, RUN, REASON),
        response_headers=("ETag", "Carrel-Warning"),
        allow_unknown_query=place.wire,
        idempotent=True,
        rebuild=rebuild,
        max_body=LONGEST_BODY,
        **place.facts("put"),
    )
    async def put(call: Asked) -> Response:
        """Create or replace one file, atomically."""
        stack, path = await place.stack(call), place.path(call)
        try:
            content = call.body.content.encode()
        except UnicodeEncodeError:
            raise ValidationError("content is not valid Unicode") from None
        accepted = not place.wire and call.body.accept_template_update
        intent = write_options(call, call.body.content_type, accepted=accepted)
        written = await files.put(call.ports, stack, path, content, call.actor, intent)
        return write_response(place, written)

    return put


def write_response(place: FileCollection, written: WriteResult) -> Response:
    headers = [JSON_TYPE, (b"etag", written.file.etag.encode())]
    if written.redacted.warned:
        warning = "looks like a secret: " + ", ".join(written.redacted.warned)
        headers.append((b"carrel-warning", warning.encode("latin-1")))
    return Response(200, encode(place.shown(written.file, written.content, raw=True)), headers)


def _delete(place: FileCollection) -> Endpoint:
    async def rebuild(call: Asked, versions: tuple[int, ...]) -> Response:
        return Response.empty(204)

    @endpoint(
        "DELETE",
        place.root + "/{path...}",
        permission=place.writing,
        responses={204: None},
        refusals=(ValidationError, Forbidden, NotFound, WorkspaceConflict, Conflict, Busy),
        headers=(IF_MATCH, IF_ABSENT, RUN, REASON),
        allow_unknown_query=place.wire,
        idempotent=True,
        rebuild=rebuild,
        **place.facts("delete"),
    )
    async def delete(call: Asked) -> Response:
        """Remove one file; in a stack, go back to what lies beneath."""
        stack, path = await place.stack(call), place.path(call)
        await files.delete(call.ports, stack, path, call.actor, write_options(call))
        return Response.empty(204)

    return delete


ENDPOINTS: Final = tuple(
    make(place) for place in FILE_COLLECTIONS for make in (_listing, _get, _put, _delete)
)
