"""Workspace overlay API: one endpoint with six actions.

Follows the order of checks, statuses and bodies, over the same actions as the rest of
the API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from carrel.actions.agents import file_map, identity_fields
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.files.rewrite import RewriteOutcome, find_file, read_stored
from carrel.actions.overlay import stacks
from carrel.actions.overlay.stacks import ReadableStack
from carrel.core.access import Actor, CredentialKind, Permission, Role
from carrel.core.errors import (
    Busy,
    Conflict,
    Forbidden,
    NotFound,
    Unauthenticated,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.core.identifiers import Path, ScopeKind, Stack
from carrel.core.overlay.compose import Workspace
from carrel.core.overlay.write_condition import UNCONDITIONAL, WriteCondition
from carrel.server.http.endpoint import IF_NONE_MATCH, Request, endpoint
from carrel.server.http.error_responses import problem_response
from carrel.server.http.not_modified import etag_matches, json_with_etag, not_modified
from carrel.server.http.response import Response
from carrel.server.rest.files.overlay_models import (
    OK_RESPONSE,
    OVERLAY_DIALECT,
    OverlayErrorModel,
    OverlayFileRowModel,
    OverlayRequestBody,
    OverlayResponseModel,
    file_to_response,
    file_to_row,
    file_to_row_with_content,
    hex_digest,
    source_of,
    unreadable_file_to_row,
)

_REFUSED_FIELDS: Final = ("tenantId", "tenantSlug", "instanceId")
_SELECTORS: Final = ("agentId", "templateId", "defaults")
_UNPROCESSABLE: Final = (422, "unprocessable")
_MAX_BODY_BYTES: Final = 6 * 4 * 2**20 + 2**16

OverlayRequest: TypeAlias = Request[dict[str, Any], Any]


def _is_write(request: OverlayRequest) -> bool:
    action = request.body.get("action")
    return isinstance(action, str) and action in _WRITERS


async def _rebuild_write(_: OverlayRequest, versions: tuple[int, ...]) -> Response:
    """Respond like every write that was committed."""
    return Response.json(OK_RESPONSE)


@endpoint(
    "POST",
    "/api/workspaces/files",
    id="overlay_files",
    body=OverlayRequestBody,
    platform=None,
    allow_unknown_query=True,
    responses={200: OverlayResponseModel, 304: None, 422: OverlayErrorModel},
    refusals=(
        ValidationError,
        Forbidden,
        NotFound,
        WorkspaceConflict,
        Conflict,
        Busy,
        WorkspaceTooLarge,
    ),
    headers=(IF_NONE_MATCH,),
    response_headers=("ETag",),
    tag="Workspace overlay",
    error_dialect=OVERLAY_DIALECT,
    max_body=_MAX_BODY_BYTES,
    idempotent=True,
    is_write=_is_write,
    rebuild=_rebuild_write,
)
async def handle_action(request: OverlayRequest) -> Response:
    """Read or write files of an agent, a template or the defaults.

    Exactly one of `agentId`, `templateId` and `defaults` selects the target; ids and slugs both
    work. `list` supports If-None-Match. Reading requires `workspace:read`, writing
    `workspace:write`, and for templates and defaults `tenant:admin`.
    """
    if any(name in request.body for name in _REFUSED_FIELDS):
        raise ValidationError(
            f"{', '.join(_REFUSED_FIELDS)} must not be in the body;"
            " the credential selects the tenant"
        )
    if request.actor.platform:
        raise Unauthenticated("the credential does not identify a caller tenant")
    action = request.body.get("action")
    if not action:
        raise ValidationError("action is required")
    action = action if isinstance(action, str) else ""
    selector = _selector(request.body)
    _check_scope(request.actor, action)
    readable = await _load_stack(request, selector)
    _require_write(request.actor, action, readable.stack)
    if action in _READERS:
        return await _READERS[action](request, readable)
    if action not in _WRITERS:
        raise ValidationError(f"Unknown action; expected one of {', '.join(_ACTIONS)}")
    return await _WRITERS[action](request, readable.stack)


def _selector(body: Mapping[str, Any]) -> str:
    present = [name for name in _SELECTORS if body.get(name)]
    if len(present) != 1:
        raise ValidationError(f"Exactly one of {', '.join(_SELECTORS)} is required")
    [name] = present
    if name != "defaults" and not isinstance(body[name], str):
        raise ValidationError(f"{name} must be an id or a slug")
    return name


def _check_scope(actor: Actor, action: str) -> None:
    """Raise Forbidden if the key's permissions do not allow the action."""
    if action in _READERS:
        actor.require(Permission.WORKSPACE_READ)
    elif Permission.WORKSPACE_READ not in actor.permissions:
        actor.require(Permission.WORKSPACE_WRITE)


async def _load_stack(request: OverlayRequest, selector: str) -> ReadableStack:
    """Stack of the target. Raises NotFound, also for targets of other tenants."""
    ports, actor, target = request.ports, request.actor, request.body[selector]
    try:
        if selector == "agentId":
            return await stacks.readable_agent_stack(ports, actor, target)
        if selector == "templateId":
            return ReadableStack(await stacks.template_stack(ports, actor, target))
        return ReadableStack(await stacks.defaults_stack(ports, actor))
    except NotFound:
        raise NotFound("Target not found in the caller's tenant") from None


def _require_write(actor: Actor, action: str, stack: Stack) -> None:
    """Raise Forbidden if the actor may not run this write action."""
    if action not in _WRITERS:
        return
    if actor.kind is CredentialKind.PERSON and actor.role not in {Role.OWNER, Role.ADMIN}:
        raise Forbidden("writing requires a tenant admin or owner")
    agent = stack[0].kind is ScopeKind.AGENT
    actor.require(Permission.WORKSPACE_WRITE if agent else Permission.TENANT_ADMIN)


async def _get(request: OverlayRequest, readable: ReadableStack) -> Response:
    path, stack = _path(request), readable.stack
    file = await find_file(request.ports, stack, path, inherited_only=readable.inherited_only)
    if file is None:
        scope_kind = stack[0].kind
        source = ScopeKind.DEFAULTS if scope_kind is ScopeKind.AGENT else scope_kind
        return Response.json(
            OverlayResponseModel(content=None, source=source, sha256="", rendered_sha256="")
        )
    return Response.json(
        file_to_response(file, await read_stored(request.ports, file), raw=_flag(request, "raw"))
    )


async def _list(request: OverlayRequest, readable: ReadableStack) -> Response:
    stack, inherited_only = readable.stack, readable.inherited_only
    include_content, raw = _flag(request, "includeContent"), _flag(request, "raw")
    variant = f"overlay: {include_content} {include_content and raw}"
    etag = await files.load_etag(request.ports, stack, variant, inherited_only=inherited_only)
    if etag_matches(request, etag):
        return not_modified(etag)
    scopes = tuple((scope.tenant, scope.kind, scope.name) for scope in stack)
    stack_key, responses = (request.ports.store, *scopes), request.caches.responses
    body = responses.get((*stack_key, etag))
    if body is not None:
        return json_with_etag(body, etag)
    view = await files.load_view(request.ports, stack, inherited_only=inherited_only)
    rows, complete = await _rows(request, view.workspace, include_content=include_content, raw=raw)
    if not complete:
        return Response.json(
            OverlayResponseModel(files=rows), headers={"Cache-Control": "no-store"}
        )
    etag = view.etag(variant)  # A write may have happened since the first etag was computed.
    return json_with_etag(responses.put((*stack_key, etag), OverlayResponseModel(files=rows)), etag)


async def _rows(
    request: OverlayRequest, workspace: Workspace, *, include_content: bool, raw: bool
) -> tuple[list[OverlayFileRowModel], bool]:
    """Rows of all files, and whether every needed content could be read."""
    needed = {
        path: file for path, file in workspace.files.items() if include_content or file.variables
    }
    contents = await files.read_contents(request.ports, Workspace(needed), raw=True)
    rows = []
    for path, file in workspace.files.items():
        stored = contents.contents.get(path)
        if path in contents.failed:
            rows.append(unreadable_file_to_row(file, contents.failed[path]))
        elif stored is not None and include_content:
            rows.append(file_to_row_with_content(file, stored, raw=raw))
        else:
            rows.append(file_to_row(file, stored))
    return rows, not contents.failed


async def _put(request: OverlayRequest, stack: Stack) -> Response:
    name, content = _text(request, "path"), _text(request, "content", empty=True)
    path = Path(name)
    try:
        stored = content.encode()
    except UnicodeEncodeError:
        raise ValidationError("content is not valid Unicode") from None
    condition = await _condition(request, stack, path)
    options = WriteOptions(
        condition,
        accept_template_update=_flag(request, "acceptTemplateUpdate"),
        idempotency_key=request.idempotency_key,
    )
    await files.put(request.ports, stack, path, stored, request.actor, options)
    return Response.json(OK_RESPONSE)


async def _condition(request: OverlayRequest, stack: Stack, path: Path) -> WriteCondition:
    """Write condition from baseSha256 and ifSource. Raises WorkspaceConflict."""
    expected = [request.body.get(name) for name in ("baseSha256", "ifSource")]
    if expected == [None, None]:
        return UNCONDITIONAL
    if not all(value is None or isinstance(value, str) for value in expected):
        raise ValidationError("baseSha256 and ifSource must be strings")
    file = await find_file(request.ports, stack, path)
    current = ("", "") if file is None else (hex_digest(file.blob.digest), source_of(file))
    base, source = expected
    if base not in (None, current[0]) or source not in (None, current[1]):
        version = 0 if file is None else file.version
        raise WorkspaceConflict(f"{path} changed since it was read", version)
    return WriteCondition(absent=True) if file is None else WriteCondition(frozenset({file.etag}))


async def _delete(request: OverlayRequest, stack: Stack) -> Response:
    path = _path(request)
    with suppress(NotFound):
        options = WriteOptions(idempotency_key=request.idempotency_key)
        await files.delete(request.ports, stack, path, request.actor, options)
    return Response.json(OK_RESPONSE)


async def _regenerate_map(request: OverlayRequest, stack: Stack) -> Response:
    _require_agent(stack)
    await file_map.regenerate(request.ports, request.actor, stack)
    return Response.json(OK_RESPONSE)


async def _update_identity_field(request: OverlayRequest, stack: Stack) -> Response:
    _require_agent(stack)
    field, value = _text(request, "field"), _text(request, "value", empty=True)
    outcome = await identity_fields.update_field(request.ports, request.actor, stack, field, value)
    if outcome is RewriteOutcome.UNFIT:
        return problem_response(
            _UNPROCESSABLE, f"the agent has no IDENTITY.md override with a {field} line"
        )
    return Response.json(OK_RESPONSE)


def _require_agent(stack: Stack) -> None:
    if stack[0].kind is not ScopeKind.AGENT:
        raise ValidationError("this action requires agentId")


def _flag(request: OverlayRequest, name: str) -> bool:
    """Whether the field is exactly true."""
    return request.body.get(name) is True


def _path(request: OverlayRequest) -> Path:
    return Path(_text(request, "path"))


def _text(request: OverlayRequest, name: str, *, empty: bool = False) -> str:
    value = request.body.get(name)
    if value is None or (value == "" and not empty):
        raise ValidationError(f"{name} is required")
    if not isinstance(value, str):
        raise ValidationError(f"{name} must be a string")
    return value


_READERS: Final[Mapping[str, Callable[[OverlayRequest, ReadableStack], Awaitable[Response]]]] = {
    "get": _get,
    "list": _list,
}
_WRITERS: Final[Mapping[str, Callable[[OverlayRequest, Stack], Awaitable[Response]]]] = {
    "put": _put,
    "delete": _delete,
    "regenerate-map": _regenerate_map,
    "update-identity-field": _update_identity_field,
}
_ACTIONS: Final = (*_READERS, *_WRITERS)
ENDPOINTS: Final = (handle_action,)
