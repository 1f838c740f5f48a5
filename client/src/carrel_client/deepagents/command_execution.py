"""A command in an agent's sandbox, with its complete output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deepagents.backends.protocol import ExecuteResponse

from carrel_client.drivers import Steps, steps_of
from carrel_client.errors import Refusal
from carrel_client.files import Files
from carrel_client.runtimes.agent_run import AgentRun
from carrel_client.runtimes.tool_calls import call_tool_and_wait

TIMED_OUT: Final = 124
"""Exit code of a command that was killed for its time limit, as in coreutils."""
SAVED_BYTES: Final = 2**20
"""Bytes of a stream that the server saves as a file."""


def execute_command(
    files: Files[Any], agent: str, arguments: Mapping[str, Any], run: AgentRun[Any] | None
) -> Steps[ExecuteResponse]:
    """Run a command; output that was cut is read from the file in which it was saved."""
    reply = yield from call_tool_and_wait(
        files._driver,
        agent,
        "bash",
        arguments,
        run_id=run.id if run else None,
        session_id=run.session_id if run else None,
    )
    result = reply.structured
    if not isinstance(result, Mapping) or "stdout" not in result:
        return ExecuteResponse(output=reply.content, exit_code=1 if reply.is_error else None)
    streams = {"stdout": result["stdout"], "stderr": result["stderr"]}
    truncated = bool(result["truncated"])
    if truncated:
        saved = yield from _saved_output(files, result.get("outputFiles", ()))
        streams |= saved
        truncated = not saved or any(len(text) >= SAVED_BYTES for text in saved.values())
    code = TIMED_OUT if result["timedOut"] else result["exitCode"]
    return ExecuteResponse(output="".join(streams.values()), exit_code=code, truncated=truncated)


def _saved_output(files: Files[Any], paths: Any) -> Steps[dict[str, str]]:
    saved = {}
    for path in paths:
        stream = "stderr" if path.endswith(".stderr.txt") else "stdout"
        try:
            content = yield from steps_of(files.read_bytes, path)
        except Refusal:
            return {}
        saved[stream] = content.decode(errors="replace")
    return saved
