"""Signing in at a browser: a code or a token becomes a session, which a cookie keeps."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.accounts import credentials, sign_in
from carrel.core.access import Actor, CredentialKind, Permission, Role
from carrel.core.errors import Busy, Forbidden, Unauthenticated, ValidationError
from carrel.ports import Ports
from carrel.server.http.cookies import SESSION, SiteSettings, cookie
from carrel.server.http.endpoint import Endpoint, Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.accounts.people import Person, person_of
from carrel.server.rest.accounts.tenants import Tenant, tenant_of
from carrel.server.rest.files.file_models import When, rfc3339

_TAG: Final = "Signing in"
_FRESH: Final = {"Cache-Control": "no-store"}
_NO_SESSION: Final = "this credential is no browser's session: revoke a key at /v1/keys/{id}"


class NewSession(RequestModel, frozen=True):
    """One of both."""

    code: Annotated[str, Meta(max_length=200, description="Of a one-time link.")] = ""
    token: Annotated[str, Meta(max_length=2000, description="A person's; it is not kept.")] = ""


class Session(ResponseModel, frozen=True):
    person: Person | None
    tenant: Tenant
    kind: CredentialKind
    role: Role | None
    permissions: list[Permission]
    expires_at: When | None


async def shown(ports: Ports, actor: Actor) -> Session:
    held = await sign_in.current_credential(ports, actor)
    return Session(
        person=None if held.person is None else person_of(held.person),
        tenant=tenant_of(held.tenant),
        kind=actor.kind,
        role=actor.role,
        permissions=sorted(actor.permissions),
        expires_at=rfc3339(held.expires) if held.expires else None,
    )


@endpoint("GET", "/v1/session", responses={200: Session}, tag=_TAG)
async def get(call: Request) -> Response:
    """Who is asking, and what they may do: by a session's cookie or by any other credential."""
    return Response.json(await shown(call.ports, call.actor), headers=_FRESH)


def endpoints(site: SiteSettings) -> tuple[Endpoint, ...]:
    return (get, _creating(site), _ending(site))


def _creating(site: SiteSettings) -> Endpoint:
    @endpoint(
        "POST",
        "/v1/session",
        public=True,
        body=NewSession,
        responses={200: Session},
        refusals=(Unauthenticated, Forbidden, Busy),
        response_headers=("Set-Cookie",),
        tag=_TAG,
        max_body=4096,
    )
    async def create(call: Request[NewSession]) -> Response:
        """Begin a session by a one-time code or a person's token.

        It is kept in a cookie, which holds a key of its own that lasts for 30 days, or for as long
        as the token does. With the cookie, what changes something must carry `X-Carrel-Csrf: 1` and
        come from this origin.
        """
        site.refuse_strangers(call.headers, call.https)
        token = await _token(call)
        actor = await credentials.authenticate(call.ports, token)
        session = await shown(call.ports, actor)
        kept = site.kept(token, sign_in.KEY_LIFE // 1000, call.https)
        return Response.json(session, headers={**_FRESH, "Set-Cookie": kept})

    return create


async def _token(call: Request[NewSession]) -> str:
    code, token = call.body.code, call.body.token
    if code and not token:
        return (await sign_in.redeem(call.ports, code, sign_in.BROWSER)).token
    if token and not code:
        return await sign_in.begin(call.ports, token)
    raise ValidationError("a session begins with a code or with a token, and needs one of both")


def _ending(site: SiteSettings) -> Endpoint:
    @endpoint(
        "DELETE",
        "/v1/session",
        responses={204: None},
        refusals=(ValidationError, Busy),
        response_headers=("Set-Cookie",),
        tag=_TAG,
    )
    async def delete(call: Request) -> Response:
        """End the browser's session: its key opens nothing more, and the cookie goes."""
        if not _by_cookie(call):
            raise ValidationError(_NO_SESSION)
        site.refuse_strangers(call.headers, call.https)
        await sign_in.end(call.ports, call.actor)
        return Response.empty(204, {**_FRESH, "Set-Cookie": site.forgotten(call.https)})

    return delete


def _by_cookie(call: Request) -> bool:
    other = call.header(b"authorization") or call.header(b"x-api-key")
    return not other and bool(cookie(call.headers, SESSION))
