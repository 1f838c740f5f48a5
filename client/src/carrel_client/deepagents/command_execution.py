"""A command in an agent's sandbox, with its complete output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deepagents.backends.protocol import ExecuteResponse

from carrel_client.drivers import Steps
from carrel_client.files import Files
from carrel_client.runtimes.agent_run import AgentRun
from carrel_client.runtimes.commands import CommandRefused, run_command

TIMED_OUT: Final = 124
"""Exit code of a command that was killed for its time limit, as in coreutils."""


def execute_command(
    files: Files[Any], agent: str, arguments: Mapping[str, Any], run: AgentRun[Any] | None
) -> Steps[ExecuteResponse]:
    """Run a command; one that is refused has the reason as output."""
    try:
        done = yield from run_command(files, agent, arguments, run)
    except CommandRefused as refused:
        return ExecuteResponse(output=str(refused), exit_code=1)
    code = TIMED_OUT if done.timed_out else done.exit_code
    output = done.stdout + done.stderr
    return ExecuteResponse(output=output, exit_code=code, truncated=not done.is_complete)
