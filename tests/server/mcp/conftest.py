"""One MCP server for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.mcp_clients import McpServer, run_mcp_server


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpServer]:
    with run_mcp_server(tmp_path_factory.mktemp("store")) as opened:
        yield opened
