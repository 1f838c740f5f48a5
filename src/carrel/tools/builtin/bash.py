"""Running a command in a sandbox, over the files of a shared workspace or over none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta

from carrel.actions.sandbox import jobs, write_back
from carrel.actions.sandbox.sandboxes import bounds_of, opened
from carrel.core.errors import (
    CapabilityNotProvided,
    Forbidden,
    NotFound,
    ValidationError,
    WorkspaceTooLarge,
)
from carrel.core.sandbox.command_report import reported, was_cut_short
from carrel.core.sandbox.interpreter_policy import not_allowed
from carrel.core.sandbox.tool_access import (
    SandboxSpec,
    ToolAccess,
    reservation,
    with_background,
    with_workspace,
)
from carrel.ports import Sandbox as Provider
from carrel.ports.sandbox import CommandResult, CommandSpec, ResourceLimits, SandboxUnavailable
from carrel.tools.tool import Tool, ToolArguments, ToolContext
from carrel.tools.workspace_tool import (
    Workspace,
    WorkspaceCall,
    approval_check_of,
    resolve_workspace_call,
)

DEFAULT_IDLE: Final = 900
"""Seconds."""
_LONGEST_COMMAND: Final = 128 * 1024 - 1
"""Bytes, beyond which no kernel takes it and no provider could run it."""


class Arguments(ToolArguments, frozen=True):
    command: Annotated[str, Meta(description="For bash. Each call is a shell of its own.")]
    workspace: Workspace = ""
    background: Annotated[bool, Meta(description="Let it go on, and answer at once.")] = False


async def _checked(context: ToolContext, asked: Arguments) -> WorkspaceCall:
    if not asked.command.strip():
        raise ValidationError("command is required")
    if "\0" in asked.command:
        raise ValidationError("command must hold no NUL")
    if len(asked.command.encode(errors="surrogatepass")) > _LONGEST_COMMAND:
        raise ValidationError(f"command must have {_LONGEST_COMMAND} bytes at most")
    grip = await resolve_workspace_call("bash", context, asked, asked.workspace)
    sandbox = _sandbox(grip)
    if runtime := not_allowed(asked.command, sandbox.config.get("runtimes")):
        raise Forbidden(f"this sandbox does not allow {runtime} commands")
    if asked.background and _instance_key(grip) is None:
        raise ValidationError(jobs.NEEDS_PERSISTENT_SANDBOX)
    bounds, persistent = bounds_of(sandbox.config), _instance_key(grip) is not None
    if reason := _provider(grip).unsupported_reason(bounds, persistent=persistent):
        raise CapabilityNotProvided(f"Sandbox setup failed: {reason}")
    return grip


async def _run(context: ToolContext, asked: Arguments) -> object:
    grip = await _checked(context, asked)
    try:
        if asked.background:
            return await _run_in_background(grip, asked.command.strip())
        if grip.aim.reach is None:
            return await _run_without_files(grip, asked.command.strip())
        return await _run_in_workspace(grip, asked.command.strip())
    except SandboxUnavailable as refused:
        raise CapabilityNotProvided(f"Sandbox setup failed: {refused}") from None


async def _run_without_files(grip: WorkspaceCall, command: str) -> str:
    """In an empty directory of which nothing is kept."""
    ports, order = grip.sitting.ports, _command_spec(grip, command)
    async with _provider(grip).run(order, ports.blobs.get) as ran:
        return _report(ran, order.bounds, ran.notes)


async def _run_in_background(grip: WorkspaceCall, command: str) -> str:
    """Until it ends by itself or is ended; what it changed is brought back then."""
    context, sandbox, reach = grip.sitting, _sandbox(grip), grip.aim.reach
    order = _command_spec(grip, command, await write_back.load_inputs(grip.bench))
    assert reach and order.instance_key
    tracked = jobs.JobRecord(
        context.agent.id,
        context.session,
        reach.workspace,
        sandbox.id,
        sandbox.config["provider"],
        order.instance_key,
    )
    await jobs.begin(context.ports, context.actor, tracked, order)
    return f"Started in the background: ask async_status for {order.id}"


async def _run_in_workspace(grip: WorkspaceCall, command: str) -> str:
    bench, ports = grip.bench, grip.sitting.ports
    start = await write_back.load_inputs(bench)
    order = _command_spec(grip, command, start)
    call = bench.call or order.id
    async with _provider(grip).run(order, ports.blobs.get) as ran:
        partial = was_cut_short(ran.exit_code, timed_out=ran.timed_out)
        reason = f"bash{' (partial)' if partial else ''} {call}: {command}"
        try:
            known = await write_back.commit_changes(bench, start, ran, call, reason)
        except (WorkspaceTooLarge, NotFound) as problem:
            said = _report(ran, order.bounds, ran.notes)
            message = f"the changes were not kept: {problem}\n{said}"
            raise type(problem)(message, **problem.details) from None
        return _report(ran, order.bounds, (*ran.notes, *known))


def _command_spec(
    grip: WorkspaceCall, command: str, start: write_back.CommandInputs | None = None
) -> CommandSpec:
    sandbox, ports = _sandbox(grip), grip.sitting.ports
    config, id = opened(ports, sandbox), ports.clock.new_id("call")
    lifecycle, kept = config.get("lifecycle", {}), _instance_key(grip)
    return CommandSpec(
        id,
        command,
        start.files if start else None,
        bounds_of(sandbox.config),
        config.get("envVars", {}),
        kept,
        idle_seconds=lifecycle.get("idleTimeoutSeconds", DEFAULT_IDLE),
        options=config.get("options", {}),
        lifetime_seconds=lifecycle.get("maxLifetimeSeconds"),
        write_back=jobs.write_back_callback(grip.bench, id, command) if kept else None,
    )


def _instance_key(grip: WorkspaceCall) -> str | None:
    """What an instance that is kept between commands is known by: one for a sandbox's settings."""
    sandbox, reach = _sandbox(grip), grip.aim.reach
    return reservation(reach.namespace, sandbox.id) if reach and sandbox.is_persistent else None


def _report(ran: CommandResult, bounds: ResourceLimits, notes: Sequence[str]) -> str:
    late = bounds.seconds if ran.timed_out else None
    return reported(ran.stdout, ran.stderr, ran.exit_code, late, notes)


def _sandbox(grip: WorkspaceCall) -> SandboxSpec:
    assert grip.aim.sandbox
    return grip.aim.sandbox


def _provider(grip: WorkspaceCall) -> Provider:
    name = _sandbox(grip).config["provider"]
    provider = grip.sitting.ports.sandboxes.get(name)
    if provider is None:
        raise CapabilityNotProvided(f"Sandbox setup failed: there is no provider {name} here")
    return provider


def _fitted(schema: Mapping[str, Any], hands: ToolAccess) -> Mapping[str, Any]:
    return with_background(with_workspace(schema, hands), hands)


TOOL: Final = Tool(
    "bash",
    "Runs a command in the root of a workspace, or in an empty directory where there is none, and "
    "tells its output, its errors and how it ended. Files that it changes there are kept; "
    "variables are not, nor is anything else unless the sandbox is a persistent one.",
    Arguments,
    _run,
    writes=True,
    destructive=True,
    approval_check=approval_check_of(_checked),
    schema_for=_fitted,
)
