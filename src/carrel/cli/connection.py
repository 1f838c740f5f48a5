"""Connects client commands to a server, from options and settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from carrel.cli.console import run

if TYPE_CHECKING:
    from carrel.cli.targets import TargetOwner
    from carrel_client import AsyncClient, Files
    from carrel_client.drivers import AsyncDriver

Result = TypeVar("Result")


@asynccontextmanager
async def connect(options: Mapping[str, Any]) -> AsyncIterator[tuple[AsyncClient, str]]:
    """Open a client and yield it with the server URL.

    Raises StoreUnavailable without a token.
    """
    from carrel.wiring.cli_settings import StoreUnavailable, load_settings  # noqa: PLC0415 - as above
    from carrel_client import AsyncClient  # noqa: PLC0415 - so that --help stays quick

    settings = load_settings(options)
    if not settings.token:
        raise StoreUnavailable("no API token: set CARREL_TOKEN or pass --token")
    async with AsyncClient(settings.url, settings.token) as client:
        yield client, settings.url


def run_on_server(
    work: Callable[[AsyncClient], Coroutine[Any, Any, Result]],
    options: Mapping[str, Any],
    *,
    as_json: bool,
) -> Result:
    """Run `work` with a client and return its result.

    If the server refuses, prints the error and exits with code 1.
    """
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    async def call_server() -> Result:
        async with connect(options) as (client, _):
            return await work(client)

    return run(call_server, as_json=as_json, expected=(CarrelError,))


def files_of(client: AsyncClient, owner: TargetOwner) -> Files[AsyncDriver]:
    """Return the file API of an owner. Sends no request."""
    match owner.kind:
        case "agents":
            return client.agent(owner.name)
        case "templates":
            return client.template(owner.name)
        case "workspaces":
            return client.workspace(owner.name)
        case _:
            return client.defaults
