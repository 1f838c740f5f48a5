"""REST endpoints for an account's sandboxes and shared workspaces."""

from __future__ import annotations

from typing import Any, Final

from carrel.actions.sandbox import account_records, sandboxes, workspaces
from carrel.core.access import Permission
from carrel.core.errors import Busy, NotFound, Refusal, ValidationError
from carrel.server.http.endpoint import Request, endpoint
from carrel.server.http.response import Response
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
_MAX_BODY_BYTES: Final = 2**18


def _endpoint_options(id: str, permission: Permission, *refusals: type[Refusal]) -> dict[str, Any]:
    return {
        "id": id,
        "permission": permission,
        "refusals": refusals,
        "allow_unknown_query": True,
        "max_body": _MAX_BODY_BYTES,
        "error_dialect": ACCOUNT_DIALECT,
        "tag": _TAG,
    }


async def _rebuild_delete(request: Request, versions: tuple[int, ...]) -> Response:
    return Response.json(DeletedModel())


async def _rebuild_create_sandbox(request: Request, versions: tuple[int, ...]) -> Response:
    assert request.idempotency_key is not None
    record = await account_records.get_created(
        request.ports, request.actor, sandboxes.SANDBOX_TYPE, request.idempotency_key
    )
    return Response.json(sandbox_to_model(record), 201)


@endpoint(
    "POST",
    "/accounts/me/sandboxes",
    body=CreateSandboxBody,
    responses={201: SandboxModel},
    idempotent=True,
    rebuild=_rebuild_create_sandbox,
    **_endpoint_options("sandboxes_create", Permission.TENANT_ADMIN, ValidationError, Busy),
)
async def create_sandbox(request: Request[dict[str, Any]]) -> Response:
    """Create a sandbox: provider, limits, environment variables and permission mode.

    Defaults: provider `local`, permissionMode `ask`, no network.
    """
    record = await sandboxes.create(
        request.ports, request.actor, request.body, request.idempotency_key
    )
    return Response.json(sandbox_to_model(record), 201)


@endpoint(
    "GET",
    "/accounts/me/sandboxes",
    responses={200: SandboxListModel},
    **_endpoint_options("sandboxes_list", Permission.TENANT_READ),
)
async def list_sandboxes(request: Request) -> Response:
    """List sandboxes."""
    records = await sandboxes.list_sandboxes(request.ports, request.actor)
    return Response.json(
        SandboxListModel(sandboxes=[sandbox_to_model(record) for record in records])
    )


@endpoint(
    "GET",
    "/accounts/me/sandboxes/{id}",
    responses={200: SandboxModel},
    **_endpoint_options("sandboxes_get", Permission.TENANT_READ, NotFound),
)
async def get_sandbox(request: Request) -> Response:
    """Get a sandbox."""
    record = await sandboxes.get(request.ports, request.actor, request.params["id"])
    return Response.json(sandbox_to_model(record))


async def _rebuild_patch_sandbox(request: Request, versions: tuple[int, ...]) -> Response:
    record = await sandboxes.get(request.ports, request.actor, request.params["id"])
    return Response.json(sandbox_to_model(record))


@endpoint(
    "PATCH",
    "/accounts/me/sandboxes/{id}",
    body=UpdateSandboxBody,
    responses={200: SandboxModel},
    idempotent=True,
    rebuild=_rebuild_patch_sandbox,
    **_endpoint_options(
        "sandboxes_patch", Permission.TENANT_ADMIN, ValidationError, NotFound, Busy
    ),
)
async def patch_sandbox(request: Request[dict[str, Any]]) -> Response:
    """Update a sandbox with a merge patch.

    `null` removes a field; a masked secret that is sent back is kept. The result must be valid.
    """
    id = request.params["id"]
    record = await sandboxes.patch(
        request.ports, request.actor, id, request.body, request.idempotency_key
    )
    return Response.json(sandbox_to_model(record))


@endpoint(
    "DELETE",
    "/accounts/me/sandboxes/{id}",
    responses={200: DeletedModel},
    idempotent=True,
    rebuild=_rebuild_delete,
    **_endpoint_options("sandboxes_delete", Permission.TENANT_ADMIN, NotFound, Busy),
)
async def delete_sandbox(request: Request) -> Response:
    """Delete a sandbox. Tool calls of agents that refer to it then fail."""
    await sandboxes.delete(
        request.ports, request.actor, request.params["id"], request.idempotency_key
    )
    return Response.json(DeletedModel())


async def _rebuild_create_workspace(request: Request, versions: tuple[int, ...]) -> Response:
    assert request.idempotency_key is not None
    record = await account_records.get_created(
        request.ports, request.actor, workspaces.WORKSPACE_TYPE, request.idempotency_key
    )
    return Response.json(workspace_to_model(record), 201)


@endpoint(
    "POST",
    "/accounts/me/workspaces",
    body=CreateSharedWorkspaceBody,
    responses={201: SharedWorkspaceModel},
    idempotent=True,
    rebuild=_rebuild_create_workspace,
    **_endpoint_options("shared_workspaces_create", Permission.TENANT_ADMIN, ValidationError, Busy),
)
async def create_workspace(request: Request[dict[str, Any]]) -> Response:
    """Create a shared workspace, which agents attach in their config.

    Its files are at `/v1/workspaces/{id}/files`.
    """
    record = await workspaces.create(
        request.ports, request.actor, request.body, request.idempotency_key
    )
    return Response.json(workspace_to_model(record), 201)


@endpoint(
    "GET",
    "/accounts/me/workspaces",
    responses={200: SharedWorkspaceListModel},
    **_endpoint_options("shared_workspaces_list", Permission.TENANT_READ),
)
async def list_workspaces(request: Request) -> Response:
    """List shared workspaces."""
    records = await workspaces.list_workspaces(request.ports, request.actor)
    return Response.json(
        SharedWorkspaceListModel(workspaces=[workspace_to_model(record) for record in records])
    )


@endpoint(
    "GET",
    "/accounts/me/workspaces/{id}",
    responses={200: SharedWorkspaceModel},
    **_endpoint_options("shared_workspaces_get", Permission.TENANT_READ, NotFound),
)
async def get_workspace(request: Request) -> Response:
    """Get a shared workspace."""
    record = await workspaces.get(request.ports, request.actor, request.params["id"])
    return Response.json(workspace_to_model(record))


async def _rebuild_patch_workspace(request: Request, versions: tuple[int, ...]) -> Response:
    record = await workspaces.get(request.ports, request.actor, request.params["id"])
    return Response.json(workspace_to_model(record))


@endpoint(
    "PATCH",
    "/accounts/me/workspaces/{id}",
    body=UpdateSharedWorkspaceBody,
    responses={200: SharedWorkspaceModel},
    idempotent=True,
    rebuild=_rebuild_patch_workspace,
    **_endpoint_options(
        "shared_workspaces_patch", Permission.TENANT_ADMIN, ValidationError, NotFound, Busy
    ),
)
async def patch_workspace(request: Request[dict[str, Any]]) -> Response:
    """Update a shared workspace with a merge patch."""
    id = request.params["id"]
    record = await workspaces.patch(
        request.ports, request.actor, id, request.body, request.idempotency_key
    )
    return Response.json(workspace_to_model(record))


@endpoint(
    "DELETE",
    "/accounts/me/workspaces/{id}",
    responses={200: DeletedModel},
    idempotent=True,
    rebuild=_rebuild_delete,
    **_endpoint_options("shared_workspaces_delete", Permission.TENANT_ADMIN, NotFound, Busy),
)
async def delete_workspace(request: Request) -> Response:
    """Delete a shared workspace and all its files, in one commit.

    Snapshots of runs are kept.
    """
    await workspaces.delete(
        request.ports, request.actor, request.params["id"], request.idempotency_key
    )
    return Response.json(DeletedModel())


ENDPOINTS: Final = (
    create_sandbox,
    list_sandboxes,
    get_sandbox,
    patch_sandbox,
    delete_sandbox,
    create_workspace,
    list_workspaces,
    get_workspace,
    patch_workspace,
    delete_workspace,
)
