"""Commands in an agent's sandbox, with their complete output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from carrel_client.agents import Agents
from carrel_client.drivers import Steps, steps_of
from carrel_client.errors import Refusal
from carrel_client.files import Files
from carrel_client.runtimes.agent_run import AgentRun
from carrel_client.runtimes.tool_calls import call_tool_and_wait

SAVED_BYTES: Final = 2**20
"""Bytes of a stream that the server saves as a file."""


class CommandRefused(Exception):
    """The command did not run: it is invalid, was denied, or there is no sandbox."""


class NotAttached(Exception):
    """The workspace is not among those of the agent, so commands cannot see it."""


@dataclass(frozen=True, slots=True)
class CompletedCommand:
    """A command that ended, or was ended by its time limit."""

    stdout: str
    stderr: str
    exit_code: int | None
    """None if it was killed for its time limit."""
    timed_out: bool
    is_complete: bool
    """Whether stdout and stderr have everything that was written to them."""


def run_command(
    files: Files[Any],
    agent: str,
    arguments: Mapping[str, Any],
    run: AgentRun[Any] | None = None,
) -> Steps[CompletedCommand]:
    """Call ``bash``; output that was cut is read from the files in which it was saved.

    A command that needs an approval waits for it. Raises CommandRefused.
    """
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
        raise CommandRefused(reply.content)
    streams = {"stdout": str(result["stdout"]), "stderr": str(result["stderr"])}
    is_complete = not result["truncated"]
    if not is_complete:
        saved = yield from _saved_output(files, result.get("outputFiles", ()))
        streams |= saved
        is_complete = bool(saved) and all(len(text) < SAVED_BYTES for text in saved.values())
    return CompletedCommand(
        **streams,
        exit_code=result["exitCode"],
        timed_out=bool(result["timedOut"]),
        is_complete=is_complete,
    )


def _saved_output(files: Files[Any], paths: Any) -> Steps[dict[str, str]]:
    """The streams that were saved, by name; none if one of them is not available."""
    saved = {}
    for path in paths:
        name = "stderr" if path.endswith(".stderr.txt") else "stdout"
        try:
            content = yield from steps_of(files.read_bytes, path)
        except Refusal:
            return {}
        saved[name] = content.decode(errors="replace")
    return saved


def workspace_arguments(files: Files[Any], agent: str, workspace: str) -> Steps[dict[str, str]]:
    """Arguments of ``bash`` that name a workspace of the agent. Raises NotAttached."""
    agents: Agents[Any] = Agents(files._driver)
    record = yield from steps_of(agents.get, agent)
    attached = record.config.get("workspaces", ())
    for item in attached:
        if item["workspaceId"] == workspace:
            return {"workspace": item["name"]} if len(attached) > 1 else {}
    raise NotAttached(f"{workspace} is not a workspace of the agent {agent}")
