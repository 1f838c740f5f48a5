"""A world for a program of its own: no server, and nothing of the environment is read."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path as File
from typing import Any, Final

from carrel.actions.accounts import tenants
from carrel.server.python import Carrel
from carrel.settings import Settings, load
from carrel.wiring.ports import open_world

_SQLITE: Final = "sqlite:///"


@asynccontextmanager
async def open_carrel(
    where: str | os.PathLike[str], given: Mapping[str, Any]
) -> AsyncIterator[Carrel]:
    """The desk of the first tenant, which an empty store is given. Raises Unusable."""
    async with open_world(settings_for(where, given)) as opened:
        await tenants.bootstrap(opened.ports, opened.settings.owner_token or None)
        desk = await Carrel.of(opened.ports, tenants.FIRST)
        try:
            yield desk
        finally:
            await desk.close()


def settings_for(where: str | os.PathLike[str], given: Mapping[str, Any]) -> Settings:
    """A file's key lies beside it; what a URL does not say is as it is by default."""
    place = os.fspath(where)
    if "://" not in place:
        found = {"data": place}
    else:
        found = {"database_url": place}
        if place.startswith(_SQLITE):
            found["data"] = str(File(place.removeprefix(_SQLITE)).parent)
    return load({**found, **given}, environ={}, file=File(os.devnull))
