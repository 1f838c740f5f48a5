"""The complete REST API over each kind of store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path as File

import pytest
from tests.support.full_app import FullApp, create_rest_app, open_full_app
from tests.support.stores import ports_over

from carrel.adapters.postgres import open_store

STORES = ("sqlite", "postgres")


@asynccontextmanager
async def open_app_over(request: pytest.FixtureRequest, directory: File) -> AsyncIterator[FullApp]:
    """A server over the store that the fixture's parameter names."""
    if request.param == "sqlite":
        async with open_full_app(directory) as opened:
            yield opened
        return
    async with open_store(str(request.getfixturevalue("postgres_url"))) as store:
        ports = ports_over(store, directory=directory)
        yield FullApp(ports, create_rest_app(ports))
