"""The protocol's library takes more than a second to load, which nobody should wait for."""

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
from carrel.ports import Ports
from carrel.server.http.endpoint import Headers
from carrel.server.mcp import http


@pytest.mark.parametrize(
    "module", ["carrel.wiring.server_app", "carrel.wiring.server", "carrel.cli.commands.mcp"]
)
def test_nothing_loads_it_before_a_client_comes(module: str) -> None:
    program = f"import sys, {module}; sys.exit('mcp.server' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_bridge_to_a_server_never_loads_it() -> None:
    program = "import sys, carrel.cli.mcp_bridge; sys.exit('mcp.server' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.anyio
@pytest.mark.parametrize("closes", [False, True])
async def test_a_server_that_has_time_loads_it_before_a_client_comes(
    closes: bool, tmp_path: File
) -> None:
    async def nobody(ports: Ports, headers: Headers) -> Actor:
        raise Unauthenticated("who is it?")

    closing = asyncio.Event()
    if closes:
        closing.set()
    async with (
        open_ports(tmp_path) as ports,
        http.mount(ports, nobody, closing, warmup_delay=0 if not closes else 600) as mount,
    ):
        app = mount.app
        assert isinstance(app, http.McpApp)
        await wait_until(
            lambda: closes or (app._transport is not None and app._transport.done()),
            "the transport is loaded",
            seconds=120,
        )
        assert (app._transport is None) is closes
