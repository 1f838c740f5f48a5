"""Tool `bash`: runs a command in a sandbox, with or without workspace files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta

from carrel.actions.sandbox import jobs, write_back
from carrel.actions.sandbox.sandboxes import decrypt_config, resource_limits
from carrel.core.errors import (
    CapabilityNotProvided,
    Forbidden,
    NotFound,
    ValidationError,
    WorkspaceTooLarge,
)
from carrel.core.sandbox.command_report import format_report, was_interrupted
from carrel.core.sandbox.interpreter_policy import disallowed_runtime
from carrel.core.sandbox.tool_access import (
    SandboxSpec,
    ToolAccess,
    derive_instance_key,
    with_background,
    with_workspace,
)
from carrel.ports import Sandbox as Provider
from carrel.ports.sandbox import CommandResult, CommandSpec, ResourceLimits, SandboxUnavailable
from carrel.tools.tool import Tool, ToolArguments, ToolContext
from carrel.tools.workspace_tool import (
    WorkspaceCall,
    WorkspaceName,
    approval_check_of,
    resolve_workspace_call,
)

DEFAULT_IDLE_SECONDS: Final = 900
_MAX_COMMAND_BYTES: Final = 128 * 1024 - 1
"""Kernel limit of one command argument."""


class BashArguments(ToolArguments, frozen=True):
    command: Annotated[str, Meta(description="Command for bash. Each call starts a new shell.")]
    workspace: WorkspaceName = ""
    background: Annotated[bool, Meta(description="Run in the background and return at once.")] = (
        False
    )


async def _check(context: ToolContext, args: BashArguments) -> WorkspaceCall:
    if not args.command.strip():
        raise ValidationError("command is required")
    if "\0" in args.command:
        raise ValidationError("command must not contain NUL")
    if len(args.command.encode(errors="surrogatepass")) > _MAX_COMMAND_BYTES:
        raise ValidationError(f"command must have {_MAX_COMMAND_BYTES} bytes at most")
    workspace_call = await resolve_workspace_call("bash", context, args, args.workspace)
    sandbox = _sandbox(workspace_call)
    if runtime := disallowed_runtime(args.command, sandbox.config.get("runtimes")):
        raise Forbidden(f"this sandbox does not allow {runtime} commands")
    if args.background and _instance_key(workspace_call) is None:
        raise ValidationError(jobs.NEEDS_PERSISTENT_SANDBOX)
    bounds, persistent = resource_limits(sandbox.config), _instance_key(workspace_call) is not None
    if reason := _provider(workspace_call).unsupported_reason(bounds, persistent=persistent):
        raise CapabilityNotProvided(f"Sandbox setup failed: {reason}")
    return workspace_call


async def _run(context: ToolContext, args: BashArguments) -> object:
    workspace_call = await _check(context, args)
    slots, tenant = context.ports.command_slots, context.agent.tenant
    key = _instance_key(workspace_call)
    async with slots.hold(tenant, instance_key=key, can_refuse=not context.is_approved) as waited:
        if waited:
            workspace_call = await _check(context, args)
        return await _run_now(workspace_call, args)


async def _run_now(workspace_call: WorkspaceCall, args: BashArguments) -> str:
    try:
        if args.background:
            return await _run_in_background(workspace_call, args.command.strip())
        if workspace_call.target.workspace is None:
            return await _run_without_files(workspace_call, args.command.strip())
        return await _run_in_workspace(workspace_call, args.command.strip())
    except SandboxUnavailable as error:
        raise CapabilityNotProvided(f"Sandbox setup failed: {error}") from None


async def _run_without_files(workspace_call: WorkspaceCall, command: str) -> str:
    """Run in an empty directory whose files are discarded."""
    ports, spec = workspace_call.context.ports, _command_spec(workspace_call, command)
    async with _provider(workspace_call).run(spec, ports.blobs) as result:
        return _report(result, spec.limits, result.notes)


async def _run_in_background(workspace_call: WorkspaceCall, command: str) -> str:
    """Start a background job; its changes are committed when it ends."""
    context, sandbox, workspace = (
        workspace_call.context,
        _sandbox(workspace_call),
        workspace_call.target.workspace,
    )
    spec = _command_spec(
        workspace_call, command, await write_back.load_inputs(workspace_call.files)
    )
    assert workspace and spec.instance_key
    job = jobs.JobRecord(
        context.agent.id,
        context.session,
        workspace.workspace,
        sandbox.id,
        sandbox.config["provider"],
        spec.instance_key,
        context.audience,
    )
    await jobs.start_job(context.ports, context.actor, job, spec)
    return f"Started in the background; use async_status with statusId {spec.id}"


async def _run_in_workspace(workspace_call: WorkspaceCall, command: str) -> str:
    workspace_files, ports = workspace_call.files, workspace_call.context.ports
    inputs = await write_back.load_inputs(workspace_files)
    spec = _command_spec(workspace_call, command, inputs)
    call_id = workspace_files.call or spec.id
    async with _provider(workspace_call).run(spec, ports.blobs) as result:
        partial = was_interrupted(result.exit_code, timed_out=result.timed_out)
        reason = f"bash{' (partial)' if partial else ''} {call_id}: {command}"
        try:
            write_back_notes = await write_back.commit_changes(
                workspace_files, inputs, result, call_id, reason
            )
        except (WorkspaceTooLarge, NotFound) as error:
            report = _report(result, spec.limits, result.notes)
            message = f"the changes were not saved: {error}\n{report}"
            raise type(error)(message, **error.details) from None
        return _report(result, spec.limits, (*result.notes, *write_back_notes))


def _command_spec(
    workspace_call: WorkspaceCall, command: str, inputs: write_back.CommandInputs | None = None
) -> CommandSpec:
    sandbox, ports = _sandbox(workspace_call), workspace_call.context.ports
    config, id = decrypt_config(ports, sandbox), ports.clock.new_id("call")
    lifecycle, instance_key = config.get("lifecycle", {}), _instance_key(workspace_call)
    return CommandSpec(
        id,
        command,
        inputs.files if inputs else None,
        resource_limits(sandbox.config),
        config.get("envVars", {}),
        instance_key,
        idle_seconds=lifecycle.get("idleTimeoutSeconds", DEFAULT_IDLE_SECONDS),
        options=config.get("options", {}),
        lifetime_seconds=lifecycle.get("maxLifetimeSeconds"),
        directories=inputs.directories if inputs else {},
        write_back=jobs.write_back_callback(workspace_call.files, id, command)
        if instance_key
        else None,
    )


def _instance_key(workspace_call: WorkspaceCall) -> str | None:
    """Key of the persistent sandbox instance; None if the sandbox is not persistent."""
    sandbox, workspace = _sandbox(workspace_call), workspace_call.target.workspace
    return (
        derive_instance_key(workspace.namespace, sandbox.id, workspace_call.context.audience)
        if workspace and sandbox.is_persistent
        else None
    )


def _report(result: CommandResult, bounds: ResourceLimits, notes: Sequence[str]) -> str:
    timeout_seconds = bounds.seconds if result.timed_out else None
    return format_report(result.stdout, result.stderr, result.exit_code, timeout_seconds, notes)


def _sandbox(workspace_call: WorkspaceCall) -> SandboxSpec:
    assert workspace_call.target.sandbox
    return workspace_call.target.sandbox


def _provider(workspace_call: WorkspaceCall) -> Provider:
    name = _sandbox(workspace_call).config["provider"]
    provider = workspace_call.context.ports.sandboxes.get(name)
    if provider is None:
        raise CapabilityNotProvided(f"Sandbox setup failed: provider {name} is not available")
    return provider


def _schema_for_access(schema: Mapping[str, Any], access: ToolAccess) -> Mapping[str, Any]:
    return with_background(with_workspace(schema, access), access)


TOOL: Final = Tool(
    "bash",
    "Runs a command in the root of a workspace, or in an empty directory if there is none, and "
    "returns its output, errors and exit code. Changed files are saved; variables and other state "
    "are lost unless the sandbox is persistent.",
    BashArguments,
    _run,
    writes=True,
    destructive=True,
    approval_check=approval_check_of(_check),
    schema_for=_schema_for_access,
)
