"""Tenants over HTTP: the platform makes them, their people see and rename their own."""

from __future__ import annotations

from typing import Final

import msgspec

from carrel.actions.accounts import tenants
from carrel.core.access import Permission
from carrel.core.errors import Busy, Conflict, WorkspaceTooLarge
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Email, Line, Slug
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import When, rfc3339

_TAG: Final = "Tenants"


class FirstOwner(RequestModel, frozen=True):
    name: Line
    email: Email


class NewTenant(RequestModel, frozen=True):
    slug: Slug
    name: Line
    owner: FirstOwner


class TenantPatch(RequestModel, frozen=True):
    name: Line | msgspec.UnsetType = msgspec.UNSET


class Tenant(ResponseModel, frozen=True):
    id: str
    slug: str
    name: str
    created_at: When
    updated_at: When


class CreatedTenant(Tenant, frozen=True):
    """A tenant, and the token of its owner, which is shown this once."""

    owner_id: str
    owner_token: str


def tenant_of(record: Record) -> Tenant:
    return Tenant(
        id=record.id,
        slug=record.body["slug"],
        name=record.body["name"],
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
    )


@endpoint(
    "POST",
    "/v1/tenants",
    platform=True,
    body=NewTenant,
    responses={201: CreatedTenant},
    refusals=(Conflict, Busy),
    tag=_TAG,
    idempotent=True,
)
async def create(call: Request[NewTenant]) -> Response:
    """Create a tenant with an owner. Only for the platform's token."""
    body = call.body
    made = await tenants.create(
        call.ports,
        body.slug,
        body.name,
        body.owner.name,
        body.owner.email,
        receipt=call.receipt,
    )
    tenant = msgspec.structs.asdict(tenant_of(made.tenant))
    created = CreatedTenant(**tenant, owner_id=made.owner.id, owner_token=made.token)
    return Response.json(created, 201, {"Cache-Control": "no-store"})


@endpoint(
    "GET", "/v1/tenants/me", permission=Permission.TENANT_READ, responses={200: Tenant}, tag=_TAG
)
async def get(call: Request) -> Response:
    """The tenant that the credential belongs to."""
    return Response.json(tenant_of(await tenants.me(call.ports, call.actor)))


async def _patched(call: Request[TenantPatch], versions: tuple[int, ...]) -> Response:
    return Response.json(tenant_of(await tenants.me(call.ports, call.actor)))


@endpoint(
    "PATCH",
    "/v1/tenants/me",
    permission=Permission.TENANT_ADMIN,
    body=TenantPatch,
    responses={200: Tenant},
    refusals=(WorkspaceTooLarge, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_patched,
)
async def patch(call: Request[TenantPatch]) -> Response:
    """Rename the tenant. Its slug stays."""
    if call.body.name is msgspec.UNSET:
        return await _patched(call, ())
    renamed = await tenants.rename(call.ports, call.actor, call.body.name, call.receipt)
    return Response.json(tenant_of(renamed))


ENDPOINTS: Final = (create, get, patch)
