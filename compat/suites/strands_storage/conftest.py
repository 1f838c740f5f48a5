"""Puts CarrelStorage in the place of Strands' InMemoryStorage."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import Any

import pytest
import strands.storage

from carrel_client import Client, NotFound
from carrel_client.strands import CarrelStorage

CLIENT = Client(os.environ["CARREL_URL"], os.environ["CARREL_TOKEN"])
WORKSPACE = CLIENT.workspaces.create("storages").id


class SwappedStorage(CarrelStorage):
    """A new, empty storage for each object."""

    def __init__(self, **options: Any) -> None:
        files = CLIENT.workspace(WORKSPACE)
        super().__init__(files, prefix=f"storages/{secrets.token_hex(8)}", **options)

    def clear(self) -> None:
        """Remove everything, which only the in-memory storage can."""
        with suppress(NotFound):
            CLIENT.workspace(WORKSPACE).remove_directory(self._root.rstrip("/"), recursive=True)


strands.storage.InMemoryStorage = SwappedStorage


@pytest.fixture
def agenerator() -> Callable[[Iterable[Any]], AsyncIterator[Any]]:
    """What upstream's own conftest gives, which needs more packages."""

    async def generate(items: Iterable[Any]) -> AsyncIterator[Any]:
        for item in items:
            yield item

    return generate
