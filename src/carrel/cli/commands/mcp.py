"""``carrel mcp``: one agent's desk for a client of the Model Context Protocol, over stdio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from carrel.cli.console import run


@click.command()
@click.argument("agent")
@click.option("--url", help="The server to speak to; else the store is opened here.")
@click.option("--token", help="Token to come with (rather CARREL_TOKEN).")
@click.option("--data", help="Directory for the database, bytes and keys.")
@click.option("--database-url", help="sqlite:///file or postgresql://…")
@click.option("--tenant", help="The agent's tenant, by its slug; the first by default.")
@click.option("--scope", type=click.Choice(["main", "shared"]), help="Who listens.")
@click.option("--session", help="The session that this is, by its id.")
@click.option("--run", "run_id", help="The run that this is: files are as it froze them.")
def mcp(agent: str, url: str | None, tenant: str | None, **given: Any) -> None:
    """Serve an agent's tools, files and prompt over stdio.

    AGENT is an id or a slug. A client of the Model Context Protocol starts this command and speaks
    to it. With --url it passes everything on to a server, and a token is needed. Without, it works
    on the store itself: with a token as whoever that is of, else as the agent. Exit code 0: the
    client has left; 1: there is nothing to serve.
    """
    said = {"scope": given.pop("scope"), "session": given.pop("session")}
    said["run"] = given.pop("run_id")
    asks = {name: text for name, text in said.items() if text}
    around = {name: text for name, text in given.items() if text}
    if url is not None:
        run(lambda: _bridge(agent, asks, {**around, "url": url}), as_json=False)
    else:
        run(lambda: _serve(agent, tenant, asks, around), as_json=False)


async def _bridge(agent: str, asks: Mapping[str, str], given: Mapping[str, Any]) -> None:
    from urllib.parse import quote, urlencode  # noqa: PLC0415 - so that --help stays quick

    from carrel.cli.mcp_bridge import Bridge  # noqa: PLC0415 - as above
    from carrel.wiring.cli_settings import StoreUnavailable, load_settings  # noqa: PLC0415 - as above
    from carrel_client.httpx_import import httpx, tls_verify  # noqa: PLC0415 - as above

    settings = load_settings(given)
    if not settings.token:
        raise StoreUnavailable("a token is needed: CARREL_TOKEN, or --token")
    at = f"{settings.url.rstrip('/')}/mcp/agents/{quote(agent, safe='')}"
    query = f"?{urlencode(asks)}" if asks else ""
    head = {"Authorization": f"Bearer {settings.token}"}
    limit = httpx.Timeout(30, read=None)
    trust = tls_verify(settings.url)
    async with httpx.AsyncClient(headers=head, timeout=limit, verify=trust) as http:
        await Bridge(http, at + query).cross()


async def _serve(
    agent: str, tenant: str | None, asks: Mapping[str, str], given: Mapping[str, Any]
) -> None:
    from carrel.wiring.mcp_stdio import serve  # noqa: PLC0415 - as above
    from carrel.wiring.open_store import load_settings, open_store  # noqa: PLC0415 - keeps --help quick

    async with open_store(given) as store:
        await serve(store, agent, load_settings(given).token, tenant, asks)
