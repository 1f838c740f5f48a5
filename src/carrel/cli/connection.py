"""The server that commands speak to, by what they are given and the settings around."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from carrel.cli.console import run

if TYPE_CHECKING:
    from carrel.cli.targets import TargetOwner
    from carrel_client import AsyncClient, Files
    from carrel_client.drivers import AsyncDriver

Result = TypeVar("Result")

LONGEST_PREFIX: Final = 256
"""Characters by which a server takes files to be chosen; what is longer is chosen here."""


@asynccontextmanager
async def connect(given: Mapping[str, Any]) -> AsyncIterator[tuple[AsyncClient, str]]:
    """A client, and the address that it speaks to. Raises Unopenable without a token."""
    from carrel.wiring.cli_settings import StoreUnavailable, load_settings  # noqa: PLC0415 - as above
    from carrel_client import AsyncClient  # noqa: PLC0415 - so that --help stays quick

    settings = load_settings(given)
    if not settings.token:
        raise StoreUnavailable("a token is needed: CARREL_TOKEN, or --token")
    async with AsyncClient(settings.url, settings.token) as desk:
        yield desk, settings.url


def run_on_server(
    work: Callable[[AsyncClient], Coroutine[Any, Any, Result]],
    given: Mapping[str, Any],
    *,
    as_json: bool,
) -> Result:
    """Have something done by the server; what it refuses is said in a line, with exit code 1."""
    from carrel_client import CarrelError  # noqa: PLC0415 - so that --help stays quick

    async def asked() -> Result:
        async with connect(given) as (desk, _):
            return await work(desk)

    return run(asked, as_json=as_json, expects=(CarrelError,))


def files_at(desk: AsyncClient, place: TargetOwner) -> Files[AsyncDriver]:
    """The files of a place. Nothing is asked for yet."""
    match place.kind:
        case "agents":
            return desk.agent(place.name)
        case "templates":
            return desk.template(place.name)
        case "workspaces":
            return desk.workspace(place.name)
        case _:
            return desk.defaults
