"""Sandboxes and shared workspaces of an account over HTTP, in the dialect that their users know."""

from __future__ import annotations

from typing import Any, Final

from carrel.actions.sandbox import account_records, sandboxes, workspaces
from carrel.core.access import Permission
from carrel.core.errors import Busy, NotFound, Refusal, ValidationError
from carrel.server.http.endpoint import Request, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.sandbox.account_models import (
    MANNER,
    Deleted,
    NewSandbox,
    NewWorkspace,
    SandboxPatch,
    SandboxRecord,
    SandboxRecords,
    WorkspacePatch,
    WorkspaceRecord,
    WorkspaceRecords,
    sandbox_record,
    workspace_record,
)

_TAG: Final = "Sandboxes and shared workspaces"
_MOST: Final = 2**18


def _facts(id: str, permission: Permission, *refuses: type[Refusal]) -> dict[str, Any]:
    return {
        "id": id,
        "permission": permission,
        "refusals": refuses,
        "allow_unknown_query": True,
        "max_body": _MOST,
        "error_dialect": MANNER,
        "tag": _TAG,
    }


async def _deleted(call: Request, versions: tuple[int, ...]) -> Response:
    return Response.json(Deleted())


async def _sandbox_created(call: Request, versions: tuple[int, ...]) -> Response:
    assert call.receipt is not None
    found = await account_records.created(call.ports, call.actor, sandboxes.BOOK, call.receipt)
    return Response.json(sandbox_record(found), 201)


@endpoint(
    "POST",
    "/accounts/me/sandboxes",
    body=NewSandbox,
    responses={201: SandboxRecord},
    idempotent=True,
    rebuild=_sandbox_created,
    **_facts("sandboxes_create", Permission.TENANT_ADMIN, ValidationError, Busy),
)
async def create_sandbox(call: Request[dict[str, Any]]) -> Response:
    """Describe a sandbox: a provider, limits, variables, and who is asked before it is used.

    Where nothing is said of it, the provider is `local`, the permissionMode `ask`, and there is no
    network.
    """
    made = await sandboxes.create(call.ports, call.actor, call.body, call.receipt)
    return Response.json(sandbox_record(made), 201)


@endpoint(
    "GET",
    "/accounts/me/sandboxes",
    responses={200: SandboxRecords},
    **_facts("sandboxes_list", Permission.TENANT_READ),
)
async def list_sandboxes(call: Request) -> Response:
    """List the sandboxes."""
    found = await sandboxes.listing(call.ports, call.actor)
    return Response.json(SandboxRecords(sandboxes=[sandbox_record(each) for each in found]))


@endpoint(
    "GET",
    "/accounts/me/sandboxes/{id}",
    responses={200: SandboxRecord},
    **_facts("sandboxes_get", Permission.TENANT_READ, NotFound),
)
async def get_sandbox(call: Request) -> Response:
    """Look at a sandbox."""
    found = await sandboxes.get(call.ports, call.actor, call.params["id"])
    return Response.json(sandbox_record(found))


async def _sandbox_patched(call: Request, versions: tuple[int, ...]) -> Response:
    found = await sandboxes.get(call.ports, call.actor, call.params["id"])
    return Response.json(sandbox_record(found))


@endpoint(
    "PATCH",
    "/accounts/me/sandboxes/{id}",
    body=SandboxPatch,
    responses={200: SandboxRecord},
    idempotent=True,
    rebuild=_sandbox_patched,
    **_facts("sandboxes_patch", Permission.TENANT_ADMIN, ValidationError, NotFound, Busy),
)
async def patch_sandbox(call: Request[dict[str, Any]]) -> Response:
    """Change a sandbox by a merge-patch.

    `null` takes away, and a masked secret that is sent back stays what it was. The whole must fit.
    """
    id = call.params["id"]
    found = await sandboxes.patch(call.ports, call.actor, id, call.body, call.receipt)
    return Response.json(sandbox_record(found))


@endpoint(
    "DELETE",
    "/accounts/me/sandboxes/{id}",
    responses={200: Deleted},
    idempotent=True,
    rebuild=_deleted,
    **_facts("sandboxes_delete", Permission.TENANT_ADMIN, NotFound, Busy),
)
async def delete_sandbox(call: Request) -> Response:
    """Delete a sandbox. Agents that refer to it are told so when they would use it."""
    await sandboxes.delete(call.ports, call.actor, call.params["id"], call.receipt)
    return Response.json(Deleted())


async def _workspace_created(call: Request, versions: tuple[int, ...]) -> Response:
    assert call.receipt is not None
    found = await account_records.created(call.ports, call.actor, workspaces.BOOK, call.receipt)
    return Response.json(workspace_record(found), 201)


@endpoint(
    "POST",
    "/accounts/me/workspaces",
    body=NewWorkspace,
    responses={201: WorkspaceRecord},
    idempotent=True,
    rebuild=_workspace_created,
    **_facts("shared_workspaces_create", Permission.TENANT_ADMIN, ValidationError, Busy),
)
async def create_workspace(call: Request[dict[str, Any]]) -> Response:
    """Make a workspace that agents share, by attaching it in their config.

    Its files are at `/v1/workspaces/{id}/files`.
    """
    made = await workspaces.create(call.ports, call.actor, call.body, call.receipt)
    return Response.json(workspace_record(made), 201)


@endpoint(
    "GET",
    "/accounts/me/workspaces",
    responses={200: WorkspaceRecords},
    **_facts("shared_workspaces_list", Permission.TENANT_READ),
)
async def list_workspaces(call: Request) -> Response:
    """List the shared workspaces."""
    found = await workspaces.listing(call.ports, call.actor)
    return Response.json(WorkspaceRecords(workspaces=[workspace_record(each) for each in found]))


@endpoint(
    "GET",
    "/accounts/me/workspaces/{id}",
    responses={200: WorkspaceRecord},
    **_facts("shared_workspaces_get", Permission.TENANT_READ, NotFound),
)
async def get_workspace(call: Request) -> Response:
    """Look at a shared workspace."""
    found = await workspaces.get(call.ports, call.actor, call.params["id"])
    return Response.json(workspace_record(found))


async def _workspace_patched(call: Request, versions: tuple[int, ...]) -> Response:
    found = await workspaces.get(call.ports, call.actor, call.params["id"])
    return Response.json(workspace_record(found))


@endpoint(
    "PATCH",
    "/accounts/me/workspaces/{id}",
    body=WorkspacePatch,
    responses={200: WorkspaceRecord},
    idempotent=True,
    rebuild=_workspace_patched,
    **_facts("shared_workspaces_patch", Permission.TENANT_ADMIN, ValidationError, NotFound, Busy),
)
async def patch_workspace(call: Request[dict[str, Any]]) -> Response:
    """Change a shared workspace by a merge-patch."""
    id = call.params["id"]
    found = await workspaces.patch(call.ports, call.actor, id, call.body, call.receipt)
    return Response.json(workspace_record(found))


@endpoint(
    "DELETE",
    "/accounts/me/workspaces/{id}",
    responses={200: Deleted},
    idempotent=True,
    rebuild=_deleted,
    **_facts("shared_workspaces_delete", Permission.TENANT_ADMIN, NotFound, Busy),
)
async def delete_workspace(call: Request) -> Response:
    """Delete a shared workspace and all files in it, in one commit.

    What runs have frozen of it stays as it was.
    """
    await workspaces.delete(call.ports, call.actor, call.params["id"], call.receipt)
    return Response.json(Deleted())


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
