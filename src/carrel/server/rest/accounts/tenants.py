"""REST endpoints for tenants."""

from __future__ import annotations

from typing import Final

import msgspec

from carrel.actions.accounts import tenants
from carrel.core.access import Permission
from carrel.core.accounts import tenant_from_record
from carrel.core.errors import Busy, Conflict, WorkspaceTooLarge
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Email, Line, Slug
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

_TAG: Final = "Tenants"


class TenantOwnerBody(RequestModel, frozen=True):
    name: Line
    email: Email


class CreateTenantBody(RequestModel, frozen=True):
    slug: Slug
    name: Line
    owner: TenantOwnerBody


class UpdateTenantBody(RequestModel, frozen=True):
    name: Line | msgspec.UnsetType = msgspec.UNSET


class TenantModel(ResponseModel, frozen=True):
    id: str
    slug: str
    name: str
    created_at: Rfc3339
    updated_at: Rfc3339


class CreatedTenantModel(TenantModel, frozen=True):
    """A tenant and its owner's token, which is returned only once."""

    owner_id: str
    owner_token: str


def tenant_to_model(record: Record) -> TenantModel:
    tenant = tenant_from_record(record)
    return TenantModel(
        id=record.id,
        slug=tenant.slug,
        name=tenant.name,
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
    )


@endpoint(
    "POST",
    "/v1/tenants",
    platform=True,
    body=CreateTenantBody,
    responses={201: CreatedTenantModel},
    refusals=(Conflict, Busy),
    tag=_TAG,
    idempotent=True,
)
async def create(request: Request[CreateTenantBody]) -> Response:
    """Create a tenant with an owner. Requires the platform token."""
    body = request.body
    result = await tenants.create(
        request.ports,
        body.slug,
        body.name,
        body.owner.name,
        body.owner.email,
        idempotency_key=request.idempotency_key,
    )
    tenant = msgspec.structs.asdict(tenant_to_model(result.tenant))
    model = CreatedTenantModel(**tenant, owner_id=result.owner.id, owner_token=result.token)
    return Response.json(model, 201, {"Cache-Control": "no-store"})


@endpoint(
    "GET",
    "/v1/tenants/me",
    permission=Permission.TENANT_READ,
    responses={200: TenantModel},
    tag=_TAG,
)
async def get(request: Request) -> Response:
    """Get the tenant of the credential."""
    return Response.json(tenant_to_model(await tenants.get_current(request.ports, request.actor)))


async def _rebuild_update(
    request: Request[UpdateTenantBody], versions: tuple[int, ...]
) -> Response:
    return Response.json(tenant_to_model(await tenants.get_current(request.ports, request.actor)))


@endpoint(
    "PATCH",
    "/v1/tenants/me",
    permission=Permission.TENANT_ADMIN,
    body=UpdateTenantBody,
    responses={200: TenantModel},
    refusals=(WorkspaceTooLarge, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_update,
)
async def patch(request: Request[UpdateTenantBody]) -> Response:
    """Rename the tenant. The slug does not change."""
    if request.body.name is msgspec.UNSET:
        return await _rebuild_update(request, ())
    renamed = await tenants.rename(
        request.ports, request.actor, request.body.name, request.idempotency_key
    )
    return Response.json(tenant_to_model(renamed))


ENDPOINTS: Final = (create, get, patch)
