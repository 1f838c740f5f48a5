"""REST endpoint for the snippets that connect a runtime to an agent."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from carrel.actions.agents import agents
from carrel.core.access import Permission
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.connection_snippets import (
    KEY_PLACEHOLDER,
    ConnectionTarget,
    connection_snippets,
)
from carrel.core.errors import NotFound
from carrel.server.http.cookies import SiteSettings
from carrel.server.http.endpoint import Endpoint, Request, ResponseModel, endpoint
from carrel.server.http.query_fields import Id
from carrel.server.http.response import Response

_LOCAL_HOST: Final = "127.0.0.1:8787"
"""Host of a server that a program without one may start."""


class ConnectionSnippetModel(ResponseModel, frozen=True):
    """Code, a command or configuration, to be copied."""

    id: str
    name: str
    group: Literal["runtime", "mcp"]
    language: Literal["shell", "python", "json", "toml"]
    install: Annotated[str, Meta(description="Command that installs what it needs; or empty.")]
    file: Annotated[str, Meta(description="Configuration file that it belongs into; or empty.")]
    text: str


class ConnectionModel(ResponseModel, frozen=True):
    """How programs connect to an agent."""

    url: str
    mcp_url: str
    key_placeholder: Annotated[str, Meta(description="Stands for the key in every text.")]
    snippets: list[ConnectionSnippetModel]


def endpoints(site: SiteSettings) -> tuple[Endpoint, ...]:
    @endpoint(
        "GET",
        "/v1/agents/{id}/connection",
        permission=Permission.TENANT_READ,
        params={"id": Id},
        responses={200: ConnectionModel},
        refusals=(NotFound,),
        tag="Agents",
        id="agents_connection",
    )
    async def connection(request: Request) -> Response:
        """Get snippets that connect runtimes and MCP clients to an agent.

        They name this server's public URL and have a placeholder for a key of the agent.
        """
        record = await agents.get(request.ports, request.actor, request.params["id"])
        host = request.header(b"host") or _LOCAL_HOST
        target = ConnectionTarget(
            site.base_url(host, request.https), agent_from_record(record).slug
        )
        return Response.json(_connection_model(target))

    return (connection,)


def _connection_model(target: ConnectionTarget) -> ConnectionModel:
    return ConnectionModel(
        url=target.url,
        mcp_url=target.mcp_url,
        key_placeholder=KEY_PLACEHOLDER,
        snippets=[
            ConnectionSnippetModel(
                id=snippet.id,
                name=snippet.name,
                group=snippet.group,
                language=snippet.language,
                install=snippet.install,
                file=snippet.file,
                text=snippet.text,
            )
            for snippet in connection_snippets(target)
        ],
    )
