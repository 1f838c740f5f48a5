"""What the tools that work in shared workspaces have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import asdict

from carrel.actions.sandbox.tool_access import hands_of
from carrel.actions.sandbox.workspace_files import Bench
from carrel.core.approvals import call_name
from carrel.core.errors import Malformed, Taken
from carrel.core.redaction.redactor import Redacted
from carrel.core.runs import Status
from carrel.core.sandbox.file_tools import LONGEST_OUTPUT
from carrel.core.sandbox.tool_access import RUNNING, WRITING, Aim, Hands, aimed, with_workspace
from carrel.tools.tool import Asked, Gate, Sitting

Workspace = Annotated[str, Meta(description="Which workspace, by its name.")]
FilePath = Annotated[str, Meta(description="The file, from the root of the workspace.")]


class Grip(Struct, frozen=True):
    """A call whose arguments are good, and where it works."""

    sitting: Sitting
    aim: Aim

    @property
    def bench(self) -> Bench:
        assert self.aim.reach
        sitting = self.sitting
        run, call = sitting.run.id if sitting.run else None, sitting.call
        name = None if call is None else call_name(sitting.agent.id, sitting.session, run, call)
        return Bench(sitting.world, sitting.actor, self.aim.reach.workspace, run, call, name)

    @property
    def gate(self) -> Gate:
        sandbox, reach = self.aim.sandbox, self.aim.reach
        return Gate(
            self.aim.asks,
            reach.workspace if reach else None,
            sandbox.id if sandbox else None,
            sandbox.revision if sandbox else 0,
        )

    @property
    def limit(self) -> int:
        """Bytes that are told at most."""
        sandbox = self.aim.sandbox
        return (
            int(sandbox.config.get("outputLimitBytes", LONGEST_OUTPUT))
            if sandbox
            else LONGEST_OUTPUT
        )


async def gripped(tool: str, sitting: Sitting, asked: Asked, workspace: str) -> Grip:
    """Raises a Refusal where a call cannot be meant, or is not allowed whatever anybody says."""
    for name, value in asdict(asked).items():
        if isinstance(value, str):
            encoded(name, value)
    hands = await hands_of(sitting.world, sitting.actor.tenant, sitting.config)
    aim = aimed(tool, hands, workspace or None)
    run = sitting.run
    if tool in (*WRITING, *RUNNING) and run is not None and run.status is not Status.RUNNING:
        raise Taken(f"the run has {run.status}", status=run.status)
    return Grip(sitting, aim)


def encoded(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Malformed(f"{name} is not valid Unicode") from None


Checked = Callable[[Sitting, Any], Awaitable[Grip]]


def gate_of(checked: Checked) -> Callable[[Sitting, Any], Awaitable[Gate]]:
    """What is found out before anybody is asked: all that does not depend on the files."""

    async def gate(sitting: Sitting, asked: Any) -> Gate:
        return (await checked(sitting, asked)).gate

    return gate


def fitted(schema: Mapping[str, Any], hands: Hands) -> Mapping[str, Any]:
    return with_workspace(schema, hands)


def noted(said: str, redacted: Redacted) -> str:
    """With a word on what was not stored as it was given."""
    if not redacted.replaced:
        return said
    return f"{said}\n[redacted: {', '.join(redacted.replaced)}]"
