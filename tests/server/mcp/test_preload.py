"""The MCP library takes over a second to import and is loaded in advance."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path as File

import pytest
from tests.support.stores import open_ports
from tests.support.wait import wait_until

from carrel.core.access import Actor
from carrel.core.errors import Unauthenticated
from carrel.server.http.endpoint import Headers
from carrel.server.mcp import http


@pytest.mark.parametrize(
    "module", ["carrel.wiring.server_app", "carrel.wiring.server", "carrel.cli.commands.mcp"]
)
def test_importing_the_server_does_not_import_mcp(module: str) -> None:
    program = f"import sys, {module}; sys.exit('mcp.server' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_importing_the_bridge_does_not_import_mcp() -> None:
    program = "import sys, carrel.cli.mcp_bridge; sys.exit('mcp.server' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.anyio
@pytest.mark.parametrize("closes", [False, True])
async def test_an_idle_server_preloads_mcp_unless_it_is_closing(
    closes: bool, tmp_path: File
) -> None:
    async def reject(headers: Headers) -> Actor:
        raise Unauthenticated("no credential is accepted")

    closing = asyncio.Event()
    if closes:
        closing.set()
    async with (
        open_ports(tmp_path) as ports,
        http.mount(ports, reject, closing, warmup_delay=0 if not closes else 600) as mount,
    ):
        app = mount.app
        assert isinstance(app, http.McpApp)
        await wait_until(
            lambda: closes or (app._transport is not None and app._transport.done()),
            "the transport is loaded",
            seconds=120,
        )
        assert (app._transport is None) is closes
