"""Drafts over HTTP: a text as an agent would be served it, with nothing stored."""

from __future__ import annotations

from typing import Final

from carrel.actions.files import draft_preview
from carrel.actions.overlay import stacks
from carrel.core.access import Permission
from carrel.core.errors import NotFound, ValidationError, WorkspaceTooLarge
from carrel.core.identifiers import Path
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.files import LONGEST_BODY


class Draft(RequestModel, frozen=True):
    content: str


class PlaceholderUse(ResponseModel, frozen=True):
    token: str
    """The name of a placeholder, without its brackets."""
    value: str
    """What is written in its place."""


class RenderedDraft(ResponseModel, frozen=True):
    content: str
    """As it would be served."""
    tokens: list[PlaceholderUse]
    """The placeholders that were filled in, each once, in the order of the text."""


@endpoint(
    "POST",
    "/v1/agents/{id}/files/{path...}/render",
    body=Draft,
    permission=Permission.WORKSPACE_WRITE,
    responses={200: RenderedDraft},
    refusals=(ValidationError, NotFound, WorkspaceTooLarge),
    max_body=LONGEST_BODY,
    id="agents_files_render",
    tag="Files of agents",
)
async def render(call: Request[Draft]) -> Response:
    """Show a draft as the agent would be served it, and store nothing.

    Secrets are replaced as they would be on a write. A pinned file is served to the letter, so its
    placeholders stay.
    """
    stack = await stacks.agent_stack(call.ports, call.actor, call.params["id"])
    path = Path(call.params["path"])
    try:
        draft = call.body.content.encode()
    except UnicodeEncodeError:
        raise ValidationError("content is not valid Unicode") from None
    found = await draft_preview.render(call.ports, stack, path, draft)
    tokens = [PlaceholderUse(token=token, value=value) for token, value in found.filled.items()]
    return Response.json(RenderedDraft(content=found.content.decode(), tokens=tokens))


ENDPOINTS: Final = (render,)
