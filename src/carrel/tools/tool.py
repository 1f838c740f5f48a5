"""What a tool is: a name that a model calls, arguments that are checked, and one thing done.

For example::

    class Arguments(Asked, frozen=True):
        note: Annotated[str, Meta(max_length=200, description="What this is about.")] = "manual"


    async def _run(sitting: Sitting, asked: Arguments) -> object: ...


    TOOL = Tool("memory_checkpoint", "Marks…", Arguments, _run, writes=True)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Set
from typing import Any, TypeVar

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from carrel.actions.files import files
from carrel.actions.runs import runs
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_fields
from carrel.core.agents.config import AgentConfig, config_of
from carrel.core.approvals import Approval
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path, Stack
from carrel.core.markdown.fences import MARK
from carrel.core.runs import Audience, Run
from carrel.core.sandbox.tool_access import ToolAccess
from carrel.core.store.record import Record
from carrel.ports import Ports

A = TypeVar("A", bound="ToolArguments")


class ToolArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the arguments of a tool are made from: nothing passes that it does not know."""


class ToolContext(Struct, frozen=True):
    """Who calls, and under which circumstances."""

    ports: Ports
    actor: Actor
    agent: Record
    stack: Stack
    mode: Audience
    """Who is listening: in a shared session nothing private is told."""
    session: str | None = None
    run: Run | None = None
    """Where there is one, files are seen as it froze them."""
    call: str | None = None
    """What the caller knows this call by, where it says so."""

    @property
    def slug(self) -> str:
        return str(agent_fields(self.agent)["slug"])

    @property
    def place(self) -> str:
        """Where its files are: not in a directory of this machine."""
        return f"carrel://agents/{self.slug}"

    @property
    def config(self) -> AgentConfig:
        return config_of(agent_fields(self.agent)["config"])

    async def text(self, path: Path) -> str | None:
        """A file as the agent has it; None where it has none, or it is no text."""
        try:
            return (await self._content(path)).decode().removeprefix(MARK)
        except (NotFound, UnicodeDecodeError):
            return None

    async def paths(self) -> Set[Path]:
        """Of all files that the agent has."""
        if self.run is not None:
            return set((await runs.manifest(self.ports, self.run)).files)
        return set((await files.list_files(self.ports, self.stack)).files)

    async def _content(self, path: Path) -> bytes:
        if self.run is not None:
            return (await runs.file(self.ports, self.run, path))[1]
        return await files.read_content(
            self.ports, await files.find_file(self.ports, self.stack, path)
        )


class ApprovalCheck(Struct, frozen=True):
    """What is known of a call before it runs: its arguments are good, and nothing forbids it."""

    asks: bool
    """Whether somebody has to say yes first."""
    workspace: str | None = None
    """The id of the shared workspace that it works in."""
    sandbox: str | None = None
    revision: int = 0
    """Of the sandbox's record: an answer holds for what was seen when it was asked for."""


class Tool(Struct, frozen=True):
    name: str
    description: str
    """For the model: what it does and when to call it."""
    arguments: type[ToolArguments]
    run: Callable[[ToolContext, Any], Awaitable[object]]
    """Gives what is told: a text or a Reply as it is, and all else as JSON.

    Raises a Refusal, whose message the model is told.
    """
    private_only: bool = False
    """Not available in a shared session."""
    writes: bool = False
    """Needs a credential that may write."""
    destructive: bool = False
    """May undo what was there."""
    approval_check: Callable[[ToolContext, Any], Awaitable[ApprovalCheck]] | None = None
    """Checks all that can be checked, and says whether to ask. Raises a Refusal."""
    schema_for: Callable[[Mapping[str, Any], ToolAccess], Mapping[str, Any]] | None = None
    """Its schema as it is for an agent that can reach this."""

    def parse_arguments(self, given: Mapping[str, Any]) -> ToolArguments:
        """Its arguments; what may be left out may be null as well. Raises ValidationError.

        Where a schema is strict, a model has to say null for what it does not want to say.
        """
        needless = {one.name for one in fields(self.arguments) if not one.required}
        said = {
            name: value
            for name, value in given.items()
            if value is not None or name not in needless
        }
        return msgspec.convert(said, self.arguments)

    @property
    def schema(self) -> Mapping[str, Any]:
        """Of its arguments, strict and in one piece."""
        whole = msgspec.json.schema(self.arguments)
        named = whole["$defs"]
        described = named[self.arguments.__name__]
        usual = {one.encode_name: one.default for one in fields(self.arguments)}
        return {
            "type": "object",
            "properties": {
                name: _inline_enum(said, named, usual[name])
                for name, said in described["properties"].items()
            },
            "required": described["required"],
            "additionalProperties": False,
        }


def _inline_enum(
    said: Mapping[str, Any], named: Mapping[str, Any], usual: object
) -> Mapping[str, Any]:
    """With the choices in place that it refers to, and the one that is meant where none is made."""
    if "$ref" not in said:
        return said
    meant = named[said["$ref"].rpartition("/")[2]]
    told = {"type": "string", "enum": meant["enum"], "description": said["description"]}
    return told if usual is NODEFAULT else {**told, "default": usual}


class ToolReply(Struct, frozen=True):
    """What comes back to the model."""

    content: str
    is_error: bool = False
    structured: object = None
    approval: Approval | None = None
    """Where nothing was done yet, since somebody has to say yes first."""
