"""The complete REST API over each kind of store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path as File

import pytest
from tests.support.full_app import Whole, app_of, whole
from tests.support.stores import world_of

from carrel.adapters.postgres import open_store

STORES = ("sqlite", "postgres")


@asynccontextmanager
async def over(request: pytest.FixtureRequest, directory: File) -> AsyncIterator[Whole]:
    """A server over the store that the fixture's parameter names."""
    if request.param == "sqlite":
        async with whole(directory) as opened:
            yield opened
        return
    async with open_store(str(request.getfixturevalue("postgres_url"))) as store:
        ports = world_of(store, directory=directory)
        yield Whole(ports, app_of(ports))
