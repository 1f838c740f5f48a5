"""Tool definition: name, description, argument struct and function.

For example::

    class CheckpointArguments(ToolArguments, frozen=True):
        note: Annotated[str, Meta(max_length=200, description="Label.")] = "manual"


    async def _run(context: ToolContext, args: CheckpointArguments) -> object: ...


    TOOL = Tool("memory_checkpoint", "Creates…", CheckpointArguments, _run, writes=True)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Set
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from carrel.actions.files import files
from carrel.actions.progress import ProgressCallback, no_progress
from carrel.actions.runs import snapshots
from carrel.actions.skills import skills
from carrel.actions.skills.skills import LoadedSkill
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_config, agent_from_record
from carrel.core.agents.config import AgentConfig
from carrel.core.approvals import Approval
from carrel.core.errors import NotFound
from carrel.core.identifiers import Path, Stack
from carrel.core.markdown.fences import BYTE_ORDER_MARK
from carrel.core.runs import Audience, Run
from carrel.core.sandbox.tool_access import ToolAccess
from carrel.core.sessions.shared_session_visibility import is_visible, unavailable_message
from carrel.core.skills.skill_folder import are_skills_visible
from carrel.core.store.record import Record
from carrel.ports import Ports
from carrel.tools.output_schema import build_output_schema

A = TypeVar("A", bound="ToolArguments")


class ToolArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of tool arguments; unknown fields are refused."""


class ToolResultFields(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the structured results of tools, and of what is in them."""


class ToolContext(Struct, frozen=True):
    """Caller, agent, audience, session and run of a tool call."""

    ports: Ports
    actor: Actor
    agent: Record
    stack: Stack
    audience: Audience
    """In a shared session, private content must not be returned."""
    session: str | None = None
    run: Run | None = None
    """If set, files are read from its snapshot."""
    call_id: str | None = None
    """Idempotency id chosen by the caller."""
    expected_version: int | None = None
    """Version of the file that an approved call may replace; None: any."""
    is_approved: bool = False
    """Whether a person approved the call, which is then not refused for a full queue."""
    on_progress: ProgressCallback = no_progress
    """Receives the stages of a call that takes time."""

    def report_stage(self, stage: str) -> None:
        self.on_progress(stage, 0, 0)

    @property
    def slug(self) -> str:
        return agent_from_record(self.agent).slug

    @property
    def workspace_uri(self) -> str:
        """URI of the agent's files."""
        return f"carrel://agents/{self.slug}"

    @property
    def config(self) -> AgentConfig:
        return agent_config(self.agent)

    async def read_text(self, path: Path) -> str | None:
        """Text of an agent's file; None if absent or not text."""
        try:
            return (await self._read_content(path)).decode().removeprefix(BYTE_ORDER_MARK)
        except (NotFound, UnicodeDecodeError):
            return None

    async def list_paths(self) -> Set[Path]:
        """Paths of all files of the agent that the audience may see."""
        if self.run is not None:
            paths = (await snapshots.load_manifest(self.ports, self.run)).files
        else:
            paths = (await files.list_files(self.ports, self.stack)).files
        return {path for path in paths if is_visible(path, self.audience)}

    async def list_skills(self) -> tuple[LoadedSkill, ...]:
        """Skills of the agent that the audience may see, invalid ones included."""
        if not are_skills_visible(self.audience):
            return ()
        if self.run is not None:
            return await skills.list_run_skills(self.ports, self.run)
        return await skills.list_skills(self.ports, self.stack)

    async def _read_content(self, path: Path) -> bytes:
        if not is_visible(path, self.audience):
            raise NotFound(unavailable_message(path))
        if self.run is not None:
            return (await snapshots.read_file(self.ports, self.run, path))[1]
        return await files.read_content(
            self.ports, await files.get_file(self.ports, self.stack, path)
        )


class ApprovalCheck(Struct, frozen=True):
    """Result of checking a call before it runs."""

    requires_approval: bool
    """Whether a person must approve the call."""
    workspace: str | None = None
    """Id of the shared workspace the call uses."""
    sandbox: str | None = None
    sandbox_config: str = ""
    """Digest of the sandbox's config; the approval is valid for this config only."""
    expected_version: int | None = None
    """Version of the file that the call replaces; 0 if absent, None if it replaces none."""


class Tool(Struct, frozen=True):
    """A tool that a model can call."""

    name: str
    description: str
    """For the model: what the tool does and when to call it."""
    arguments: type[ToolArguments]
    run: Callable[[ToolContext, Any], Awaitable[object]]
    """Returns text or a ToolReply; any other value is encoded as JSON.

    Raises a Refusal, whose message is returned to the model.
    """
    private_only: bool = False
    """Not available in a shared session."""
    requires_git: bool = False
    """Offered only to agents with a git history."""
    writes: bool = False
    """Requires a credential with write permission."""
    destructive: bool = False
    """May overwrite or delete existing data."""
    approval_check: Callable[[ToolContext, Any], Awaitable[ApprovalCheck]] | None = None
    """Checks the call and whether it requires approval. Raises a Refusal."""
    schema_for: Callable[[Mapping[str, Any], ToolAccess], Mapping[str, Any]] | None = None
    """Adapts the schema to an agent's tool access."""

    results: tuple[type[ToolResultFields], ...] = ()
    """Types of the structured result; a result without an error is one of them."""
    can_wait: bool = False
    """Whether calls may wait for an approval."""

    def parse_arguments(self, arguments: Mapping[str, Any]) -> ToolArguments:
        """Parse arguments. Raises msgspec.ValidationError.

        Null means absent for optional ones: models with strict schemas must send null for arguments
        they omit.
        """
        optional = {field.name for field in fields(self.arguments) if not field.required}
        values = {
            name: value
            for name, value in arguments.items()
            if value is not None or name not in optional
        }
        return msgspec.convert(values, self.arguments)

    @property
    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of the arguments, strict and without references."""
        return _build_arguments_schema(self.arguments)

    @property
    def output_schema(self) -> Mapping[str, Any]:
        """JSON Schema of the structured result of a call without an error."""
        return build_output_schema(self.results, can_wait=self.can_wait)


@cache
def _build_arguments_schema(arguments: type[ToolArguments]) -> Mapping[str, Any]:
    """Schema of a type of arguments; deriving it from the type is slow."""
    document = msgspec.json.schema(arguments)
    definitions = document["$defs"]
    definition = definitions[arguments.__name__]
    defaults = {field.encode_name: field.default for field in fields(arguments)}
    return {
        "type": "object",
        "properties": {
            name: _inline_enum(property_schema, definitions, defaults[name])
            for name, property_schema in definition["properties"].items()
        },
        "required": definition["required"],
        "additionalProperties": False,
    }


def _inline_enum(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], default: object
) -> Mapping[str, Any]:
    """Property schema with its enum inlined and its default added."""
    if "$ref" not in schema:
        return schema
    enum_schema = definitions[schema["$ref"].rpartition("/")[2]]
    inlined = {"type": "string", "enum": enum_schema["enum"], "description": schema["description"]}
    return inlined if default is NODEFAULT else {**inlined, "default": default}


def structured_reply(text: str, result: ToolResultFields) -> ToolReply:
    """Reply with a text and the same as an object."""
    return ToolReply(text, structured=msgspec.json.decode(msgspec.json.encode(result)))


class ToolReply(Struct, frozen=True):
    """Result returned to the model."""

    content: str
    is_error: bool = False
    structured: object = None
    approval: Approval | None = None
    """Set if the call awaits approval and has not run."""
