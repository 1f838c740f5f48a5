"""The server that commands speak to, by what they are given and the settings around."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from carrel.client import AsyncClient


@asynccontextmanager
async def reached(given: Mapping[str, Any]) -> AsyncIterator[tuple[AsyncClient, str]]:
    """A client, and the address that it speaks to. Raises Unopenable without a token."""
    from carrel.client import AsyncClient  # noqa: PLC0415 - so that --help stays quick
    from carrel.wiring.commands import Unopenable, settings_by  # noqa: PLC0415 - as above

    settings = settings_by(given)
    if not settings.token:
        raise Unopenable("a token is needed: CARREL_TOKEN, or --token")
    async with AsyncClient(settings.url, settings.token) as desk:
        yield desk, settings.url
