"""What colours a terminal takes a tenth of a second to load, in every process that does."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["carrel.wiring.server", "carrel.client"])
def test_neither_a_server_nor_a_client_loads_what_colours_a_terminal(module: str) -> None:
    program = f"import sys, {module}; sys.exit(bool({{'rich', 'pygments'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_client_leaves_httpx_as_others_may_need_it() -> None:
    program = "import carrel.client, httpx._main, httpx; httpx.AsyncClient, httpx._main.main"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
