"""Puts CarrelStore in the place of LangGraph's SqliteStore and AsyncSqliteStore."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import langgraph.store.sqlite
import langgraph.store.sqlite.aio

from carrel_client import AsyncClient, Client
from carrel_client.langgraph import AsyncCarrelStore, CarrelStore

URL, TOKEN = os.environ["CARREL_URL"], os.environ["CARREL_TOKEN"]
CLIENT = Client(URL, TOKEN)
WORKSPACE = CLIENT.workspaces.create("stores").id


def new_prefix() -> str:
    return f"stores/{secrets.token_hex(8)}"


def index_fields(index: Any) -> Any:
    """The index under the name that LangGraph's protocol gives to its fields."""
    return None if index is None else {**index, "fields": index.get("text_fields")}


class SwappedStore(CarrelStore):
    """A new, empty store for each connection string."""

    @classmethod
    @contextmanager
    def from_conn_string(cls, conn_string: str, *, index: Any = None) -> Iterator[SwappedStore]:
        files = CLIENT.workspace(WORKSPACE)
        yield cls(files, prefix=new_prefix(), index=index_fields(index))

    def setup(self) -> None:
        """Nothing to create: a store exists as soon as an item is in it."""


class SwappedAsyncStore(AsyncCarrelStore):
    """The same in an event loop."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls, conn_string: str, *, index: Any = None
    ) -> AsyncIterator[SwappedAsyncStore]:
        async with AsyncClient(URL, TOKEN) as client:
            files = client.workspace(WORKSPACE)
            yield cls(files, prefix=new_prefix(), index=index_fields(index))

    async def setup(self) -> None:
        """Nothing to create."""


langgraph.store.sqlite.SqliteStore = SwappedStore
langgraph.store.sqlite.AsyncSqliteStore = SwappedAsyncStore
langgraph.store.sqlite.aio.AsyncSqliteStore = SwappedAsyncStore
