"""The protocol's library takes more than a second to load, which nobody waits for unasked."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module", ["carrel.wiring.app", "carrel.wiring.server", "carrel.faces.cli.mcp"]
)
def test_nothing_loads_it_before_a_client_comes(module: str) -> None:
    program = f"import sys, {module}; sys.exit('mcp.server' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_bridge_to_a_server_never_loads_it() -> None:
    program = "import sys, carrel.faces.cli.bridging; sys.exit('mcp.server' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
