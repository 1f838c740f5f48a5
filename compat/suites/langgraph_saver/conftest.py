"""Puts CarrelSaver in the place of LangGraph's SqliteSaver and AsyncSqliteSaver."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import langgraph.checkpoint.sqlite
import langgraph.checkpoint.sqlite.aio

from carrel_client import AsyncClient, Client
from carrel_client.langgraph import CarrelSaver

URL, TOKEN = os.environ["CARREL_URL"], os.environ["CARREL_TOKEN"]
CLIENT = Client(URL, TOKEN)
WORKSPACE = CLIENT.workspaces.create("checkpoints").id


def new_prefix() -> str:
    return f"savers/{secrets.token_hex(8)}"


class SwappedSaver(CarrelSaver):
    """A new, empty checkpointer for each connection string."""

    @classmethod
    @contextmanager
    def from_conn_string(cls, conn_string: str) -> Iterator[SwappedSaver]:
        yield cls(CLIENT.workspace(WORKSPACE), prefix=new_prefix())


class SwappedAsyncSaver(CarrelSaver):
    """The same over an awaiting client."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, conn_string: str) -> AsyncIterator[SwappedAsyncSaver]:
        async with AsyncClient(URL, TOKEN) as client:
            yield cls(client.workspace(WORKSPACE), prefix=new_prefix())


langgraph.checkpoint.sqlite.SqliteSaver = SwappedSaver
langgraph.checkpoint.sqlite.aio.AsyncSqliteSaver = SwappedAsyncSaver
