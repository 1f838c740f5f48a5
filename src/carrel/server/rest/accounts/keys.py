"""Keys over HTTP: each is shown once, when it is made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from carrel.actions.accounts import keys
from carrel.actions.accounts.keys import KeySpec
from carrel.core.access import CredentialKind, Permission
from carrel.core.errors import Busy, Conflict, Forbidden, NotFound
from carrel.core.identifiers import TimestampMs
from carrel.core.store.record import Record
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Id, Line, PageQuery
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import When, rfc3339

_TAG: Final = "Keys"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class NewKey(RequestModel, frozen=True):
    name: Line
    kind: CredentialKind
    person_id: Annotated[Id, Meta(description="The caller, where absent.")] | None = None
    agent_id: Annotated[Id, Meta(description="An id or a slug.")] | None = None
    workspace: Id | None = None
    scopes: Annotated[list[Permission], Meta(min_length=1, max_length=100)] | None = None
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None


class Key(ResponseModel, frozen=True):
    """A key without what makes it one."""

    id: str
    name: str
    kind: CredentialKind
    person_id: str | None
    agent_id: str | None
    workspace: str | None
    scopes: list[Permission] | None
    prefix: Annotated[str, Meta(description="How the key begins, to recognise it.")]
    created_at: When
    expires_at: When | None
    last_used_at: When | None


class CreatedKey(Key, frozen=True):
    key: Annotated[str, Meta(description="The key itself, shown this once.")]


class Keys(ResponseModel, frozen=True):
    items: list[Key]
    next: str | None


def key_of(record: Record, used: TimestampMs | None) -> Key:
    body = record.body
    scopes = body["scopes"]
    return Key(
        id=record.id,
        name=body["name"],
        kind=CredentialKind(body["kind"]),
        person_id=body["personId"],
        agent_id=body["agentId"],
        workspace=body["workspace"],
        scopes=None if scopes is None else [Permission(scope) for scope in scopes],
        prefix=body["prefix"],
        created_at=rfc3339(record.created_at),
        expires_at=rfc3339(body["expires"]) if body["expires"] else None,
        last_used_at=None if used is None else rfc3339(used),
    )


def _milliseconds(at: datetime) -> TimestampMs:
    return (at - _EPOCH) // timedelta(milliseconds=1)


def _holding(new: NewKey) -> KeySpec:
    return KeySpec(
        name=new.name,
        kind=new.kind,
        person=new.person_id,
        agent=new.agent_id,
        workspace=new.workspace,
        scopes=None if new.scopes is None else frozenset(new.scopes),
        expires=None if new.expires_at is None else _milliseconds(new.expires_at),
    )


@endpoint(
    "GET",
    "/v1/keys",
    permission=Permission.TENANT_READ,
    query=PageQuery,
    responses={200: Keys},
    tag=_TAG,
)
async def listing(call: Request[None, PageQuery]) -> Response:
    """List one's own keys; with tenant:admin, all of the tenant."""
    query = call.query
    found = await keys.listing(call.ports, call.actor, cursor=query.cursor, limit=query.limit)
    used = await keys.last_used(call.ports, found.items)
    items = [key_of(*each) for each in zip(found.items, used, strict=True)]
    return Response.json(Keys(items=items, next=found.next))


@endpoint(
    "POST",
    "/v1/keys",
    permission=Permission.TENANT_READ,
    body=NewKey,
    responses={201: CreatedKey},
    refusals=(Forbidden, NotFound, Conflict, Busy),
    tag=_TAG,
    idempotent=True,
)
async def create(call: Request[NewKey]) -> Response:
    """Make a key.

    For oneself, or with tenant:admin for others, services and agents; never one that is worth
    more than the credential it is made with.
    """
    issued = await keys.create(call.ports, call.actor, _holding(call.body), call.receipt)
    shown = msgspec.structs.asdict(key_of(issued.key, None))
    return Response.json(CreatedKey(**shown, key=issued.token), 201, {"Cache-Control": "no-store"})


@endpoint(
    "GET",
    "/v1/keys/{id}",
    permission=Permission.TENANT_READ,
    responses={200: Key},
    refusals=(NotFound,),
    tag=_TAG,
)
async def get(call: Request) -> Response:
    """Look at a key: one's own, or with tenant:admin any."""
    key = await keys.get(call.ports, call.actor, call.params["id"])
    [used] = await keys.last_used(call.ports, (key,))
    return Response.json(key_of(key, used))


async def _revoked(call: Request, versions: tuple[int, ...]) -> Response:
    return Response.empty(204)


@endpoint(
    "DELETE",
    "/v1/keys/{id}",
    permission=Permission.TENANT_READ,
    responses={204: None},
    refusals=(NotFound, Busy),
    tag=_TAG,
    idempotent=True,
    rebuild=_revoked,
)
async def delete(call: Request) -> Response:
    """Revoke a key: one's own, or with tenant:admin any."""
    await keys.revoke(call.ports, call.actor, call.params["id"], call.receipt)
    return Response.empty(204)


ENDPOINTS: Final = (listing, create, get, delete)
