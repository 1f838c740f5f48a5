"""The tools of an agent, over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.core.access import Permission
from carrel.core.errors import Forbidden, Malformed, Missing
from carrel.faces.rest.answer import Answer
from carrel.faces.rest.endpoint import Call, Received, Sent, endpoint
from carrel.faces.rest.fields import Id
from carrel.tools.calling import call as call_tool
from carrel.tools.calling import offered, seat
from carrel.tools.dialects import Dialect, described

_TAG: Final = "Tools"


class ToolsQuery(Received, frozen=True):
    dialect: Dialect = Dialect.MCP


class Tools(Sent, frozen=True):
    items: list[dict[str, Any]]
    """As the dialect has them."""
    next: str | None = None


class ToolCall(Received, frozen=True):
    arguments: Annotated[dict[str, Any], Meta(max_length=64)] = msgspec.field(default_factory=dict)
    session_id: Annotated[str, Meta(max_length=128)] | None = None
    scope: (
        Annotated[
            str, Meta(max_length=64, description="`main` or `shared`; what is neither is shared.")
        ]
        | None
    ) = None
    run_id: Id | None = None


class ToolReply(Sent, frozen=True):
    content: str
    is_error: bool
    structured: Any | msgspec.UnsetType = msgspec.UNSET
    """The same as `content`, where that is JSON."""


@endpoint(
    "GET",
    "/v1/agents/{id}/tools",
    query=ToolsQuery,
    permission=Permission.WORKSPACE_READ,
    answers={200: Tools},
    refuses=(Missing,),
    tag=_TAG,
)
async def tools_list(call: Call[Any, ToolsQuery]) -> Answer:
    """List the tools that an agent has, in the words of whoever offers them to a model."""
    sitting = await seat(call.world, call.actor, call.params["id"])
    told = [dict(described(tool, call.query.dialect)) for tool in offered(sitting.config)]
    return Answer.json(Tools(items=told))


@endpoint(
    "POST",
    "/v1/agents/{id}/tools/{name}",
    body=ToolCall,
    permission=Permission.WORKSPACE_READ,
    answers={200: ToolReply},
    refuses=(Malformed, Missing, Forbidden),
    tag=_TAG,
)
async def tools_call(call: Call[ToolCall]) -> Answer:
    """Call a tool for an agent. What the model can do something about comes back with `isError`."""
    asked = call.body
    sitting = await seat(
        call.world,
        call.actor,
        call.params["id"],
        scope=asked.scope,
        session=asked.session_id,
        run=asked.run_id,
    )
    reply = await call_tool(sitting, call.params["name"], asked.arguments)
    structured = msgspec.UNSET if reply.structured is None else reply.structured
    told = ToolReply(content=reply.content, is_error=reply.is_error, structured=structured)
    return Answer.json(told)


ENDPOINTS: Final = (tools_list, tools_call)
