"""REST endpoints for secrets. Values are write-only."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.accounts import secrets
from carrel.core.access import Permission
from carrel.core.errors import Busy, NotFound, ValidationError
from carrel.core.redaction.redactor import MAX_SECRET_BYTES, MIN_SECRET_LENGTH
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Id, Total
from carrel.server.http.response import Response
from carrel.server.rest.collections import RecordCollection, each_record
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

_TAG: Final = "Secrets"


class UpdateSecretBody(RequestModel, frozen=True):
    value: Annotated[str, Meta(min_length=MIN_SECRET_LENGTH, max_length=MAX_SECRET_BYTES)]


class SecretModel(ResponseModel, frozen=True):
    """A secret without its value."""

    id: str
    created_at: Rfc3339
    updated_at: Rfc3339


class SecretPageModel(ResponseModel, frozen=True):
    items: list[SecretModel]
    next: str | None
    total: Total


def secret_to_model(record: Record) -> SecretModel:
    return SecretModel(
        id=record.id, created_at=rfc3339(record.created_at), updated_at=rfc3339(record.updated_at)
    )


_SECRETS: Final = RecordCollection(
    "secrets",
    "/v1/secrets",
    _TAG,
    SecretModel,
    each_record(secret_to_model),
    secrets.get,
    read_permission=Permission.TENANT_ADMIN,
)


async def _rebuild_put(request: Request[UpdateSecretBody], versions: tuple[int, ...]) -> Response:
    record = await secrets.get(request.ports, request.actor, request.params["id"])
    return Response.json(secret_to_model(record))


@endpoint(
    "PUT",
    "/v1/secrets/{id}",
    permission=Permission.TENANT_ADMIN,
    body=UpdateSecretBody,
    params={"id": Id},
    responses={200: SecretModel},
    refusals=(ValidationError, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_put,
)
async def put(request: Request[UpdateSecretBody]) -> Response:
    """Create or replace a secret. Its value is redacted from every later write."""
    id, value = request.params["id"], request.body.value
    return Response.json(
        secret_to_model(
            await secrets.put(request.ports, request.actor, id, value, request.idempotency_key)
        )
    )


ENDPOINTS: Final = (
    _SECRETS.list("List secrets, without their values.", secrets.list_secrets, SecretPageModel),
    _SECRETS.get("Get a secret, without its value."),
    put,
    _SECRETS.delete(
        "Delete a secret. Its value is no longer redacted.", secrets.delete, (NotFound, Busy)
    ),
)
