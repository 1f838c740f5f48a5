"""REST endpoint that renders a draft as an agent would receive it."""

from __future__ import annotations

from typing import Final

from carrel.actions.files import draft_preview
from carrel.actions.overlay import stacks
from carrel.core.access import Permission
from carrel.core.errors import Forbidden, NotFound, ValidationError, WorkspaceTooLarge
from carrel.core.identifiers import Path
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.files import MAX_BODY_BYTES


class RenderDraftBody(RequestModel, frozen=True):
    content: str


class PlaceholderUseModel(ResponseModel, frozen=True):
    """A placeholder that was filled in."""

    token: str
    """Placeholder name, without braces."""
    value: str
    """Inserted value."""


class RenderedDraftModel(ResponseModel, frozen=True):
    content: str
    """The text as it would be served."""
    tokens: list[PlaceholderUseModel]
    """Placeholders that were filled in, once each, in text order."""


@endpoint(
    "POST",
    "/v1/agents/{id}/files/{path...}/render",
    body=RenderDraftBody,
    permission=Permission.WORKSPACE_WRITE,
    responses={200: RenderedDraftModel},
    refusals=(ValidationError, Forbidden, NotFound, WorkspaceTooLarge),
    max_body=MAX_BODY_BYTES,
    id="agents_files_render",
    tag="Files of agents",
)
async def render(request: Request[RenderDraftBody]) -> Response:
    """Render a draft as the agent would receive it. Stores nothing.

    Secrets are redacted as on a write. Pinned files are served verbatim, so their placeholders are
    kept. Also requires `workspace:read`.
    """
    request.actor.require(Permission.WORKSPACE_READ)
    stack = await stacks.agent_stack(request.ports, request.actor, request.params["id"])
    path = Path(request.params["path"])
    try:
        draft = request.body.content.encode()
    except UnicodeEncodeError:
        raise ValidationError("content is not valid Unicode") from None
    result = await draft_preview.render_draft(request.ports, stack, path, draft)
    tokens = [
        PlaceholderUseModel(token=token, value=value) for token, value in result.values.items()
    ]
    return Response.json(RenderedDraftModel(content=result.content.decode(), tokens=tokens))


ENDPOINTS: Final = (render,)
