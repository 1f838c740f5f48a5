"""Secrets over HTTP: their values go in and never come out."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.accounts import secrets
from carrel.core.access import Permission
from carrel.core.errors import Busy, NotFound, ValidationError
from carrel.core.redaction.redactor import LEAST_CHARACTERS, MOST_BYTES
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Id, PageQuery
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import When, rfc3339

_TAG: Final = "Secrets"


class SecretBody(RequestModel, frozen=True):
    value: Annotated[str, Meta(min_length=LEAST_CHARACTERS, max_length=MOST_BYTES)]


class Secret(ResponseModel, frozen=True):
    """A secret without its value."""

    id: str
    created_at: When
    updated_at: When


class Secrets(ResponseModel, frozen=True):
    items: list[Secret]
    next: str | None


def secret_of(record: Record) -> Secret:
    return Secret(
        id=record.id, created_at=rfc3339(record.created_at), updated_at=rfc3339(record.updated_at)
    )


@endpoint(
    "GET",
    "/v1/secrets",
    permission=Permission.TENANT_ADMIN,
    query=PageQuery,
    responses={200: Secrets},
    tag=_TAG,
)
async def listing(call: Request[None, PageQuery]) -> Response:
    """List the secrets, without their values."""
    query = call.query
    found = await secrets.listing(call.ports, call.actor, cursor=query.cursor, limit=query.limit)
    return Response.json(Secrets(items=[secret_of(one) for one in found.items], next=found.next))


@endpoint(
    "GET",
    "/v1/secrets/{id}",
    permission=Permission.TENANT_ADMIN,
    responses={200: Secret},
    refusals=(NotFound,),
    tag=_TAG,
)
async def get(call: Request) -> Response:
    """Look at a secret, without its value."""
    return Response.json(secret_of(await secrets.get(call.ports, call.actor, call.params["id"])))


async def _kept(call: Request[SecretBody], versions: tuple[int, ...]) -> Response:
    return Response.json(secret_of(await secrets.get(call.ports, call.actor, call.params["id"])))


@endpoint(
    "PUT",
    "/v1/secrets/{id}",
    permission=Permission.TENANT_ADMIN,
    body=SecretBody,
    params={"id": Id},
    responses={200: Secret},
    refusals=(ValidationError, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_kept,
)
async def put(call: Request[SecretBody]) -> Response:
    """Keep a secret: from now on its value is redacted from every write."""
    id, value = call.params["id"], call.body.value
    return Response.json(
        secret_of(await secrets.put(call.ports, call.actor, id, value, call.receipt))
    )


async def _deleted(call: Request, versions: tuple[int, ...]) -> Response:
    return Response.empty(204)


@endpoint(
    "DELETE",
    "/v1/secrets/{id}",
    permission=Permission.TENANT_ADMIN,
    responses={204: None},
    refusals=(NotFound, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_deleted,
)
async def delete(call: Request) -> Response:
    """Forget a secret: its value is no longer redacted."""
    await secrets.delete(call.ports, call.actor, call.params["id"], call.receipt)
    return Response.empty(204)


ENDPOINTS: Final = (listing, get, put, delete)
