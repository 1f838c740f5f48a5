"""Sandboxes and shared workspaces of an account over HTTP, in the dialect that their users know."""

from __future__ import annotations

from typing import Any, Final

from carrel.actions.sandbox import account_records as accounts
from carrel.actions.sandbox import sandboxes, workspaces
from carrel.core.access import Permission
from carrel.core.errors import Busy, Malformed, Missing, Refusal
from carrel.server.http.endpoint import Call, endpoint
from carrel.server.http.response import Answer
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
        "refuses": refuses,
        "loose_query": True,
        "max_body": _MOST,
        "manner": MANNER,
        "tag": _TAG,
    }


async def _deleted(call: Call, versions: tuple[int, ...]) -> Answer:
    return Answer.json(Deleted())


async def _sandbox_created(call: Call, versions: tuple[int, ...]) -> Answer:
    assert call.receipt is not None
    found = await accounts.created(call.world, call.actor, sandboxes.BOOK, call.receipt)
    return Answer.json(sandbox_record(found), 201)


@endpoint(
    "POST",
    "/accounts/me/sandboxes",
    body=NewSandbox,
    answers={201: SandboxRecord},
    idempotent=True,
    rebuild=_sandbox_created,
    **_facts("sandboxes_create", Permission.TENANT_ADMIN, Malformed, Busy),
)
async def create_sandbox(call: Call[dict[str, Any]]) -> Answer:
    """Describe a sandbox: a provider, limits, variables, and who is asked before it is used.

    Where nothing is said of it, the provider is `local`, the permissionMode `ask`, and there is no
    network.
    """
    made = await sandboxes.create(call.world, call.actor, call.body, call.receipt)
    return Answer.json(sandbox_record(made), 201)


@endpoint(
    "GET",
    "/accounts/me/sandboxes",
    answers={200: SandboxRecords},
    **_facts("sandboxes_list", Permission.TENANT_READ),
)
async def list_sandboxes(call: Call) -> Answer:
    """List the sandboxes."""
    found = await sandboxes.listing(call.world, call.actor)
    return Answer.json(SandboxRecords(sandboxes=[sandbox_record(each) for each in found]))


@endpoint(
    "GET",
    "/accounts/me/sandboxes/{id}",
    answers={200: SandboxRecord},
    **_facts("sandboxes_get", Permission.TENANT_READ, Missing),
)
async def get_sandbox(call: Call) -> Answer:
    """Look at a sandbox."""
    found = await sandboxes.get(call.world, call.actor, call.params["id"])
    return Answer.json(sandbox_record(found))


async def _sandbox_patched(call: Call, versions: tuple[int, ...]) -> Answer:
    found = await sandboxes.get(call.world, call.actor, call.params["id"])
    return Answer.json(sandbox_record(found))


@endpoint(
    "PATCH",
    "/accounts/me/sandboxes/{id}",
    body=SandboxPatch,
    answers={200: SandboxRecord},
    idempotent=True,
    rebuild=_sandbox_patched,
    **_facts("sandboxes_patch", Permission.TENANT_ADMIN, Malformed, Missing, Busy),
)
async def patch_sandbox(call: Call[dict[str, Any]]) -> Answer:
    """Change a sandbox by a merge-patch.

    `null` takes away, and a masked secret that is sent back stays what it was. The whole must fit.
    """
    id = call.params["id"]
    found = await sandboxes.patch(call.world, call.actor, id, call.body, call.receipt)
    return Answer.json(sandbox_record(found))


@endpoint(
    "DELETE",
    "/accounts/me/sandboxes/{id}",
    answers={200: Deleted},
    idempotent=True,
    rebuild=_deleted,
    **_facts("sandboxes_delete", Permission.TENANT_ADMIN, Missing, Busy),
)
async def delete_sandbox(call: Call) -> Answer:
    """Delete a sandbox. Agents that refer to it are told so when they would use it."""
    await sandboxes.delete(call.world, call.actor, call.params["id"], call.receipt)
    return Answer.json(Deleted())


async def _workspace_created(call: Call, versions: tuple[int, ...]) -> Answer:
    assert call.receipt is not None
    found = await accounts.created(call.world, call.actor, workspaces.BOOK, call.receipt)
    return Answer.json(workspace_record(found), 201)


@endpoint(
    "POST",
    "/accounts/me/workspaces",
    body=NewWorkspace,
    answers={201: WorkspaceRecord},
    idempotent=True,
    rebuild=_workspace_created,
    **_facts("shared_workspaces_create", Permission.TENANT_ADMIN, Malformed, Busy),
)
async def create_workspace(call: Call[dict[str, Any]]) -> Answer:
    """Make a workspace that agents share, by attaching it in their config.

    Its files are at `/v1/workspaces/{id}/files`.
    """
    made = await workspaces.create(call.world, call.actor, call.body, call.receipt)
    return Answer.json(workspace_record(made), 201)


@endpoint(
    "GET",
    "/accounts/me/workspaces",
    answers={200: WorkspaceRecords},
    **_facts("shared_workspaces_list", Permission.TENANT_READ),
)
async def list_workspaces(call: Call) -> Answer:
    """List the shared workspaces."""
    found = await workspaces.listing(call.world, call.actor)
    return Answer.json(WorkspaceRecords(workspaces=[workspace_record(each) for each in found]))


@endpoint(
    "GET",
    "/accounts/me/workspaces/{id}",
    answers={200: WorkspaceRecord},
    **_facts("shared_workspaces_get", Permission.TENANT_READ, Missing),
)
async def get_workspace(call: Call) -> Answer:
    """Look at a shared workspace."""
    found = await workspaces.get(call.world, call.actor, call.params["id"])
    return Answer.json(workspace_record(found))


async def _workspace_patched(call: Call, versions: tuple[int, ...]) -> Answer:
    found = await workspaces.get(call.world, call.actor, call.params["id"])
    return Answer.json(workspace_record(found))


@endpoint(
    "PATCH",
    "/accounts/me/workspaces/{id}",
    body=WorkspacePatch,
    answers={200: WorkspaceRecord},
    idempotent=True,
    rebuild=_workspace_patched,
    **_facts("shared_workspaces_patch", Permission.TENANT_ADMIN, Malformed, Missing, Busy),
)
async def patch_workspace(call: Call[dict[str, Any]]) -> Answer:
    """Change a shared workspace by a merge-patch."""
    id = call.params["id"]
    found = await workspaces.patch(call.world, call.actor, id, call.body, call.receipt)
    return Answer.json(workspace_record(found))


@endpoint(
    "DELETE",
    "/accounts/me/workspaces/{id}",
    answers={200: Deleted},
    idempotent=True,
    rebuild=_deleted,
    **_facts("shared_workspaces_delete", Permission.TENANT_ADMIN, Missing, Busy),
)
async def delete_workspace(call: Call) -> Answer:
    """Delete a shared workspace and all files in it, in one commit.

    What runs have frozen of it stays as it was.
    """
    await workspaces.delete(call.world, call.actor, call.params["id"], call.receipt)
    return Answer.json(Deleted())


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
