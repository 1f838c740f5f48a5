"""The one endpoint by which runtimes and editors of workspace overlays read and write files.

It keeps the order in which that convention checks things, its statuses and its bodies; what it does
is done by the same actions as everywhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from carrel.actions.agents import file_map, identity_fields
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.files.rewrite import RewriteOutcome, find_file_or_none, read_stored
from carrel.actions.overlay import stacks
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
from carrel.core.overlay.edit import UNCONDITIONAL, WriteCondition
from carrel.server.http.conditional import file_answer, matches, unchanged
from carrel.server.http.endpoint import IF_NONE_MATCH, Request, endpoint
from carrel.server.http.problems import problem
from carrel.server.http.response import Response
from carrel.server.rest.files.overlay_models import (
    DONE,
    MANNER,
    Body,
    OverlayAnswer,
    OverlayRefusal,
    OverlayRow,
    bare,
    content_of,
    failed_row,
    row,
    row_with_content,
    source_of,
)
from carrel.server.rest.files.response_cache import RESPONSE_CACHE

_FOREIGN: Final = ("tenantId", "tenantSlug", "instanceId")
_SELECTORS: Final = ("agentId", "templateId", "defaults")
_READS: Final = frozenset({"get", "list"})
_WRITES: Final = frozenset({"put", "delete", "regenerate-map", "update-identity-field"})
_UNFIT: Final = (422, "unprocessable")
_MAX_BODY: Final = 6 * 4 * 2**20 + 2**16

Asked: TypeAlias = Request[dict[str, Any], Any]


@endpoint(
    "POST",
    "/api/workspaces/files",
    id="overlay_files",
    body=Body,
    platform=None,
    allow_unknown_query=True,
    responses={200: OverlayAnswer, 304: None, 422: OverlayRefusal},
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
    error_dialect=MANNER,
    max_body=_MAX_BODY,
)
async def ask(call: Asked) -> Response:
    """Read or write the files of an agent, a template or the defaults, by one of six actions.

    Exactly one of `agentId`, `templateId` and `defaults` says whose; ids and slugs both work.
    `list` heeds If-None-Match. Reading needs `workspace:read`, writing `workspace:write`, and for
    templates and defaults `tenant:admin`.
    """
    if any(name in call.body for name in _FOREIGN):
        raise ValidationError(
            f"{', '.join(_FOREIGN)} are not for the body: the credential says whose"
        )
    if call.actor.platform:
        raise Unauthenticated("the caller tenant cannot be told from this credential")
    action = call.body.get("action")
    if not action:
        raise ValidationError("action is missing")
    action = action if isinstance(action, str) else ""
    selector = _selector(call.body)
    _check_scope(call.actor, action)
    stack = await _target(call, selector)
    _may_write(call.actor, action, stack)
    run = _ACTIONS.get(action)
    if run is None:
        raise ValidationError(f"Unknown action: it is one of {', '.join(_ACTIONS)}")
    return await run(call, stack)


def _selector(body: Mapping[str, Any]) -> str:
    given = [name for name in _SELECTORS if body.get(name)]
    if len(given) != 1:
        raise ValidationError(f"Exactly one of {', '.join(_SELECTORS)} says whose files are meant")
    [name] = given
    if name != "defaults" and not isinstance(body[name], str):
        raise ValidationError(f"{name} is an id or a slug")
    return name


def _check_scope(actor: Actor, action: str) -> None:
    """A key that was narrowed learns nothing beyond that. Raises Forbidden."""
    if action in _READS:
        actor.require(Permission.WORKSPACE_READ)
    elif Permission.WORKSPACE_READ not in actor.permissions:
        actor.require(Permission.WORKSPACE_WRITE)


async def _target(call: Asked, selector: str) -> Stack:
    """What lies over what there. Raises Missing, in the same words whoever's it is."""
    try:
        if selector == "agentId":
            return await stacks.agent_stack(call.ports, call.actor, call.body[selector])
        if selector == "templateId":
            return await stacks.template_stack(call.ports, call.actor, call.body[selector])
        return await stacks.defaults_stack(call.ports, call.actor)
    except NotFound:
        raise NotFound("Target not found in the caller's tenant") from None


def _may_write(actor: Actor, action: str, stack: Stack) -> None:
    """Raises Forbidden."""
    if action not in _WRITES:
        return
    if actor.kind is CredentialKind.PERSON and actor.role not in {Role.OWNER, Role.ADMIN}:
        raise Forbidden("writing takes an admin or owner of the tenant")
    agent = stack[0].kind is ScopeKind.AGENT
    actor.require(Permission.WORKSPACE_WRITE if agent else Permission.TENANT_ADMIN)


async def _get(call: Asked, stack: Stack) -> Response:
    path = _path(call)
    file = await find_file_or_none(call.ports, stack, path)
    if file is None:
        kind = stack[0].kind
        source = ScopeKind.DEFAULTS if kind is ScopeKind.AGENT else kind
        return Response.json(
            OverlayAnswer(content=None, source=source, sha256="", rendered_sha256="")
        )
    return Response.json(
        content_of(file, await read_stored(call.ports, file), raw=_flag(call, "raw"))
    )


async def _list(call: Asked, stack: Stack) -> Response:
    full, raw = _flag(call, "includeContent"), _flag(call, "raw")
    form = f"overlay: {full} {full and raw}"
    tag = await files.etag(call.ports, stack, form)
    if matches(call, tag):
        return unchanged(tag)
    named = tuple((scope.tenant, scope.kind, scope.name) for scope in stack)
    body = RESPONSE_CACHE.get((*named, tag))
    if body is not None:
        return file_answer(body, tag)
    view = await files.load_view(call.ports, stack)
    rows, sound = await _rows(call, view.workspace, full=full, raw=raw)
    if not sound:
        return Response.json(OverlayAnswer(files=rows), headers={"Cache-Control": "no-store"})
    tag = view.etag(form)  # Something may have been written since the first.
    return file_answer(RESPONSE_CACHE.put((*named, tag), OverlayAnswer(files=rows)), tag)


async def _rows(
    call: Asked, workspace: Workspace, *, full: bool, raw: bool
) -> tuple[list[OverlayRow], bool]:
    """Every file, and whether all that was wanted of them could be had."""
    wanted = {path: file for path, file in workspace.files.items() if full or file.variables}
    contents = await files.read_contents(call.ports, Workspace(wanted), raw=True)
    rows = []
    for path, file in workspace.files.items():
        stored = contents.found.get(path)
        if path in contents.failed:
            rows.append(failed_row(file, contents.failed[path]))
        elif stored is not None and full:
            rows.append(row_with_content(file, stored, raw=raw))
        else:
            rows.append(row(file, stored))
    return rows, not contents.failed


async def _put(call: Asked, stack: Stack) -> Response:
    name, content = _text(call, "path"), _text(call, "content", empty=True)
    path = Path(name)
    try:
        stored = content.encode()
    except UnicodeEncodeError:
        raise ValidationError("content is not valid Unicode") from None
    condition = await _condition(call, stack, path)
    intent = WriteOptions(condition, accept_template_update=_flag(call, "acceptTemplateUpdate"))
    await files.put(call.ports, stack, path, stored, call.actor, intent)
    return Response.json(DONE)


async def _condition(call: Asked, stack: Stack, path: Path) -> WriteCondition:
    """What the writer says that they were looking at. Raises Stale where they were not."""
    said = [call.body.get(name) for name in ("baseSha256", "ifSource")]
    if said == [None, None]:
        return UNCONDITIONAL
    if not all(value is None or isinstance(value, str) for value in said):
        raise ValidationError("baseSha256 and ifSource are text")
    file = await find_file_or_none(call.ports, stack, path)
    current = ("", "") if file is None else (bare(file.blob.digest), source_of(file))
    base, source = said
    if base not in (None, current[0]) or source not in (None, current[1]):
        version = 0 if file is None else file.head.version
        raise WorkspaceConflict(f"{path} is not as it was read", version)
    return WriteCondition(absent=True) if file is None else WriteCondition(frozenset({file.etag}))


async def _delete(call: Asked, stack: Stack) -> Response:
    path = _path(call)
    with suppress(NotFound):
        await files.delete(call.ports, stack, path, call.actor)
    return Response.json(DONE)


async def _regenerate_map(call: Asked, stack: Stack) -> Response:
    _for_an_agent(stack)
    await file_map.regenerate(call.ports, call.actor, stack)
    return Response.json(DONE)


async def _update_identity_field(call: Asked, stack: Stack) -> Response:
    _for_an_agent(stack)
    field, value = _text(call, "field"), _text(call, "value", empty=True)
    done = await identity_fields.update_field(call.ports, call.actor, stack, field, value)
    if done is RewriteOutcome.UNFIT:
        return problem(_UNFIT, f"the agent has no IDENTITY.md with a line for its {field}")
    return Response.json(DONE)


def _for_an_agent(stack: Stack) -> None:
    if stack[0].kind is not ScopeKind.AGENT:
        raise ValidationError("this action is for an agent: name it by agentId")


def _flag(call: Asked, name: str) -> bool:
    """Only true itself says yes."""
    return call.body.get(name) is True


def _path(call: Asked) -> Path:
    return Path(_text(call, "path"))


def _text(call: Asked, name: str, *, empty: bool = False) -> str:
    value = call.body.get(name)
    if value is None or (value == "" and not empty):
        raise ValidationError(f"{name} is missing")
    if not isinstance(value, str):
        raise ValidationError(f"{name} is text")
    return value


Action: TypeAlias = Callable[[Asked, Stack], Awaitable[Response]]
_ACTIONS: Final[Mapping[str, Action]] = {
    "get": _get,
    "list": _list,
    "put": _put,
    "delete": _delete,
    "regenerate-map": _regenerate_map,
    "update-identity-field": _update_identity_field,
}
ENDPOINTS: Final = (ask,)
