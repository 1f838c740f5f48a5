"""`carrel mcp`: serves one agent over the Model Context Protocol on stdio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from carrel.cli.console import run
from carrel.cli.names import AGENT


@click.command()
@click.argument("agent", type=AGENT)
@click.option("--url", help="Server URL; without it, the local store is opened.")
@click.option("--token", help="API token. Prefer CARREL_TOKEN.")
@click.option("--data", help="Directory for the database, bytes and keys.")
@click.option("--database-url", help="sqlite:///file or postgresql://…")
@click.option("--tenant", help="Slug of the agent's tenant; the first tenant by default.")
@click.option("--scope", type=click.Choice(["main", "shared"]), help="Audience of the session.")
@click.option("--session", help="Session id.")
@click.option("--run", "run_id", help="Run id: files are read from its snapshot.")
def mcp(agent: str, url: str | None, tenant: str | None, **options: Any) -> None:
    """Serve an agent's tools, files and prompt over stdio.

    AGENT is an id or a slug. An MCP client starts this command. With --url, messages are forwarded
    to a server, which needs a token. Without, the local store is used: as the token's owner if
    there is a token, else as the agent. Exit code 0: the client disconnected; 1: the agent could
    not be served.
    """
    values = {"scope": options.pop("scope"), "session": options.pop("session")}
    values["run"] = options.pop("run_id")
    query_params = {name: text for name, text in values.items() if text}
    overrides = {name: text for name, text in options.items() if text}
    if url is not None:
        run(lambda: _bridge(agent, query_params, {**overrides, "url": url}), as_json=False)
    else:
        run(lambda: _serve(agent, tenant, query_params, overrides), as_json=False)


async def _bridge(agent: str, query_params: Mapping[str, str], options: Mapping[str, Any]) -> None:
    from urllib.parse import quote, urlencode  # noqa: PLC0415 - so that --help stays quick

    from carrel.cli.mcp_bridge import McpBridge  # noqa: PLC0415 - as above
    from carrel.wiring.cli_settings import StoreUnavailable, load_settings  # noqa: PLC0415 - as above
    from carrel_client.httpx_import import httpx, tls_verify  # noqa: PLC0415 - as above

    settings = load_settings(options)
    if not settings.token:
        raise StoreUnavailable("no API token: set CARREL_TOKEN or pass --token")
    endpoint = f"{settings.url.rstrip('/')}/mcp/agents/{quote(agent, safe='')}"
    query = f"?{urlencode(query_params)}" if query_params else ""
    headers = {"Authorization": f"Bearer {settings.token}"}
    timeout = httpx.Timeout(30, read=None)
    verify = tls_verify(settings.url)
    async with httpx.AsyncClient(headers=headers, timeout=timeout, verify=verify) as http:
        await McpBridge(http, endpoint + query).run()


async def _serve(
    agent: str, tenant: str | None, query_params: Mapping[str, str], options: Mapping[str, Any]
) -> None:
    from carrel.wiring.mcp_stdio import serve  # noqa: PLC0415 - as above
    from carrel.wiring.open_store import load_settings, open_store  # noqa: PLC0415 - keeps --help quick

    async with open_store(options) as store:
        await serve(store, agent, load_settings(options).token, tenant, query_params)
