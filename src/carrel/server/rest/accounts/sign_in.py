"""REST endpoint that exchanges a one-time code for a token."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.accounts import sign_in
from carrel.core.errors import Busy, TooManyAttempts, Unauthenticated
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.accounts.people import PersonModel, person_to_model
from carrel.server.rest.accounts.tenants import TenantModel, tenant_to_model


class SignInBody(RequestModel, frozen=True):
    code: Annotated[str, Meta(min_length=1, max_length=200)]


class SignInModel(ResponseModel, frozen=True):
    token: Annotated[str, Meta(description="Valid for 30 days; returned only once.")]
    person: PersonModel
    tenant: TenantModel


@endpoint(
    "POST",
    "/v1/sign-in",
    public=True,
    body=SignInBody,
    responses={200: SignInModel},
    refusals=(Unauthenticated, TooManyAttempts, Busy),
    tag="Signing in",
    max_body=4096,
)
async def create(request: Request[SignInBody]) -> Response:
    """Exchange a one-time code for a token. A code expires after 1 hour."""
    result = await sign_in.redeem_code(request.ports, request.body.code)
    model = SignInModel(
        token=result.token,
        person=person_to_model(result.person),
        tenant=tenant_to_model(result.tenant),
    )
    return Response.json(model, headers={"Cache-Control": "no-store"})


ENDPOINTS: Final = (create,)
