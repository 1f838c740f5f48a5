"""Puts CarrelSession in the place of the SDK's SQLiteSession."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import agents
import agents.memory
from agent_fixture import TOKEN, URL

from carrel_client import Client
from carrel_client.openai_agents import CarrelSession

CLIENT = Client(URL, TOKEN)
AGENTS: dict[str, str] = {}
"""Agent of each database; sessions of one database share it."""


class UnreadableRows:
    """Stands for the connection by which the tests insert rows that are not JSON.

    Here they become entries of another writer.
    """

    def execute(self, statement: str, values: tuple[str, str]) -> None:
        session_id, text = values
        agent = statement.split()[2]
        CLIENT.agent(agent).sessions.start(session_id).append("system", text)

    def commit(self) -> None:
        """Every append is committed."""


class SwappedSession(CarrelSession):
    """A session of an agent; each database file is an agent."""

    def __init__(self, session_id: str, db_path: str | Path = ":memory:", **options: Any) -> None:
        key = secrets.token_hex(4) if str(db_path) == ":memory:" else str(db_path)
        if key not in AGENTS:
            AGENTS[key] = CLIENT.agents.create(f"agent-{secrets.token_hex(4)}").slug
        super().__init__(CLIENT, AGENTS[key], session_id, **options)
        self.messages_table = AGENTS[key]

    @contextmanager
    def _locked_connection(self) -> Iterator[UnreadableRows]:
        yield UnreadableRows()

    def close(self) -> None:
        """Nothing to close: the client is shared."""


agents.SQLiteSession = SwappedSession
agents.memory.SQLiteSession = SwappedSession
