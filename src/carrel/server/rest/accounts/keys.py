"""REST endpoints for keys. A key's secret is returned once, on creation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.actions.accounts import key_rotation, keys
from carrel.actions.accounts.keys import KeySpec
from carrel.core.access import CredentialKind, Permission
from carrel.core.accounts import key_from_record
from carrel.core.errors import Busy, Conflict, Forbidden, NotFound
from carrel.core.identifiers import TimestampMs
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Id, Line, Total
from carrel.server.http.response import Response
from carrel.server.rest.collections import RecordCollection
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

_TAG: Final = "Keys"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class CreateKeyBody(RequestModel, frozen=True):
    name: Line
    kind: CredentialKind
    person_id: Annotated[Id, Meta(description="Only the caller.")] | None = None
    agent_id: Annotated[Id, Meta(description="Id or slug.")] | None = None
    workspace: Id | None = None
    scopes: Annotated[list[Permission], Meta(min_length=1, max_length=100)] | None = None
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None


class KeyModel(ResponseModel, frozen=True):
    """A key without its secret."""

    id: str
    name: str
    kind: CredentialKind
    person_id: str | None
    agent_id: str | None
    workspace: str | None
    scopes: list[Permission] | None
    prefix: Annotated[str, Meta(description="First characters of the key.")]
    created_at: Rfc3339
    expires_at: Rfc3339 | None
    last_used_at: Rfc3339 | None
    created_by_key_id: str | None
    """Key that created or replaced it; null for a sign-in, and for older keys."""


class RevokeKeyQuery(RequestModel, frozen=True):
    created_keys: Annotated[
        bool,
        Meta(
            description="Also revoke the keys and invitations that the key led to: those that it"
            " created or rotated, and theirs. For a key that was stolen."
        ),
    ] = False


class CreatedKeyModel(KeyModel, frozen=True):
    key: Annotated[str, Meta(description="The key itself; returned only once.")]


class KeyPageModel(ResponseModel, frozen=True):
    items: list[KeyModel]
    next: str | None
    total: Total


def key_to_model(record: Record, last_used: TimestampMs | None) -> KeyModel:
    key = key_from_record(record)
    return KeyModel(
        id=record.id,
        name=key.name,
        kind=key.kind,
        person_id=key.person_id,
        agent_id=key.agent_id,
        workspace=key.workspace,
        scopes=key.scopes,
        prefix=key.prefix,
        created_at=rfc3339(record.created_at),
        expires_at=rfc3339(key.expires) if key.expires else None,
        last_used_at=None if last_used is None else rfc3339(last_used),
        created_by_key_id=key.creators[-1] if key.creators else None,
    )


def _to_milliseconds(moment: datetime) -> TimestampMs:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _key_spec(body: CreateKeyBody) -> KeySpec:
    return KeySpec(
        name=body.name,
        kind=body.kind,
        person=body.person_id,
        agent=body.agent_id,
        workspace=body.workspace,
        scopes=None if body.scopes is None else frozenset(body.scopes),
        expires=None if body.expires_at is None else _to_milliseconds(body.expires_at),
    )


async def _load_models(request: Request[Any, Any], records: Sequence[Record]) -> list[KeyModel]:
    last_used = await keys.last_used(request.ports, tuple(records))
    return [key_to_model(*key_and_use) for key_and_use in zip(records, last_used, strict=True)]


@endpoint(
    "POST",
    "/v1/keys",
    permission=Permission.TENANT_READ,
    body=CreateKeyBody,
    responses={201: CreatedKeyModel},
    refusals=(Forbidden, NotFound, Conflict, Busy),
    tag=_TAG,
    idempotent=True,
)
async def create(request: Request[CreateKeyBody]) -> Response:
    """Create a key.

    For yourself, or with tenant:admin for services and agents; invite other people instead. A key
    never has more permissions and never lives longer than the key that creates it: without
    `expiresAt` it ends with that key.
    """
    issued = await keys.create(
        request.ports, request.actor, _key_spec(request.body), request.idempotency_key
    )
    return _issued_response(issued)


@endpoint(
    "POST",
    "/v1/keys/{id}/rotate",
    params={"id": Id},
    responses={201: CreatedKeyModel},
    refusals=(Forbidden, NotFound, Conflict, Busy),
    tag=_TAG,
    idempotent=True,
)
async def rotate(request: Request) -> Response:
    """Replace a key by a new one; the old one stays valid for an hour.

    The new key has the same holder, scopes and end. Any key may rotate itself. A person may rotate
    their keys, and tenant:admin those of services and agents, with a key that is worth as much and
    lives as long.
    """
    id = request.params["id"]
    return _issued_response(
        await key_rotation.rotate(request.ports, request.actor, id, request.idempotency_key)
    )


def _issued_response(issued: keys.IssuedKey) -> Response:
    fields = msgspec.structs.asdict(key_to_model(issued.key, None))
    return Response.json(
        CreatedKeyModel(**fields, key=issued.token), 201, {"Cache-Control": "no-store"}
    )


async def _respond_revoked(request: Request[None, RevokeKeyQuery], _: object = ()) -> Response:
    return Response.empty(204)


@endpoint(
    "DELETE",
    "/v1/keys/{id}",
    permission=Permission.TENANT_READ,
    query=RevokeKeyQuery,
    responses={204: None},
    refusals=(Forbidden, NotFound, Busy),
    id="keys_delete",
    tag=_TAG,
    idempotent=True,
    rebuild=_respond_revoked,
)
async def revoke(request: Request[None, RevokeKeyQuery]) -> Response:
    """Revoke a key: itself, your own with no more permissions, or with tenant:admin any.

    Keys that it created stay valid, unless `createdKeys` is sent.
    """
    await keys.revoke(
        request.ports,
        request.actor,
        request.params["id"],
        request.idempotency_key,
        with_created=request.query.created_keys,
    )
    return await _respond_revoked(request)


_KEYS: Final = RecordCollection(
    "keys",
    "/v1/keys",
    _TAG,
    KeyModel,
    _load_models,
    keys.get,
    write_permission=Permission.TENANT_READ,
)
ENDPOINTS: Final = (
    _KEYS.list(
        "List your keys; with tenant:admin, all keys of the tenant.", keys.list_keys, KeyPageModel
    ),
    create,
    rotate,
    _KEYS.get("Get a key: your own, or with tenant:admin any."),
    revoke,
)
