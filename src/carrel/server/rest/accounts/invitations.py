"""REST endpoint that invites a person to sign in."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.accounts import invitations
from carrel.core.access import Permission
from carrel.core.errors import Busy, Forbidden, NotFound
from carrel.server.http.cookies import SiteSettings
from carrel.server.http.endpoint import Endpoint, Request, ResponseModel, endpoint
from carrel.server.http.query_fields import Id
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

_SIGN_IN_PATH: Final = "/sign-in#code="


class InvitationModel(ResponseModel, frozen=True):
    """A one-time sign-in code for a person, and the link that carries it."""

    code: Annotated[str, Meta(description="For `POST /v1/sign-in`; returned only once.")]
    link: Annotated[str, Meta(description="Opens the console and signs the person in.")]
    expires_at: Rfc3339


def endpoints(site: SiteSettings) -> tuple[Endpoint, ...]:
    @endpoint(
        "POST",
        "/v1/people/{id}/invite",
        permission=Permission.TENANT_ADMIN,
        params={"id": Id},
        responses={201: InvitationModel},
        refusals=(Forbidden, NotFound, Busy),
        tag="People",
        id="people_invite",
        idempotent=True,
    )
    async def invite(request: Request) -> Response:
        """Invite a person: get a one-time sign-in link for them.

        For people who are owner or admin; only an owner may invite an owner. The link is valid for
        24 hours, and earlier invitations of the person end. The key that the person receives has no
        more permissions and lives no longer than the inviter's. The audit names both.
        """
        invitation = await invitations.invite(
            request.ports, request.actor, request.params["id"], request.idempotency_key
        )
        path = _SIGN_IN_PATH + invitation.code
        has_address = site.url or request.header(b"host")
        model = InvitationModel(
            code=invitation.code,
            link=site.absolute_url(path, request) if has_address else path,
            expires_at=rfc3339(invitation.expires),
        )
        return Response.json(model, 201, {"Cache-Control": "no-store"})

    return (invite,)
