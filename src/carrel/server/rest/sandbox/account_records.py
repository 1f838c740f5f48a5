"""REST endpoints for an account's sandboxes and shared workspaces."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from carrel.actions.sandbox import account_records, sandboxes, workspaces
from carrel.actions.sandbox.account_records import AccountRecordType
from carrel.core.access import Actor, Permission
from carrel.core.errors import Busy, Conflict, NotFound, ValidationError
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record
from carrel.ports import Ports
from carrel.server.http.endpoint import Request, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.collections import AnyRequest, RecordCollection, RecordLoader, each_record
from carrel.server.rest.sandbox.account_models import (
    ACCOUNT_DIALECT,
    CreateSandboxBody,
    CreateSharedWorkspaceBody,
    DeletedModel,
    SandboxListModel,
    SandboxModel,
    SharedWorkspaceListModel,
    SharedWorkspaceModel,
    UpdateSandboxBody,
    UpdateSharedWorkspaceBody,
    sandbox_to_model,
    workspace_to_model,
)

_TAG: Final = "Sandboxes and shared workspaces"
_OPTIONS: Final[Mapping[str, Any]] = {
    "allow_unknown_query": True,
    "max_body": 2**18,
    "error_dialect": ACCOUNT_DIALECT,
}
_PATCH_REFUSALS: Final = (ValidationError, NotFound, Busy, Conflict)
CreateAction = Callable[[Ports, Actor, Mapping[str, Any], IdempotencyKey | None], Awaitable[Record]]

_SANDBOXES: Final = RecordCollection(
    "sandboxes",
    "/accounts/me/sandboxes",
    _TAG,
    SandboxModel,
    each_record(sandbox_to_model),
    sandboxes.get,
    deleted=DeletedModel(),
    options=_OPTIONS,
)
_WORKSPACES: Final = RecordCollection(
    "shared_workspaces",
    "/accounts/me/workspaces",
    _TAG,
    SharedWorkspaceModel,
    each_record(workspace_to_model),
    workspaces.get,
    deleted=DeletedModel(),
    options=_OPTIONS,
)


def _create_with(create: CreateAction) -> RecordLoader:
    async def run(request: AnyRequest) -> Record:
        return await create(request.ports, request.actor, request.body, request.idempotency_key)

    return run


def _get_created(account_type: AccountRecordType) -> RecordLoader:
    async def run(request: AnyRequest) -> Record:
        assert request.idempotency_key is not None
        return await account_records.get_created(
            request.ports, request.actor, account_type, request.idempotency_key
        )

    return run


@endpoint(
    "GET",
    _SANDBOXES.path,
    responses={200: SandboxListModel},
    id="sandboxes_list",
    permission=Permission.TENANT_READ,
    tag=_TAG,
    **_OPTIONS,
)
async def list_sandboxes(request: Request) -> Response:
    """List sandboxes."""
    records = await sandboxes.list_sandboxes(request.ports, request.actor)
    return Response.json(
        SandboxListModel(sandboxes=[sandbox_to_model(record) for record in records])
    )


@endpoint(
    "GET",
    _WORKSPACES.path,
    responses={200: SharedWorkspaceListModel},
    id="shared_workspaces_list",
    permission=Permission.TENANT_READ,
    tag=_TAG,
    **_OPTIONS,
)
async def list_workspaces(request: Request) -> Response:
    """List shared workspaces."""
    records = await workspaces.list_workspaces(request.ports, request.actor)
    return Response.json(
        SharedWorkspaceListModel(workspaces=[workspace_to_model(record) for record in records])
    )


ENDPOINTS: Final = (
    _SANDBOXES.create(
        """Create a sandbox: provider, limits, environment variables and permission mode.

        Defaults: provider `local`, permissionMode `ask`, no network.
        """,
        CreateSandboxBody,
        _create_with(sandboxes.create),
        _get_created(sandboxes.SANDBOX_TYPE),
        (ValidationError, Busy),
    ),
    list_sandboxes,
    _SANDBOXES.get("Get a sandbox."),
    _SANDBOXES.patch(
        """Update a sandbox with a merge patch.

        `null` removes a field; a masked secret that is sent back is kept. The result must be valid.
        """,
        UpdateSandboxBody,
        sandboxes.patch,
        _PATCH_REFUSALS,
    ),
    _SANDBOXES.delete(
        "Delete a sandbox. Tool calls of agents that refer to it then fail.",
        sandboxes.delete,
        (NotFound, Busy),
    ),
    _WORKSPACES.create(
        """Create a shared workspace, which agents attach in their config.

        Its files are at `/v1/workspaces/{id}/files`.
        """,
        CreateSharedWorkspaceBody,
        _create_with(workspaces.create),
        _get_created(workspaces.WORKSPACE_TYPE),
        (ValidationError, Busy),
    ),
    list_workspaces,
    _WORKSPACES.get("Get a shared workspace."),
    _WORKSPACES.patch(
        "Update a shared workspace with a merge patch.",
        UpdateSharedWorkspaceBody,
        workspaces.patch,
        _PATCH_REFUSALS,
    ),
    _WORKSPACES.delete(
        """Delete a shared workspace and all its files, in one commit.

        Snapshots of runs are kept.
        """,
        workspaces.delete,
        (NotFound, Busy),
    ),
)
