"""A desk on each kind of store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File

import pytest

import carrel
from carrel import Carrel


@pytest.fixture(params=["directory", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: File) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return str(tmp_path)


@pytest.fixture
async def desk(where: str, tmp_path: File) -> AsyncIterator[Carrel]:
    async with carrel.open(where, data=str(tmp_path)) as opened:
        yield opened
