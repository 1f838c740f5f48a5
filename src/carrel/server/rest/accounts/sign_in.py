"""Signing in over HTTP: a one-time code becomes a token for a browser."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.accounts import sign_in
from carrel.core.errors import Busy, Unauthenticated
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.accounts.people import Person, person_of
from carrel.server.rest.accounts.tenants import Tenant, tenant_of


class SignIn(RequestModel, frozen=True):
    code: Annotated[str, Meta(min_length=1, max_length=200)]


class SignedIn(ResponseModel, frozen=True):
    token: Annotated[str, Meta(description="Good for 30 days, and shown this once.")]
    person: Person
    tenant: Tenant


@endpoint(
    "POST",
    "/v1/sign-in",
    public=True,
    body=SignIn,
    responses={200: SignedIn},
    refusals=(Unauthenticated, Busy),
    tag="Signing in",
    max_body=4096,
)
async def create(call: Request[SignIn]) -> Response:
    """Trade a one-time code for a token. A code is good once, for an hour."""
    made = await sign_in.redeem(call.ports, call.body.code)
    shown = SignedIn(token=made.token, person=person_of(made.person), tenant=tenant_of(made.tenant))
    return Response.json(shown, headers={"Cache-Control": "no-store"})


ENDPOINTS: Final = (create,)
