"""Help and completion of commands import neither the server nor the client."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from click.testing import CliRunner
from carrel.cli import COMMANDS, main
for name in COMMANDS:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0, result.output
CliRunner().invoke(main, ["completion", "bash"])
completion = {"_MAIN_COMPLETE": "bash_complete", "COMP_WORDS": "carrel\\nag", "COMP_CWORD": "1"}
CliRunner().invoke(main, [], env=completion)
print("\\n".join(sys.modules))
"""


@pytest.fixture(scope="module")
def modules() -> frozenset[str]:
    """Modules that are loaded once the help of every command was shown."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return frozenset(done.stdout.splitlines())


HEAVY_MODULES = (
    *("carrel.server", "carrel.wiring", "carrel.actions", "carrel.adapters"),
    *("carrel_client.client", "httpx", "uvicorn", "msgspec", "cryptography", "asyncpg"),
    *("rich.console", "asyncio"),
)


@pytest.mark.parametrize("heavy", HEAVY_MODULES)
def test_help_of_every_command_loads_nothing_heavy(modules: frozenset[str], heavy: str) -> None:
    assert not {name for name in modules if name == heavy or name.startswith(f"{heavy}.")}
