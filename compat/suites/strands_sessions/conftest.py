"""Puts CarrelSessionRepository in the place of the suite's repository in memory."""

from __future__ import annotations

import os
import secrets

import tests.fixtures.mock_session_repository

from carrel_client import Client
from carrel_client.strands import CarrelSessionRepository

CLIENT = Client(os.environ["CARREL_URL"], os.environ["CARREL_TOKEN"])


class SwappedRepository(CarrelSessionRepository):
    """A new, empty repository for each object: the sessions of a new agent."""

    def __init__(self) -> None:
        slug = f"agent-{secrets.token_hex(8)}"
        CLIENT.agents.create(slug, slug)
        super().__init__(CLIENT, slug)


tests.fixtures.mock_session_repository.MockedSessionRepository = SwappedRepository
