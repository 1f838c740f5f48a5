"""REST endpoints for the browser session: sign in by code or token, sign out."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.accounts import credentials, sign_in
from carrel.core.access import Actor, CredentialKind, Permission, Role
from carrel.core.errors import Busy, Forbidden, TooManyAttempts, Unauthenticated, ValidationError
from carrel.ports import Ports
from carrel.server.http.cookies import SESSION_COOKIE, SiteSettings, find_cookie
from carrel.server.http.endpoint import Endpoint, Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.accounts.people import PersonModel, person_to_model
from carrel.server.rest.accounts.tenants import TenantModel, tenant_to_model
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

_TAG: Final = "Signing in"
_NO_STORE: Final = {"Cache-Control": "no-store"}
_NOT_A_SESSION: Final = "not a browser session; revoke a key with DELETE /v1/keys/{id}"


class CreateBrowserSessionBody(RequestModel, frozen=True):
    """Either a code or a token."""

    code: Annotated[str, Meta(max_length=200, description="Code of a one-time link.")] = ""
    token: Annotated[
        str, Meta(max_length=2000, description="A person's token; it is not stored.")
    ] = ""


class BrowserSessionModel(ResponseModel, frozen=True):
    """The caller: person, tenant, role and permissions."""

    person: PersonModel | None
    tenant: TenantModel
    kind: CredentialKind
    role: Role | None
    permissions: list[Permission]
    expires_at: Rfc3339 | None


async def load_session_model(ports: Ports, actor: Actor) -> BrowserSessionModel:
    credential = await sign_in.current_credential(ports, actor)
    return BrowserSessionModel(
        person=None if credential.person is None else person_to_model(credential.person),
        tenant=tenant_to_model(credential.tenant),
        kind=actor.kind,
        role=actor.role,
        permissions=sorted(actor.permissions),
        expires_at=rfc3339(credential.expires) if credential.expires else None,
    )


@endpoint("GET", "/v1/session", responses={200: BrowserSessionModel}, tag=_TAG)
async def get(request: Request) -> Response:
    """Get the caller's identity and permissions, for any credential."""
    return Response.json(await load_session_model(request.ports, request.actor), headers=_NO_STORE)


def endpoints(site: SiteSettings) -> tuple[Endpoint, ...]:
    return (get, _create_endpoint(site), _delete_endpoint(site))


def _create_endpoint(site: SiteSettings) -> Endpoint:
    @endpoint(
        "POST",
        "/v1/session",
        public=True,
        body=CreateBrowserSessionBody,
        responses={200: BrowserSessionModel},
        refusals=(Unauthenticated, Forbidden, TooManyAttempts, Busy),
        response_headers=("Set-Cookie",),
        tag=_TAG,
        max_body=4096,
    )
    async def create(request: Request[CreateBrowserSessionBody]) -> Response:
        """Create a browser session from a one-time code or a person's token.

        Sets a session cookie that holds its own key, valid for 30 days or as long as the token.
        Requests with the cookie that change data must send `X-Carrel-Csrf: 1` and come from this
        origin.
        """
        site.require_same_origin(request.headers, request.https)
        token = await _exchange_for_token(request)
        actor = await credentials.authenticate(request.ports, token)
        session = await load_session_model(request.ports, actor)
        session_cookie = site.session_cookie(token, sign_in.KEY_LIFETIME_MS // 1000, request.https)
        return Response.json(session, headers={**_NO_STORE, "Set-Cookie": session_cookie})

    return create


async def _exchange_for_token(request: Request[CreateBrowserSessionBody]) -> str:
    ports, code, token = request.ports, request.body.code, request.body.token
    if code and not token:
        signed_in = await sign_in.redeem_code(ports, code, sign_in.BROWSER_KEY_NAME)
        return signed_in.token
    if token and not code:
        return await sign_in.create_session(ports, token)
    raise ValidationError("send either a code or a token")


def _delete_endpoint(site: SiteSettings) -> Endpoint:
    @endpoint(
        "DELETE",
        "/v1/session",
        responses={204: None},
        refusals=(ValidationError, Busy),
        response_headers=("Set-Cookie",),
        tag=_TAG,
    )
    async def delete(request: Request) -> Response:
        """End the browser session: revoke its key and clear the cookie."""
        if not _is_cookie_request(request):
            raise ValidationError(_NOT_A_SESSION)
        site.require_same_origin(request.headers, request.https)
        await sign_in.end_session(request.ports, request.actor)
        return Response.empty(
            204, {**_NO_STORE, "Set-Cookie": site.expired_session_cookie(request.https)}
        )

    return delete


def _is_cookie_request(request: Request) -> bool:
    explicit_credential = request.header(b"authorization") or request.header(b"x-api-key")
    return not explicit_credential and bool(find_cookie(request.headers, SESSION_COOKIE))
